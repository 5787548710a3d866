package query

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/fieldpath"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// projectionParser reads the projection of a find or of a $project stage. What
// is not said by the first field that says it, a later one may still decide:
// whether named fields are kept or left out.
type projectionParser struct {
	env expression.Env
	// element tells that there is an $elemMatch.
	element bool
	find    bool // $slice, $elemMatch and the positional operator are allowed
	made    *Projection
	empty   bool

	decided bool
	id      *bool    // what was said of _id
	sliced  []string // paths of $slice, which are kept if others are
}

func (p *projectionParser) read(spec bson.Raw) error {
	p.empty = true
	for it := bsonkit.Iterate(spec); it.Next(); p.empty = false {
		if err := p.field(string(it.Key()), it.Value()); err != nil {
			return err
		}
	}
	return p.finish()
}

// finish settles what _id and the mode come to. Only a false _id, or only
// $slice, leaves everything else in.
func (p *projectionParser) finish() error {
	if !p.decided {
		p.made.inclusive = p.id != nil && *p.id
	}
	for _, path := range p.sliced {
		if !p.made.inclusive {
			break
		}
		if err := p.made.shape.add(path, &shapeField{}); err != nil {
			return err
		}
	}
	shown := p.id == nil || *p.id
	if _, named := p.made.shape.fields["_id"]; named || shown != p.made.inclusive {
		return nil
	}
	return p.made.shape.add("_id", &shapeField{})
}

func (p *projectionParser) field(path string, v bson.RawValue) error {
	switch {
	case p.find && strings.Contains(path, ".$."):
		return mongoerr.New(31394, "As of 4.4, it's illegal to specify positional operator in the middle of a path.")
	case p.find && strings.HasSuffix(path, ".$"):
		return p.positional(strings.TrimSuffix(path, ".$"), v)
	case strings.HasSuffix(path, ".$"):
		return mongoerr.New(31324, "Cannot use positional projection in aggregation projection")
	case isFlag(v):
		return p.flag(path, bsonkit.Truthy(v))
	case v.Type == bson.TypeEmbeddedDocument:
		return p.document(path, v)
	}
	if err := p.compute(path, v); err != nil {
		return err
	}
	return p.decideComputed(31310, "Cannot use an expression "+bsonkit.Describe(v)+" in an exclusion projection")
}

// isFlag tells values that say whether a field is kept.
func isFlag(v bson.RawValue) bool { return v.Type == bson.TypeBoolean || bsonkit.IsNumber(v.Type) }

// flag is {path: 1} or {path: 0}.
func (p *projectionParser) flag(path string, keep bool) error {
	if path == "_id" {
		p.id = &keep
		return nil
	}
	if err := p.made.shape.add(path, &shapeField{}); err != nil {
		return err
	}
	return p.decide(path, keep)
}

// decide makes the projection one that keeps or one that leaves out.
func (p *projectionParser) decide(path string, keep bool) error {
	switch {
	case !p.decided:
		p.decided, p.made.inclusive = true, keep
	case keep && !p.made.inclusive:
		return mongoerr.New(31253, "Cannot do inclusion on field %s in exclusion projection", path)
	case !keep && p.made.inclusive:
		return mongoerr.New(31254, "Cannot do exclusion on field %s in inclusion projection", path)
	}
	return nil
}

// document is an operator, or a projection of the fields below path.
func (p *projectionParser) document(path string, v bson.RawValue) error {
	it := bsonkit.Iterate(v.Value)
	if !it.Next() {
		return mongoerr.New(51270, "An empty sub-projection is not a valid value. Found empty object at path")
	}
	name, argument := string(it.Key()), it.Value()
	if !strings.HasPrefix(name, "$") || it.Next() {
		for sub := bsonkit.Iterate(v.Value); sub.Next(); {
			if err := p.field(path+"."+string(sub.Key()), sub.Value()); err != nil {
				return err
			}
		}
		return nil
	}
	switch {
	case p.find && name == "$slice" && !isSliceExpression(argument):
		return p.slice(path, argument)
	case p.find && name == "$elemMatch":
		return p.elemMatch(path, argument)
	case name == "$meta":
		return unknownMeta(argument)
	case !expression.Known(name):
		return mongoerr.New(31325, "Unknown expression %s", name)
	}
	if err := p.decideComputed(31252, "Cannot use expression other than $meta in exclusion projection"); err != nil {
		return err
	}
	return p.compute(path, v)
}

