package query

import (
	"bytes"
	"context"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// grouping is what $group, $bucket and $sortByCount have in common: documents
// that share a key are made one.
type grouping struct {
	key    func(doc bson.Raw) (bson.RawValue, error)
	fields []groupField
	env    expression.Env
}

type groupField struct {
	name        string
	accumulator string
	input       *expression.Expr
	// make makes the accumulator of a group, for those that are not only a name.
	make func(id bson.RawValue) (expression.Accumulator, error)
}

type group struct {
	id     bson.RawValue
	totals []expression.Accumulator
	// held is how much of each total is counted that is given back when the total
	// holds another value.
	held []int
}

func groupStage(v bson.RawValue, env PipelineEnv) (stage, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return stage{}, mongoerr.New(15947, "a group's fields must be specified in an object")
	}
	g := grouping{env: env.Env}
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		if string(it.Key()) == "_id" {
			if err := g.groupBy(it.Value(), env.Env); err != nil {
				return stage{}, err
			}
			continue
		}
		f, err := newGroupField(string(it.Key()), it.Value(), env.Env)
		if err != nil {
			return stage{}, err
		}
		g.fields = append(g.fields, f)
	}
	if g.key == nil {
		return stage{}, mongoerr.New(15955, "a group specification must include an _id")
	}
	return stage{run: g.run}, nil
}

// groupBy reads the key. Of a document with one field the server groups by the
// field's value, for which a missing one is null.
func (g *grouping) groupBy(v bson.RawValue, env expression.Env) error {
	name, inner, single := singleField(v)
	if single {
		v = inner
	}
	e, err := expression.Compile(v, env)
	if err != nil {
		return err
	}
	g.key = e.Eval
	if single {
		g.key = func(doc bson.Raw) (bson.RawValue, error) {
			id, err := e.Eval(doc)
			if id.Type == bsonkit.Missing {
				id = bsonkit.Null()
			}
			b := bsonkit.NewBuilder(nil)
			b.Append(name, id)
			return bsonkit.Document(b.Finish()), err
		}
	}
	return nil
}

// singleField takes a document apart that has one field and is no expression.
func singleField(v bson.RawValue) (name string, inner bson.RawValue, is bool) {
	if v.Type != bson.TypeEmbeddedDocument || match.IsOperators(v) {
		return "", v, false
	}
	it := bsonkit.Iterate(v.Value)
	if !it.Next() {
		return "", v, false
	}
	name, inner = string(it.Key()), it.Value()
	return name, inner, !it.Next()
}

func newGroupField(name string, v bson.RawValue, env expression.Env) (groupField, error) {
	f := groupField{name: name}
	switch {
	case strings.Contains(name, "."):
		return f, mongoerr.New(40235, "The field name '%s' cannot contain '.'", name)
	case strings.HasPrefix(name, "$"):
		return f, mongoerr.New(40236, "The field name '%s' cannot be an operator name", name)
	case v.Type != bson.TypeEmbeddedDocument:
		return f, mongoerr.New(40234, "The field '%s' must be an accumulator object", name)
	}
	it := bsonkit.Iterate(v.Value)
	if !it.Next() {
		return f, mongoerr.New(40238, "The field '%s' must specify one accumulator", name)
	}
	f.accumulator = string(it.Key())
	if f.accumulator == "$accumulator" || f.accumulator == "$_internalJsReduce" {
		if env.Scripts == nil {
			return f, mongoerr.New(mongoerr.NotImplemented, "%s cannot be used here", f.accumulator)
		}
		err := f.runScript(it.Value(), env)
		return f, err
	}
	if expression.NewAccumulator(f.accumulator) == nil {
		return f, mongoerr.New(15952, "unknown group operator '%s'", f.accumulator)
	}
	if it.Value().Type == bson.TypeArray {
		return f, mongoerr.New(40237, "The %s accumulator is a unary operator", f.accumulator)
	}
	var err error
	f.input, err = expression.Compile(it.Value(), env)
	if err == nil && it.Next() {
		err = mongoerr.New(40238, "The field '%s' must specify one accumulator", name)
	}
	return f, err
}

// runScript makes a field one that is accumulated by JavaScript.
func (f *groupField) runScript(v bson.RawValue, env expression.Env) error {
	if f.accumulator == "$accumulator" {
		a, args, err := newCustom(v, env)
		f.input, f.make = args, a.start
		return err
	}
	code, data, err := newReduction(v, env)
	f.input = data
	f.make = func(bson.RawValue) (expression.Accumulator, error) {
		return &reduction{scripts: env.Scripts, code: code}, nil
	}
	return err
}

// run gives the groups in the order in which their first documents came.
func (g grouping) run(_ context.Context, in documents) documents {
	return func(yield func(bson.Raw, error) bool) {
		groups, err := g.collect(in)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, gr := range groups {
			doc, err := g.document(gr)
			if !yield(doc, err) || err != nil {
				return
			}
		}
	}
}

