package projection

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"changerelay/services/projector/internal/expression"
)

// operators are MongoDB's names of the operators that take fields and values.
var operators = map[string]string{
	"set":      "$set",
	"inc":      "$inc",
	"min":      "$min",
	"max":      "$max",
	"push":     "$push",
	"addToSet": "$addToSet",
	// $pull takes a document for a condition; this one takes values alone.
	"pull": "$pullAll",
}

const (
	operatorNames = "set, unset, inc, min, max, push, addToSet, pull and delete"
	stateOfMany   = "state is not for a projection with a key: many aggregates change its documents, in any order, so a replay would see others"
)

// rule reads what one type of event does.
func (l *loader) rule(on entry) *rule {
	r := &rule{}
	paths := map[string]bool{}
	entries := l.entries(on.value, "the operators")
	l.item = false
	if i := slices.IndexFunc(entries, func(e entry) bool { return e.key == "forEach" }); i >= 0 {
		r.forEach, l.item, l.iterates = l.forEach(entries[i]), true, true
	}
	for _, e := range entries {
		switch operator, takesFields := operators[e.key]; {
		case takesFields:
			r.sections = append(r.sections, section{e.key, operator, l.fields(e, paths)})
		case e.key == "unset":
			r.sections = append(r.sections, section{e.key, "$unset", l.unset(e, paths)})
		case e.key == "forEach":
		case e.key == "when":
			r.when = l.condition(e, "")
		case e.key == "delete":
			flag, ok := e.value.(*ast.BoolNode)
			if !ok || !flag.Value {
				l.problem(e.at, "delete can only be true")
			}
			r.delete = true
		default:
			l.problem(e.at, "unknown operator %q; there are %s, when for a condition, and forEach for a list", e.key, operatorNames)
		}
	}
	switch {
	case r.delete && len(r.sections) > 0:
		l.problem(on.at, "delete stands beside other operators")
	case !r.delete && len(r.sections) == 0:
		l.problem(on.at, "has no operators; there are %s", operatorNames)
	}
	return r
}

// fields reads one operator's fields and values.
func (l *loader) fields(operator entry, paths map[string]bool) []field {
	entries := l.entries(operator.value, operator.key)
	if len(entries) == 0 {
		l.problem(operator.at, "%s has no fields", operator.key)
	}
	fields := make([]field, 0, len(entries))
	for _, e := range entries {
		l.claim(e.at, operator.key, e.key, paths)
		f := field{path: e.key}
		if l.isLong(operator.key, e.value) {
			l.long(operator.key, e.value, &f)
		} else {
			f.operand = l.value(operator.key, e)
		}
		fields = append(fields, f)
	}
	return fields
}

// isLong tells whether a field has the form {value: …, when: …}. Any other mapping is a
// mistake, which for push is one of that form.
func (l *loader) isLong(operator string, node ast.Node) bool {
	var pairs []*ast.MappingValueNode
	switch n := node.(type) {
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	default:
		return false
	}
	return operator == "push" || slices.ContainsFunc(pairs, func(pair *ast.MappingValueNode) bool {
		key := keyText(pair.Key)
		return key == "value" || key == "when" || key == "each" && ofElements(operator)
	})
}

// ofElements tells the operators that take elements of an array.
func ofElements(operator string) bool {
	return operator == "push" || operator == "addToSet" || operator == "pull"
}

// long reads a field of the form {value: …, when: …}, with each: … in the place of value
// where the operator takes elements, and of push also with last: n.
func (l *loader) long(operator string, node ast.Node, f *field) {
	known, seen := "value and when", false
	switch {
	case operator == "push":
		known = "value, each, when and last"
	case ofElements(operator):
		known = "value, each and when"
	}
	for _, e := range l.entries(node, operator) {
		switch {
		case e.key == "value", e.key == "each" && ofElements(operator):
			if seen {
				l.problem(e.at, "%s %q: value stands beside each", operator, f.path)
			}
			f.operand, f.each, seen = l.value(operator, entry{f.path, e.at, e.value}), e.key == "each", true
			if f.each && f.operand.program == nil {
				l.problem(e.at, "%s %q: each is not an expression", operator, f.path)
			}
		case e.key == "when":
			f.when = l.condition(e, fmt.Sprintf("%s %q: ", operator, f.path))
		case e.key == "last" && operator == "push":
			n, ok := e.value.(*ast.IntegerNode)
			if ok {
				f.last, ok = integer(n)
			}
			if !ok || f.last < 1 {
				l.problem(e.at, "push %q: last is not a whole number above 0", f.path)
			}
		default:
			l.problem(e.at, "%s %q: unknown key %q; there are %s", operator, f.path, e.key, known)
		}
	}
	if !seen {
		l.problem(node, "%s %q: value is missing", operator, f.path)
	}
}

// forEach reads the list whose elements change a document each.
func (l *loader) forEach(e entry) value {
	if !l.keyed {
		l.problem(e.at, "forEach is for a projection with a key: without one each element would change the aggregate's one document, "+
			"which tells whether an event is a repeat, so the second would look like one; write each under push, addToSet or pull, or a calculation such as sum(…)")
	}
	source, ok := expressionText(e.value)
	if !ok {
		l.problem(e.at, "forEach is not an expression")
		return value{}
	}
	v, err := compile(source, expression.Scope{})
	if err == nil {
		err = l.allowed(v)
	}
	if err != nil {
		l.problem(e.at, "forEach: %s", err)
	}
	return v
}

