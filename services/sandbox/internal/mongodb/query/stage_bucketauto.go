package query

import (
	"context"
	"math"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
)

// bucketAuto sorts documents by a value and makes buckets of them that are as
// large as each other, as far as equal values allow
// (https://www.mongodb.com/docs/manual/reference/operator/aggregation/bucketAuto/).
type bucketAuto struct {
	by     *expression.Expr
	count  int
	groups grouping
	// rounds is nil unless the buckets end at preferred numbers.
	rounds granularity
}

// placed is a document with the value that it is sorted by.
type placed struct {
	value bson.RawValue
	doc   bson.Raw
}

func bucketAutoStage(v bson.RawValue, env PipelineEnv) (stage, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return stage{}, mongoerr.New(40240, "The argument to $bucketAuto must be an object, but found type: %s.", bsonkit.TypeName(v.Type))
	}
	b := &bucketAuto{groups: grouping{env: env.Env, fields: []groupField{counting("count")}}}
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		if err := b.option(string(it.Key()), it.Value(), env); err != nil {
			return stage{}, err
		}
	}
	if b.by == nil || b.count == 0 {
		return stage{}, mongoerr.New(40246, "$bucketAuto requires 'groupBy' and 'buckets' to be specified.")
	}
	return stage{run: b.run}, nil
}

func (b *bucketAuto) option(name string, v bson.RawValue, env PipelineEnv) error {
	var err error
	switch name {
	case "groupBy":
		if !isPathOrObject(v) {
			return mongoerr.New(40239, "The $bucketAuto 'groupBy' field must be defined as a $-prefixed path or an expression object, but found: %s",
				bsonkit.Describe(v))
		}
		b.by, err = expression.Compile(v, env.Env)
	case "buckets":
		b.count, err = bucketCount(v)
	case "output":
		if v.Type != bson.TypeEmbeddedDocument {
			return mongoerr.New(40244, "The $bucketAuto 'output' field must be an object, but found type: %s.", bsonkit.TypeName(v.Type))
		}
		b.groups.fields, err = bucketOutput(v, env.Env)
	case "granularity":
		if v.Type != bson.TypeString {
			return mongoerr.New(40261, "The $bucketAuto 'granularity' field must be a string, but found type: %s.", bsonkit.TypeName(v.Type))
		}
		b.rounds = granularities[v.StringValue()]
		if b.rounds == nil {
			return mongoerr.New(40257, "Unknown rounding granularity '%s'", v.StringValue())
		}
	default:
		err = mongoerr.New(40245, "Unrecognized option to $bucketAuto: %s.", name)
	}
	return err
}

// isPathOrObject tells what may be an expression from what can only be a
// constant.
func isPathOrObject(v bson.RawValue) bool {
	text, _ := v.StringValueOK()
	return v.Type == bson.TypeEmbeddedDocument || strings.HasPrefix(text, "$")
}

func bucketCount(v bson.RawValue) (int, error) {
	if !bsonkit.IsNumber(v.Type) {
		return 0, mongoerr.New(40241, "The $bucketAuto 'buckets' field must be a numeric value, but found type: %s.", bsonkit.TypeName(v.Type))
	}
	n, whole := bsonkit.WholeNumber(v)
	if !whole || n != int64(int32(n)) {
		return 0, mongoerr.New(40242, "The $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found %s.", bsonkit.Describe(v))
	}
	if n <= 0 {
		return 0, mongoerr.New(40243, "The $bucketAuto 'buckets' field must be greater than 0, but found: %d.", n)
	}
	return int(n), nil
}

func (b *bucketAuto) run(_ context.Context, in documents) documents {
	return func(yield func(bson.Raw, error) bool) {
		left, err := b.sort(in)
		if err != nil {
			yield(nil, err)
			return
		}
		share := max(1, int(math.Round(float64(len(left))/float64(b.count))))
		var end bson.RawValue
		for n := 1; len(left) > 0; n++ {
			size := len(left)
			if n < b.count {
				size = b.upToEqual(left, min(share, size))
			}
			begin := left[0].value
			if b.rounds == nil {
				end = upperBound(left, size)
			} else {
				if begin = end; n == 1 {
					begin = b.rounds.down(left[0].value)
				}
				size, end = b.rounds.bucket(left, size)
			}
			doc, err := b.bucket(left[:size], begin, end)
			if !yield(doc, err) || err != nil {
				return
			}
			left = left[size:]
		}
	}
}

// bucket is the size of a bucket that has at least size documents, and all
// before the number at which it ends.
func (g granularity) bucket(left []placed, size int) (int, bson.RawValue) {
	end := g.up(left[size-1].value)
	for size < len(left) && bsonkit.Compare(left[size].value, end) < 0 {
		size++
	}
	if bsonkit.Float(end) == 0 && size < len(left) {
		end = g.down(left[size].value) // zero is before all numbers
	}
	return size, end
}

// upToEqual is the size of a bucket that has at least size documents, and all
// that are equal to its last.
func (b *bucketAuto) upToEqual(left []placed, size int) int {
	last := left[size-1].value
	for size < len(left) && b.groups.env.Collation.Compare(left[size].value, last) == 0 {
		size++
	}
	return size
}

// upperBound of a bucket is the lower one of the next; that of the last bucket is
// in it.
func upperBound(left []placed, size int) bson.RawValue {
	if size < len(left) {
		return left[size].value
	}
	return left[size-1].value
}

// bucket makes the document of the documents of a bucket.
func (b *bucketAuto) bucket(in []placed, begin, end bson.RawValue) (bson.Raw, error) {
	bounds := bsonkit.NewBuilder(nil)
	bounds.Append("min", begin)
	bounds.Append("max", end)
	memory := newMemory("$bucketAuto", mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed, b.groups.env)
	gr, err := b.groups.newGroup(bsonkit.Document(bounds.Finish()))
	if err != nil {
		return nil, err
	}
	for _, p := range in {
		if err := b.groups.add(gr, p.doc, &memory); err != nil {
			return nil, err
		}
	}
	return b.groups.document(gr)
}

func (b *bucketAuto) sort(in documents) ([]placed, error) {
	memory := newMemory("$bucketAuto", mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed, b.groups.env)
	var all []placed
	for doc, err := range in {
		if err != nil {
			return nil, err
		}
		value, err := b.by.Eval(doc)
		if err == nil {
			err = memory.Take(len(doc) + len(value.Value) + placedOverhead)
		}
		if err == nil && b.rounds != nil {
			err = b.rounds.check(value)
		}
		if err != nil {
			return nil, err
		}
		if value.Type == bsonkit.Missing {
			value = bsonkit.Null()
		}
		all = append(all, placed{value, doc})
	}
	slices.SortStableFunc(all, func(x, y placed) int { return b.groups.env.Collation.Compare(x.value, y.value) })
	return all, nil
}

// placedOverhead is what a document takes beside its bytes, about.
const placedOverhead = 64