// unknownMeta refuses what a document is not told with.
func unknownMeta(v bson.RawValue) error {
	about, ok := v.StringValueOK()
	if !ok {
		return mongoerr.New(17307, "$meta only supports string arguments")
	}
	switch about {
	case "textScore", "geoNearDistance", "geoNearPoint":
		return mongoerr.New(40218, "query requires %s metadata, but it is not available", about)
	}
	return mongoerr.New(17308, "Unsupported argument to $meta: %s", about)
}

func (p *projectionParser) compute(path string, v bson.RawValue) error {
	e, err := expression.Compile(v, p.env)
	if err != nil {
		return err
	}
	return p.made.shape.add(path, &shapeField{compute: e.Eval})
}

// decideComputed makes the projection one that keeps, as computed fields do.
func (p *projectionParser) decideComputed(refused mongoerr.Code, why string) error {
	if p.decided && !p.made.inclusive {
		return mongoerr.New(refused, "%s", why)
	}
	p.decided, p.made.inclusive = true, true
	return nil
}

// isSliceExpression tells the expression $slice, whose first argument is an
// array, from find's, whose arguments are numbers.
func isSliceExpression(v bson.RawValue) bool {
	if v.Type != bson.TypeArray {
		return false
	}
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		if !bsonkit.IsNumber(it.Value().Type) {
			return true
		}
	}
	return false
}

func (p *projectionParser) slice(path string, v bson.RawValue) error {
	values := []bson.RawValue{v}
	if v.Type == bson.TypeArray {
		values = bsonkit.Values(v)
	}
	// What is not find's $slice is taken for the expression: that has two or three
	// arguments, the first an array.
	if n := len(values); v.Type == bson.TypeArray && (n < 2 || n > 3) {
		return mongoerr.New(28667, "Expression $slice takes at least 2 arguments, and at most 3, but %d were passed in.", n)
	}
	s := slicing{parts: strings.Split(path, ".")}
	for _, n := range values {
		at, ok := bsonkit.Truncated(n)
		if !ok {
			return mongoerr.New(28667, "Invalid $slice syntax. The given syntax %s did not match the find() syntax", bsonkit.Describe(v))
		}
		s.at = append(s.at, at)
	}
	if len(s.at) == 3 || len(s.at) == 2 && s.at[1] <= 0 {
		return mongoerr.New(28724, "First argument to $slice must be an array, but is of type: %s", bsonkit.TypeName(values[0].Type))
	}
	p.made.slices = append(p.made.slices, s)
	p.sliced = append(p.sliced, path)
	return fieldpath.Check(path)
}

func (p *projectionParser) elemMatch(path string, v bson.RawValue) error {
	if v.Type != bson.TypeEmbeddedDocument {
		return mongoerr.New(31274, "elemMatch: Invalid argument, object required, but got %s", bsonkit.TypeName(v.Type))
	}
	if p.made.positional != nil {
		return mongoerr.New(31255, "Cannot specify positional operator and $elemMatch.")
	}
	p.element = true
	if strings.Contains(path, ".") {
		return mongoerr.New(31275, "Cannot use $elemMatch projection on a nested field.")
	}
	if p.decided && !p.made.inclusive {
		return mongoerr.New(31253, "Cannot do inclusion on field %s in exclusion projection", path)
	}
	p.decided, p.made.inclusive = true, true
	find, err := match.ElementIndex(v, p.env)
	if err != nil {
		return err
	}
	return p.made.shape.add(path, &shapeField{compute: func(root bson.Raw) (bson.RawValue, error) {
		array, _ := bsonkit.Get(root, path)
		at := find(array)
		if at < 0 {
			return bson.RawValue{}, nil
		}
		return onlyElement(array, at)
	}})
}

func (p *projectionParser) positional(path string, v bson.RawValue) error {
	switch {
	case v.Type == bson.TypeEmbeddedDocument:
		return mongoerr.New(31271, "positional projection cannot be used with an expression or sub object")
	case !isFlag(v):
		return mongoerr.New(31308, "positional projection cannot be used with a literal")
	case p.element:
		return mongoerr.New(31256, "Cannot specify positional operator and $elemMatch.")
	case !bsonkit.Truthy(v):
		return mongoerr.New(31395, "positional projection cannot be used with exclusion")
	case p.made.positional != nil:
		return mongoerr.New(31276, "Cannot specify more than one positional projection per query.")
	}
	p.made.positional = strings.Split(path, ".")
	return p.flag(path, true)
}
