package expression

import (
	"math"
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func arrayOperator(name string) builder {
	switch name {
	case "$size":
		return unaryIn(arraySize)
	case "$isArray":
		return unary(func(v bson.RawValue) (bson.RawValue, error) { return bsonkit.Boolean(v.Type == bson.TypeArray), nil })
	case "$arrayElemAt":
		return binaryIn(elementAt)
	case "$first":
		return unaryIn(func(s *scope, v bson.RawValue) (bson.RawValue, error) { return endElement(s, name, v, 0) })
	case "$last":
		return unaryIn(func(s *scope, v bson.RawValue) (bson.RawValue, error) { return endElement(s, name, v, -1) })
	case "$in":
		return binaryIn(inArray)
	case "$indexOfArray":
		return buildIndexOfArray
	case "$concatArrays":
		return variadicIn(0, -1, concatArrays)
	case "$reverseArray":
		return unaryIn(reverseArray)
	case "$slice":
		return variadicIn(2, 3, sliceArray)
	case "$range":
		return variadicIn(2, 3, rangeArray)
	case "$zip":
		return buildZip
	}
	return nil
}

func arraySize(s *scope, v bson.RawValue) (bson.RawValue, error) {
	if v.Type != bson.TypeArray {
		return v, mongoerr.New(17124, "The argument to $size must be an array, but was of type: %s", typeName(v))
	}
	return bsonkit.Int32(int32(s.count(v))), nil
}

func elementAt(s *scope, array, index bson.RawValue) (bson.RawValue, error) {
	switch {
	case nullish(array) || nullish(index):
		return bsonkit.Null(), nil
	case array.Type != bson.TypeArray:
		return array, mongoerr.New(28689, "$arrayElemAt's first argument must be an array, but is %s", typeName(array))
	case !bsonkit.IsNumber(index.Type):
		return index, mongoerr.New(28690, "$arrayElemAt's second argument must be a numeric value, but is %s", typeName(index))
	}
	i, ok := bsonkit.WholeNumber(index)
	if !ok || i != int64(int32(i)) {
		return index, mongoerr.New(28691, "$arrayElemAt's second argument must be representable as a 32-bit integer: %s", bsonkit.Describe(index))
	}
	return elementOf(s, array, i), nil
}

// elementOf counts negative indexes from the end. Beyond the array there is
// nothing.
func elementOf(s *scope, array bson.RawValue, i int64) bson.RawValue {
	if i < 0 {
		i += int64(s.count(array))
	}
	for it := s.walk(array); i >= 0 && it.Next(); i-- {
		if i == 0 {
			return it.Value()
		}
	}
	return bson.RawValue{}
}

func endElement(s *scope, name string, array bson.RawValue, i int64) (bson.RawValue, error) {
	if nullish(array) {
		return bsonkit.Null(), nil
	}
	if array.Type != bson.TypeArray {
		return array, mongoerr.New(28689, "%s's argument must be an array, but is %s", name, typeName(array))
	}
	return elementOf(s, array, i), nil
}

func inArray(s *scope, v, array bson.RawValue) (bson.RawValue, error) {
	if array.Type != bson.TypeArray {
		return array, mongoerr.New(40081, "$in requires an array as a second argument, found: %s", typeName(array))
	}
	for it := s.walk(array); it.Next(); {
		if Compare(v, it.Value()) == 0 {
			return bsonkit.Boolean(true), nil
		}
	}
	return bsonkit.Boolean(false), nil
}

// buildIndexOfArray treats a constant array by itself, of which the server makes an
// index beforehand.
func buildIndexOfArray(c *compiler, name string, argument bson.RawValue) (operand, error) {
	args, err := c.between(name, argument, 2, 4)
	if err != nil {
		return operand{}, err
	}
	if array := args[0]; array.eval == nil && !constants(args) {
		switch {
		case nullish(array.value):
			return constant(bsonkit.Null()), nil
		case array.value.Type != bson.TypeArray:
			return c.failed(mongoerr.New(50809, "First operand of $indexOfArray must be an array. First argument is of type: %s",
				typeName(array.value))), nil
		}
	}
	return c.applied(args, indexOfArray), nil
}

func indexOfArray(s *scope, args []bson.RawValue) (bson.RawValue, error) {
	if nullish(args[0]) {
		return bsonkit.Null(), nil
	}
	if args[0].Type != bson.TypeArray {
		return args[0], mongoerr.New(40090, "$indexOfArray requires an array as a first argument, found: %s", typeName(args[0]))
	}
	values := s.values(args[0])
	limits := [2]int64{0, int64(len(values))}
	for i, v := range args[2:] {
		n, ok := bsonkit.WholeNumber(v)
		if !ok {
			return v, mongoerr.New(40096, "$indexOfArray requires an integral index, found a value of type: %s", typeName(v))
		}
		if n < 0 {
			return v, mongoerr.New(40097, "$indexOfArray requires a nonnegative index, found: %d", n)
		}
		limits[i] = min(n, int64(len(values)))
	}
	for i := limits[0]; i < limits[1] && s.goesOn(1); i++ {
		if Compare(values[i], args[1]) == 0 {
			return bsonkit.Int32(int32(i)), nil
		}
	}
	return bsonkit.Int32(-1), nil
}

func concatArrays(s *scope, args []bson.RawValue) (bson.RawValue, error) {
	var all []bson.RawValue
	for _, v := range args {
		if nullish(v) {
			return bsonkit.Null(), nil
		}
		if v.Type != bson.TypeArray {
			return v, mongoerr.New(28664, "$concatArrays only supports arrays, not %s", typeName(v))
		}
		all = append(all, s.values(v)...)
	}
	return bsonkit.Array(all), nil
}

func reverseArray(s *scope, v bson.RawValue) (bson.RawValue, error) {
	if nullish(v) {
		return bsonkit.Null(), nil
	}
	if v.Type != bson.TypeArray {
		return v, mongoerr.New(34435, "The argument to $reverseArray must be an array, but was of type: %s", typeName(v))
	}
	values := s.values(v)
	slices.Reverse(values)
	return bsonkit.Array(values), nil
}

// sliceArray has (array, n) and (array, position, n).
func sliceArray(s *scope, args []bson.RawValue) (bson.RawValue, error) {
	if slices.ContainsFunc(args, nullish) {
		return bsonkit.Null(), nil
	}
	if args[0].Type != bson.TypeArray {
		return args[0], mongoerr.New(28724, "First argument to $slice must be an array, but is of type: %s", typeName(args[0]))
	}
	var at []int64
	for i, v := range args[1:] {
		n, ok := bsonkit.WholeNumber(v)
		switch {
		case !bsonkit.IsNumber(v.Type):
			return v, mongoerr.New(mongoerr.Code(28725+2*i), "Argument %d to $slice must be numeric, but is of type: %s", i+2, typeName(v))
		case !ok || n != int64(int32(n)):
			return v, mongoerr.New(mongoerr.Code(28726+2*i), "Argument %d to $slice can't be represented as a 32-bit integer: %s", i+2, bsonkit.Describe(v))
		}
		at = append(at, n)
	}
	if len(at) == 2 && at[1] <= 0 {
		return args[2], mongoerr.New(28729, "Third argument to $slice must be positive: %d", at[1])
	}
	return bsonkit.Array(Slice(s.values(args[0]), at)), nil
}

// Slice cuts a list to n elements, from the end if n is negative, for [n]; or to
// n elements from a position, which may count from the end, for [position, n].
func Slice(values []bson.RawValue, at []int64) []bson.RawValue {
	size := int64(len(values))
	if len(at) == 1 {
		if at[0] >= 0 {
			return values[:min(at[0], size)]
		}
		return values[max(0, size+at[0]):]
	}
	start := at[0]
	if start < 0 {
		start = max(0, size+start)
	}
	start = min(start, size)
	return values[start : start+min(at[1], size-start)]
}

// maxRange keeps $range within what a document can hold.
const maxRange = 4 << 20

func rangeArray(s *scope, args []bson.RawValue) (bson.RawValue, error) {
	at := [3]int64{0, 0, 1}
	for i, v := range args {
		n, ok := bsonkit.WholeNumber(v)
		switch {
		case !bsonkit.IsNumber(v.Type):
			return v, mongoerr.New(mongoerr.Code(34443+2*i), "$range requires a numeric argument, found value of type: %s", typeName(v))
		case !ok || n != int64(int32(n)):
			return v, mongoerr.New(mongoerr.Code(34444+2*i), "$range requires an argument that can be represented as a 32-bit integer, found value: %s", bsonkit.Describe(v))
		}
		at[i] = n
	}
	step := at[2]
	if step == 0 {
		return bson.RawValue{}, mongoerr.New(34449, "$range requires a non-zero step value")
	}
	if span := (at[1] - at[0]) / step; span > maxRange {
		return bson.RawValue{}, mongoerr.New(mongoerr.BSONObjectTooLarge, "$range would make %d values", span)
	}
	var values []bson.RawValue
	for i := at[0]; (step > 0 && i < at[1] || step < 0 && i > at[1]) && s.goesOn(1); i += step {
		values = append(values, bsonkit.Int32(int32(i)))
	}
	return bsonkit.Array(values), nil
}

func buildZip(c *compiler, name string, argument bson.RawValue) (operand, error) {
	fields, err := c.documentArguments(name, argument, 34460, 34464, "inputs", "useLongestLength", "defaults")
	if err == nil {
		err = checkZip(argument.Value)
	}
	if err != nil {
		return operand{}, err
	}
	return operand{eval: func(s *scope) (bson.RawValue, error) {
		values, err := evalNamed(s, fields)
		if err != nil {
			return bson.RawValue{}, err
		}
		return zip(s, s.values(values["inputs"]), s.values(values["defaults"]), bsonkit.Truthy(values["useLongestLength"]))
	}}, nil
}

// checkZip refuses arguments that are not written out as arrays, or do not go
// together.
func checkZip(argument bson.Raw) error {
	inputs, _ := bsonkit.Get(argument, "inputs")
	defaults, defaulted := bsonkit.Get(argument, "defaults")
	longest, chosen := bsonkit.Get(argument, "useLongestLength")
	n, m := len(bsonkit.Values(inputs)), len(bsonkit.Values(defaults))
	isLongest, isBool := longest.BooleanOK()
	switch {
	case inputs.Type != 0 && inputs.Type != bson.TypeArray:
		return mongoerr.New(34461, "inputs must be an array of expressions, found %s", typeName(inputs))
	case defaulted && defaults.Type != bson.TypeArray:
		return mongoerr.New(34462, "defaults must be an array of expressions, found %s", typeName(defaults))
	case chosen && !isBool:
		return mongoerr.New(34463, "useLongestLength must be a bool, found %s", typeName(longest))
	case n == 0:
		return mongoerr.New(34465, "$zip requires at least one input array")
	case m > 0 && !isLongest:
		return mongoerr.New(34466, "cannot specify defaults unless useLongestLength is true")
	case m > 0 && m != n:
		return mongoerr.New(34467, "defaults and inputs must have the same length")
	}
	return nil
}

func zip(s *scope, inputs, defaults []bson.RawValue, longest bool) (bson.RawValue, error) {
	length := math.MaxInt
	columns := make([][]bson.RawValue, len(inputs))
	for i, v := range inputs {
		if nullish(v) {
			return bsonkit.Null(), nil
		}
		if v.Type != bson.TypeArray {
			return v, mongoerr.New(34468, "$zip found a non-array expression in input: %s", bsonkit.Describe(v))
		}
		columns[i] = s.values(v)
		switch {
		case i == 0, longest && len(columns[i]) > length, !longest && len(columns[i]) < length:
			length = len(columns[i])
		}
	}
	rows := make([]bson.RawValue, length)
	for r := range rows {
		if !s.goesOn(len(inputs)) {
			break
		}
		b := bsonkit.NewBuilder(nil)
		for i, column := range columns {
			v := bsonkit.Null()
			if r < len(column) {
				v = column[r]
			} else if i < len(defaults) {
				v = defaults[i]
			}
			b.Append(strconv.Itoa(i), v)
		}
		rows[r] = bson.RawValue{Type: bson.TypeArray, Value: b.Finish()}
	}
	return bsonkit.Array(rows), nil
}
