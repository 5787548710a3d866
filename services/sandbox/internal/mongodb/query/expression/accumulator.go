package expression

import (
	"bytes"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

// accumulatorOperator has the accumulators that also work on a list: over their
// arguments, or over the elements of a single one that is an array.
func accumulatorOperator(name string) builder {
	if !overLists(name) {
		return nil
	}
	return variadicIn(0, -1, func(s *scope, args []bson.RawValue) (bson.RawValue, error) {
		if len(args) == 1 && args[0].Type == bson.TypeArray {
			args = s.values(args[0])
		}
		a := NewAccumulator(name)
		for _, v := range args {
			if !s.goesOn(1) {
				break
			}
			if err := a.Add(v); err != nil {
				return v, err
			}
		}
		return a.Result(), nil
	})
}

func overLists(name string) bool {
	switch name {
	case "$sum", "$avg", "$min", "$max", "$stdDevPop", "$stdDevSamp":
		return true
	}
	return false
}

// Accumulator makes one value of many.
type Accumulator interface {
	Add(v bson.RawValue) error
	// Result is the value so far. It may be missing.
	Result() bson.RawValue
}

// NewAccumulator makes an empty accumulator, nil for a name that is none.
func NewAccumulator(name string) Accumulator {
	switch name {
	case "$sum":
		return &sum{}
	case "$avg":
		return &average{}
	case "$min":
		return &extreme{sign: -1}
	case "$max":
		return &extreme{sign: 1}
	case "$first":
		return &first{}
	case "$last":
		return &last{}
	case "$push":
		return &pushed{}
	case "$addToSet":
		return &distinct{seen: map[string]bool{}}
	case "$mergeObjects":
		return &merged{}
	case "$stdDevPop":
		return &deviation{}
	case "$stdDevSamp":
		return &deviation{sample: true}
	}
	return nil
}

// sum passes over what is no number.
type sum struct{ total total }

func (a *sum) Add(v bson.RawValue) error {
	if bsonkit.IsNumber(v.Type) {
		a.total.add(v)
	}
	return nil
}

func (a *sum) Result() bson.RawValue { return a.total.value() }

type average struct {
	sum
	count int64
}

func (a *average) Add(v bson.RawValue) error {
	if bsonkit.IsNumber(v.Type) {
		a.count++
	}
	return a.sum.Add(v)
}

func (a *average) Result() bson.RawValue {
	if a.count == 0 {
		return bsonkit.Null()
	}
	v, _ := divide(a.total.value(), bsonkit.Int64(a.count)) // a count is not zero
	return v
}

// extreme is $min and $max. Null and missing values do not count.
type extreme struct {
	sign int
	best bson.RawValue
}

func (a *extreme) Add(v bson.RawValue) error {
	if !nullish(v) && (a.best.Type == bsonkit.Missing || bsonkit.Compare(v, a.best) == a.sign) {
		a.best = apart(v)
	}
	return nil
}

func (a *extreme) Result() bson.RawValue { return orNull(a.best) }

func orNull(v bson.RawValue) bson.RawValue {
	if v.Type == bsonkit.Missing {
		return bsonkit.Null()
	}
	return v
}

// apart is a value that does not keep the document it is a part of.
func apart(v bson.RawValue) bson.RawValue {
	v.Value = bytes.Clone(v.Value)
	return v
}

type first struct {
	value bson.RawValue
	has   bool
}

func (a *first) Add(v bson.RawValue) error {
	if !a.has {
		a.value, a.has = apart(v), true
	}
	return nil
}

func (a *first) Result() bson.RawValue { return orNull(a.value) }

type last struct{ value bson.RawValue }

func (a *last) Add(v bson.RawValue) error {
	a.value = apart(v)
	return nil
}

func (a *last) Result() bson.RawValue { return orNull(a.value) }

type pushed struct{ values []bson.RawValue }

func (a *pushed) Add(v bson.RawValue) error {
	if v.Type != bsonkit.Missing {
		a.values = append(a.values, v)
	}
	return nil
}

func (a *pushed) Result() bson.RawValue { return bsonkit.Array(a.values) }

// distinct keeps the first of equal values, in the order of arrival.
type distinct struct {
	pushed
	seen map[string]bool
}

func (a *distinct) Add(v bson.RawValue) error {
	if v.Type == bsonkit.Missing {
		return nil
	}
	key := string(bsonkit.AppendKey(nil, v))
	if a.seen[key] {
		return nil
	}
	a.seen[key] = true
	return a.pushed.Add(v)
}

type merged struct{ made fields }

func (a *merged) Add(v bson.RawValue) error { return a.made.merge(&scope{}, v) }

func (a *merged) Result() bson.RawValue { return a.made.document() }

// deviation is Welford's running variance.
type deviation struct {
	sample        bool
	count         float64
	mean, squares float64
}

func (a *deviation) Add(v bson.RawValue) error {
	if !bsonkit.IsNumber(v.Type) {
		return nil
	}
	x := bsonkit.Float(v)
	a.count++
	delta := x - a.mean
	a.mean += delta / a.count
	a.squares += delta * (x - a.mean)
	return nil
}

func (a *deviation) Result() bson.RawValue {
	n := a.count
	if a.sample {
		n--
	}
	if n <= 0 {
		return bsonkit.Null()
	}
	return bsonkit.Double(math.Sqrt(a.squares / n))
}
