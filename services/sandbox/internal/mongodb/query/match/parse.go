package match

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/javascript"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
)

type filterParser struct {
	env expression.Env
	// topLevel is false inside $elemMatch, where $expr and $where have no document to
	// see.
	topLevel bool
}

// document reads a filter document to the conjunction of its fields.
func (p filterParser) document(filter bson.Raw) (condition, error) {
	var all allOf
	for it := bsonkit.Iterate(filter); it.Next(); {
		c, err := p.field(string(it.Key()), it.Value())
		if err != nil {
			return nil, err
		}
		if c != nil {
			all = append(all, c)
		}
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return all, nil
}

// field reads one field of a filter document. It may mean nothing ($comment).
func (p filterParser) field(name string, v bson.RawValue) (condition, error) {
	if strings.HasPrefix(name, "$") {
		return p.operator(name, v)
	}
	terms, err := p.fieldTerms(name, v)
	if err != nil {
		return nil, err
	}
	return onPath(bsonkit.ParsePath(name), terms), nil
}

func (p filterParser) operator(name string, v bson.RawValue) (condition, error) {
	switch name {
	case "$and":
		parts, err := p.list(name, v)
		return allOf(parts), err
	case "$or":
		parts, err := p.list(name, v)
		return anyOf(parts), err
	case "$nor":
		parts, err := p.list(name, v)
		return not{anyOf(parts)}, err
	case "$jsonSchema":
		return p.schemaCondition(v)
	case "$expr":
		if operator := collation.ComparingOperator(v); operator != "" && !p.env.Collation.IsSimple() {
			return nil, mongoerr.New(mongoerr.NotImplemented, "%s in %s is not supported with a collation", operator, name)
		}
		return p.expression(v)
	case "$where":
		return p.where(v)
	case "$comment":
		return nil, nil
	case "$text":
		return nil, mongoerr.New(mongoerr.IndexNotFound, "text index required for $text query")
	case "$alwaysTrue", "$alwaysFalse":
		if n, ok := bsonkit.WholeNumber(v); !ok || n != 1 {
			return nil, mongoerr.New(mongoerr.FailedToParse, "%s must be an integer value of 1", name)
		}
		if name == "$alwaysTrue" {
			return allOf{}, nil
		}
		return anyOf{}, nil
	}
	return nil, mongoerr.New(mongoerr.BadValue, "unknown top level operator: %s", name)
}

func (p filterParser) list(name string, v bson.RawValue) ([]condition, error) {
	if v.Type != bson.TypeArray {
		return nil, mongoerr.New(mongoerr.BadValue, "%s must be an array", name)
	}
	var parts []condition
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		if it.Value().Type != bson.TypeEmbeddedDocument {
			return nil, mongoerr.New(mongoerr.BadValue, "$or/$and/$nor entries need to be full objects")
		}
		c, err := p.document(it.Value().Value)
		if err != nil {
			return nil, err
		}
		parts = append(parts, c)
	}
	if parts == nil {
		return nil, mongoerr.New(mongoerr.BadValue, "$and/$or/$nor must be a nonempty array")
	}
	return parts, nil
}

func (p filterParser) expression(v bson.RawValue) (condition, error) {
	if !p.topLevel {
		return nil, mongoerr.New(mongoerr.BadValue, "$expr can only be applied to the top-level document")
	}
	e, err := expression.Compile(v, p.env)
	if err != nil {
		return nil, err
	}
	return exprCondition{e}, nil
}

// where reads $where.
func (p filterParser) where(v bson.RawValue) (condition, error) {
	code, ok := javascript.Code(v)
	switch {
	case !p.env.Where || p.env.Scripts == nil:
		return nil, mongoerr.New(mongoerr.BadValue, "$where is not allowed in this context")
	case !p.topLevel:
		return nil, mongoerr.New(mongoerr.BadValue, "$where can only be applied to the top-level document")
	case v.Type == bson.TypeCodeWithScope:
		return nil, mongoerr.New(4649201, "$where no longer supports deprecated BSON type CodeWScope")
	case !ok:
		return nil, mongoerr.New(mongoerr.BadValue, "$where got bad type")
	case code == "":
		return nil, mongoerr.New(mongoerr.BadValue, "code for $where cannot be empty")
	}
	return whereCondition{p.env.Scripts, code}, nil
}

// whereCondition is $where.
type whereCondition struct {
	scripts *javascript.Session
	code    string
}

func (c whereCondition) match(doc bson.Raw, _ *int) (bool, error) {
	return c.scripts.Where(c.code, doc)
}

// exprCondition is $expr.
type exprCondition struct{ e *expression.Expr }

func (c exprCondition) match(doc bson.Raw, _ *int) (bool, error) {
	v, err := c.e.Eval(doc)
	return err == nil && bsonkit.Truthy(v), err
}

// term is one operator on a path: a test, or all of a group, and perhaps the
// opposite of that.
type term struct {
	test    predicate
	group   []term
	whole   bool // see pathCondition
	negated bool
}

// onPath applies terms to every value at a path.
func onPath(path bsonkit.Path, terms []term) condition {
	var all allOf
	for _, t := range terms {
		var c condition
		if t.test != nil {
			c = &pathCondition{path: path, test: t.test, whole: t.whole}
		} else {
			c = onPath(path, t.group)
		}
		if t.negated {
			c = not{c}
		}
		all = append(all, c)
	}
	if len(all) == 1 {
		return all[0]
	}
	return all
}

// fieldTerms reads what a filter says of a field: a value to be equal to, a
// regular expression, or a document of operators.
func (p filterParser) fieldTerms(name string, v bson.RawValue) ([]term, error) {
	if v.Type == bson.TypeRegex {
		test, err := p.regex(regexOf(v))
		return []term{{test: test}}, err
	}
	if !IsOperators(v) {
		test, err := p.comparison(opEq, name, v)
		return []term{{test: test}}, err
	}
	return p.operators(name, v.Value)
}

// IsOperators tells {$gt: 1} from a document to be equal to. The fields of a
// database reference are no operators.
func IsOperators(v bson.RawValue) bool {
	if v.Type != bson.TypeEmbeddedDocument {
		return false
	}
	it := bsonkit.Iterate(v.Value)
	if !it.Next() || !strings.HasPrefix(string(it.Key()), "$") {
		return false
	}
	switch string(it.Key()) {
	case "$ref", "$id", "$db":
		return false
	}
	return true
}

func (p filterParser) operators(name string, doc bson.Raw) ([]term, error) {
	var terms []term
	for it := bsonkit.Iterate(doc); it.Next(); {
		ts, err := p.fieldOperator(name, string(it.Key()), it.Value(), doc)
		if err != nil {
			return nil, err
		}
		terms = append(terms, ts...)
	}
	return terms, nil
}