// expressionText is the text of an expression; false where there is something else.
func expressionText(node ast.Node) (string, bool) {
	switch node := node.(type) {
	case *ast.StringNode:
		return node.Value, true
	case *ast.LiteralNode:
		return node.Value.Value, true
	}
	return "", false
}

// condition reads what stands behind when, an expression. A literal would always hold,
// or never.
func (l *loader) condition(e entry, where string) condition {
	source, ok := expressionText(e.value)
	if !ok {
		l.problem(e.at, "%swhen is not an expression", where)
		return condition{}
	}
	v, err := compile(source, expression.Scope{Item: l.item, Condition: true})
	if err == nil {
		err = l.allowed(v)
	}
	if err != nil {
		l.problem(e.at, "%swhen: %s", where, err)
	}
	return condition{v}
}

// allowed is what speaks against an expression in this projection.
func (l *loader) allowed(v value) error {
	if l.keyed && v.usesState() {
		return errors.New(stateOfMany)
	}
	return nil
}

// unset reads a list of fields.
func (l *loader) unset(operator entry, paths map[string]bool) []field {
	list, ok := operator.value.(*ast.SequenceNode)
	if !ok || len(list.Values) == 0 {
		l.problem(operator.at, "unset is not a list of fields")
		return nil
	}
	fields := make([]field, 0, len(list.Values))
	for _, node := range list.Values {
		name, ok := node.(*ast.StringNode)
		if !ok {
			l.problem(node, "unset: a field is not a string")
			continue
		}
		l.claim(node, "unset", name.Value, paths)
		fields = append(fields, field{path: name.Value, operand: value{literal: ""}})
	}
	return fields
}

// claim checks a field's path, and that no other operator of the rule touches
// it: the server refuses an update that changes one path twice.
func (l *loader) claim(at ast.Node, operator, path string, paths map[string]bool) {
	if problem := badPath(path); problem != "" {
		l.problem(at, "%s %q: %s", operator, path, problem)
		return
	}
	for taken := range paths {
		if taken == path || strings.HasPrefix(taken, path+".") || strings.HasPrefix(path, taken+".") {
			l.problem(at, "%s %q: the field is changed twice, also as %q", operator, path, taken)
		}
	}
	paths[path] = true
}

// badPath says what is wrong with a field's path.
func badPath(path string) string {
	first, _, _ := strings.Cut(path, ".")
	switch first {
	case "_id":
		return "the document's key cannot be changed"
	case "_relay":
		return "the field is the projector's own"
	}
	for part := range strings.SplitSeq(path, ".") {
		switch {
		case part == "":
			return "a part of the path is empty"
		case strings.HasPrefix(part, "$"):
			return "a part of the path begins with $"
		case strings.ContainsRune(part, 0):
			return "a part of the path holds a NUL"
		}
	}
	return ""
}

// value reads an operand: a string is an expression, another scalar is itself.
func (l *loader) value(operator string, e entry) value {
	var v value
	var err error
	switch node := e.value.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		source, _ := expressionText(node)
		v, err = compile(source, expression.Scope{Item: l.item})
	case *ast.IntegerNode:
		n, ok := integer(node)
		if !ok {
			l.problem(e.at, "%s %q: %s is beyond 64 bits", operator, e.key, node.Token.Value)
		}
		v.literal = n
	case *ast.FloatNode:
		v.literal = node.Value
	case *ast.InfinityNode:
		v.literal = node.Value
	case *ast.BoolNode:
		v.literal = node.Value
	case *ast.NullNode:
	default:
		l.problem(e.at, "%s %q: the value is neither an expression nor a scalar; write nested fields with dots", operator, e.key)
		return v
	}
	if err == nil {
		err = l.allowed(v)
	}
	if err != nil {
		l.problem(e.at, "%s %q: %s", operator, e.key, err)
	}
	if operator == "inc" && v.program == nil && err == nil && !isNumber(v.literal) {
		l.problem(e.at, "inc %q: the value is not a number", e.key)
	}
	return v
}

func integer(node *ast.IntegerNode) (int, bool) {
	switch n := node.Value.(type) {
	case int64:
		return int(n), true
	case uint64:
		return int(n), n <= 1<<63-1
	}
	return 0, false
}

// entry is one pair of a mapping.
type entry struct {
	key   string
	at    ast.Node
	value ast.Node
}

// entries returns a mapping's pairs in order.
func (l *loader) entries(node ast.Node, what string) []entry {
	var pairs []*ast.MappingValueNode
	switch n := node.(type) {
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	default:
		l.problem(node, "%s is not a mapping", what)
		return nil
	}
	entries := make([]entry, 0, len(pairs))
	seen := map[string]bool{}
	for _, pair := range pairs {
		e := entry{key: keyText(pair.Key), at: pair.Key, value: pair.Value}
		if seen[e.key] {
			l.problem(e.at, "%q is there twice", e.key)
		}
		seen[e.key] = true
		entries = append(entries, e)
	}
	return entries
}

func keyText(key ast.MapKeyNode) string {
	if text, ok := key.(*ast.StringNode); ok {
		return text.Value
	}
	return key.GetToken().Value
}

// text reads a plain string.
func (l *loader) text(e entry) string {
	if node, ok := e.value.(*ast.StringNode); ok && node.Value != "" {
		return node.Value
	}
	l.problem(e.at, "%s is not a string", e.key)
	return ""
}
