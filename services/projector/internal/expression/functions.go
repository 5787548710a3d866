package expression

import (
	"fmt"

	"github.com/expr-lang/expr/ast"
)

// function is a function of values. It takes its steps and memory from the
// evaluation before it does its work.
type function struct {
	least, most int // how many arguments it takes
	// lenient has it take null and what is absent.
	lenient bool
	call    func(e *evaluation, args []any) (any, error)
}

// functions are those of the language that take values. What is in neither table
// does not load.
var functions = map[string]function{
	"len":  {1, 1, false, length},
	"type": {1, 1, true, typeOf},
	"get":  {2, 2, true, get},

	"abs":    {1, 1, false, absolute},
	"ceil":   {1, 1, false, ceil},
	"floor":  {1, 1, false, floor},
	"round":  {1, 1, false, round},
	"int":    {1, 1, false, toInt},
	"float":  {1, 1, false, toFloat},
	"max":    {1, unlimited, false, highest},
	"min":    {1, unlimited, false, lowest},
	"mean":   {1, unlimited, false, mean},
	"median": {1, unlimited, false, median},

	"bitand":  {2, 2, false, bitwise(func(a, b int64) int64 { return a & b })},
	"bitor":   {2, 2, false, bitwise(func(a, b int64) int64 { return a | b })},
	"bitxor":  {2, 2, false, bitwise(func(a, b int64) int64 { return a ^ b })},
	"bitnand": {2, 2, false, bitwise(func(a, b int64) int64 { return a &^ b })},
	"bitnot":  {1, 1, false, bitNot},
	"bitshl":  {2, 2, false, shiftLeft},
	"bitshr":  {2, 2, false, shiftRight(func(a int64, by uint) int64 { return a >> by })},
	"bitushr": {2, 2, false, shiftRight(func(a int64, by uint) int64 { return int64(uint64(a) >> by) })},

	"string":      {1, 1, false, toText},
	"trim":        {1, 2, false, trim},
	"trimPrefix":  {1, 2, false, trimPrefix},
	"trimSuffix":  {1, 2, false, trimSuffix},
	"upper":       {1, 1, false, upper},
	"lower":       {1, 1, false, lower},
	"split":       {2, 3, false, split},
	"splitAfter":  {2, 3, false, splitAfter},
	"replace":     {3, 4, false, replace},
	"repeat":      {2, 2, false, repeat},
	"join":        {1, 2, false, join},
	"indexOf":     {2, 2, false, indexOf},
	"lastIndexOf": {2, 2, false, lastIndexOf},
	"hasPrefix":   {2, 2, false, hasPrefix},
	"hasSuffix":   {2, 2, false, hasSuffix},
	"toJSON":      {1, 1, false, toJSON},
	"fromJSON":    {1, 1, false, fromJSON},
	"toBase64":    {1, 1, false, toBase64},
	"fromBase64":  {1, 1, false, fromBase64},

	"duration": {1, 1, false, duration},
	"date":     {1, 4, false, date},
	"timezone": {1, 1, false, timezone},

	"first":     {1, 1, false, first},
	"last":      {1, 1, false, last},
	"take":      {2, 2, false, take},
	"keys":      {1, 1, false, keys},
	"values":    {1, 1, false, values},
	"toPairs":   {1, 1, false, toPairs},
	"fromPairs": {1, 1, false, fromPairs},
	"reverse":   {1, 1, false, reverse},
	"uniq":      {1, 1, false, uniq},
	"concat":    {1, unlimited, false, concat},
	"flatten":   {1, 1, false, flatten},
	"sort":      {1, 2, false, sorted},
}

const unlimited = 1 << 30

// nothing is what a function returns where it finds no value.
type nothing struct{}

func (e *evaluation) builtin(n *ast.BuiltinNode) (any, error) {
	if isPredicate(n.Name) {
		return e.predicate(n)
	}
	f, ok := functions[n.Name]
	if !ok || len(n.Arguments) < f.least || len(n.Arguments) > f.most {
		return nil, fmt.Errorf("%s is not of this language", shown(n))
	}
	args, err := e.arguments(n, f.lenient)
	if err != nil {
		return nil, err
	}
	v, err := f.call(e, args)
	if err != nil {
		return nil, at(n, err)
	}
	if _, none := v.(nothing); none {
		return absent{n}, nil
	}
	return v, nil
}

// arguments are a function's. Null is none of them, or what a function makes of
// it would stand where a value should.
func (e *evaluation) arguments(n *ast.BuiltinNode, lenient bool) ([]any, error) {
	args := make([]any, len(n.Arguments))
	for i, node := range n.Arguments {
		var err error
		if lenient {
			args[i], err = e.eval(node)
		} else {
			args[i], err = e.need(node)
		}
		if err != nil {
			return nil, err
		}
		if args[i] == nil && !lenient {
			return nil, fmt.Errorf("%s takes no null: write ?? and what %s is then", n.Name, shown(node))
		}
	}
	return args, nil
}

// textOf is an argument that is a text.
func textOf(args []any, i int) (string, error) {
	text, ok := args[i].(string)
	if !ok {
		return "", fmt.Errorf("takes a text, not %s", kind(args[i]))
	}
	return text, nil
}

// textsOf are arguments that are texts all.
func textsOf(args []any) ([]string, error) {
	texts := make([]string, len(args))
	for i := range args {
		var err error
		if texts[i], err = textOf(args, i); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

func wholeOf(args []any, i int) (int64, error) {
	n, ok := wholeNumber(args[i])
	if !ok {
		return 0, fmt.Errorf("takes a whole number, not %s", kind(args[i]))
	}
	return n, nil
}

func listOf(args []any, i int) ([]any, error) {
	list, ok := args[i].([]any)
	if !ok {
		return nil, fmt.Errorf("takes a list, not %s", kind(args[i]))
	}
	return list, nil
}