func (g grouping) collect(in documents) ([]*group, error) {
	var groups []*group
	byKey := map[string]*group{}
	memory := newMemory("$group", 16945, g.env)
	for doc, err := range in {
		if err != nil {
			return nil, err
		}
		id, err := g.key(doc)
		if err != nil {
			return nil, err
		}
		key := string(bsonkit.AppendKey(nil, g.env.Collation.Fold(id)))
		gr := byKey[key]
		if gr == nil {
			if gr, err = g.newGroup(id); err != nil {
				return nil, err
			}
			byKey[key] = gr
			groups = append(groups, gr)
			if err := memory.Take(len(key) + len(id.Value) + 64*(1+len(g.fields))); err != nil {
				return nil, err
			}
		}
		if err := g.add(gr, doc, &memory); err != nil {
			return nil, err
		}
	}
	return groups, nil
}

func (g grouping) newGroup(id bson.RawValue) (*group, error) {
	if id.Type == bsonkit.Missing {
		id = bsonkit.Null()
	}
	id.Value = bytes.Clone(id.Value) // it does not keep the document it is a part of
	gr := &group{id: id, held: make([]int, len(g.fields))}
	for _, f := range g.fields {
		total := expression.NewAccumulator(f.accumulator)
		if f.make != nil {
			var err error
			if total, err = f.make(id); err != nil {
				return nil, err
			}
		}
		gr.totals = append(gr.totals, total)
	}
	return gr, nil
}

func (g grouping) add(gr *group, doc bson.Raw, memory *Memory) error {
	for i, f := range g.fields {
		v, err := f.input.Eval(doc)
		if err == nil && f.keeps() {
			err = memory.Take(len(v.Value) + 32)
		}
		if err != nil {
			return err
		}
		if err := gr.totals[i].Add(v); err != nil {
			return err
		}
		memory.Give(gr.held[i])
		gr.held[i] = f.holds(gr.totals[i])
		if err := memory.Take(gr.held[i]); err != nil {
			return err
		}
	}
	return nil
}

// keeps tells accumulators whose value grows with the documents.
func (f groupField) keeps() bool {
	switch f.accumulator {
	case "$push", "$addToSet", "$mergeObjects", "$_internalJsReduce":
		return true
	}
	return false
}

// holds is how many bytes an accumulator has that replaces one value by another.
func (f groupField) holds(total expression.Accumulator) int {
	switch f.accumulator {
	case "$first", "$last", "$min", "$max":
		return len(total.Result().Value)
	case "$accumulator":
		state := total.(*customState)
		return len(state.state.Value) + state.bytes
	}
	return 0
}

func (g grouping) document(gr *group) (bson.Raw, error) {
	b := bsonkit.NewBuilder(nil)
	b.Append("_id", gr.id)
	for i, f := range g.fields {
		if s, ok := gr.totals[i].(scripted); ok {
			if err := s.Finish(); err != nil {
				return nil, err
			}
		}
		b.Append(f.name, gr.totals[i].Result())
	}
	return b.Finish(), nil
}

// counting is {count: {$sum: 1}} under another name.
func counting(name string) groupField {
	return groupField{name: name, accumulator: "$sum", input: expression.Literal(bsonkit.Int32(1))}
}

func countStage(v bson.RawValue) (stage, error) {
	name, ok := v.StringValueOK()
	switch {
	case !ok:
		return stage{}, mongoerr.New(40156, "the count field must be a non-empty string")
	case name == "":
		return stage{}, mongoerr.New(40157, "the count field must be a non-empty string")
	case strings.HasPrefix(name, "$"):
		return stage{}, mongoerr.New(40158, "the count field cannot be a $-prefixed path")
	case strings.Contains(name, "\x00"):
		return stage{}, mongoerr.New(40159, "the count field cannot contain a null byte")
	case strings.Contains(name, "."):
		return stage{}, mongoerr.New(40160, "the count field cannot contain '.'")
	}
	return stage{run: func(_ context.Context, in documents) documents {
		return func(yield func(bson.Raw, error) bool) {
			n := int64(0)
			for _, err := range in {
				if err != nil {
					yield(nil, err)
					return
				}
				n++
			}
			if n > 0 {
				b := bsonkit.NewBuilder(nil)
				b.Append(name, bsonkit.Integer(n))
				yield(b.Finish(), nil)
			}
		}
	}}, nil
}

func sortByCountStage(v bson.RawValue, env PipelineEnv) (stage, error) {
	switch {
	case v.Type == bson.TypeEmbeddedDocument && !match.IsOperators(v):
		return stage{}, mongoerr.New(40147, "the sortByCount field must be defined as a $-prefixed path or an expression inside an object")
	case v.Type == bson.TypeString && !strings.HasPrefix(v.StringValue(), "$"):
		return stage{}, mongoerr.New(40148, "the sortByCount field must be defined as a $-prefixed path or an expression inside an object")
	case v.Type != bson.TypeString && v.Type != bson.TypeEmbeddedDocument:
		return stage{}, mongoerr.New(40149, "the sortByCount field must be specified as a string or as an object")
	}
	e, err := expression.Compile(v, env.Env)
	if err != nil {
		return stage{}, err
	}
	g := grouping{env: env.Env, key: e.Eval, fields: []groupField{counting("count")}}
	byCount := sorting(&Sort{
		fields: []SortField{{Path: "count", Descending: true}},
		paths:  []bsonkit.Path{bsonkit.ParsePath("count")},
	}, 0, env.Env)
	return stage{run: func(ctx context.Context, in documents) documents { return byCount.run(ctx, g.run(ctx, in)) }}, nil
}
