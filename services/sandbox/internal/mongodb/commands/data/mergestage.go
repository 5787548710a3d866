package data

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/match"
	"changerelay/services/sandbox/internal/mongodb/query/modify"
)

// mergeStage is a $merge
// (https://www.mongodb.com/docs/v4.4/reference/operator/aggregation/merge/).
type mergeStage struct {
	into oplog.Namespace
	on   []string
	// let are the variables of the pipeline, expressions over the new document.
	let         bson.Raw
	whenMatched string
	// pipeline is what happens to a matched document, where it is one.
	pipeline       bson.RawValue
	whenNotMatched string
}

func merge(ctx context.Context, c *command.Call, g aggregation, spec bson.RawValue, src command.Source) error {
	m, err := parseMerge(c, g.ns.DB, spec)
	if err != nil {
		return err
	}
	if err := c.NotView(m.into); err != nil {
		return err
	}
	for doc, err := range sourced(src) {
		if err != nil {
			return err
		}
		if err := mergeDocument(ctx, c, m, doc); err != nil {
			return err
		}
	}
	return nil
}

func parseMerge(c *command.Call, db string, spec bson.RawValue) (mergeStage, error) {
	m := mergeStage{on: []string{"_id"}, whenMatched: "merge", whenNotMatched: "insert"}
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	if _, ok := spec.StringValueOK(); ok {
		m.into = outTarget(&a, "$merge", db, spec)
		return m, a.Err
	}
	for it := bsonkit.Iterate(a.Document("$merge", spec)); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "into":
			if v.Type != bson.TypeString && v.Type != bson.TypeEmbeddedDocument {
				a.Fail(51178, "$merge 'into' field  must be either a string or an object, but found %s", bsonkit.TypeName(v.Type))
			}
			m.into = outTarget(&a, "$merge", db, v)
		case "on":
			m.on = mergeFields(&a, v)
		case "let":
			m.let = a.Document(name, v)
		case "whenMatched":
			switch v.Type {
			case bson.TypeArray:
				m.whenMatched, m.pipeline = "pipeline", v
			case bson.TypeString:
				m.whenMatched = a.OneOf(name, v, "merge", "replace", "keepExisting", "fail")
			default:
				a.Fail(51191, "$merge 'whenMatched' field  must be either a string or an array, but found %s", bsonkit.TypeName(v.Type))
			}
		case "whenNotMatched":
			m.whenNotMatched = a.OneOf(name, v, "insert", "discard", "fail")
		default:
			a.Unknown(40415, "$merge", name)
		}
	}
	if m.into.Collection == "" {
		a.Fail(40414, "BSON field '$merge.into' is missing but a required field")
	}
	m.refuse(&a)
	if a.Err == nil && !uniqueOn(c, m) {
		a.Fail(51183, "Cannot find index to verify that join fields will be unique")
	}
	return m, a.Err
}

// refuse finds what does not go together.
func (m mergeStage) refuse(a *command.Arguments) {
	name, taken := bsonkit.Get(m.let, "new")
	switch {
	case m.whenMatched == "fail" && m.whenNotMatched != "insert":
		a.Fail(51181, "Combination of $merge modes 'whenMatched: %s' and 'whenNotMatched: %s' is not supported", m.whenMatched, m.whenNotMatched)
	case m.let != nil && m.whenMatched != "pipeline":
		a.Fail(51199, "Cannot use 'let' variables with 'whenMatched: %s' mode", m.whenMatched)
	case taken && !isRoot(name) || m.let != nil && !taken:
		a.Fail(51273, "'let' may not define a value for the reserved 'new' variable other than '$$ROOT'")
	}
	for i, field := range m.on {
		if slices.Contains(m.on[:i], field) {
			a.Fail(31465, "Found a duplicate field '%s'", field)
		}
	}
}

func isRoot(v bson.RawValue) bool {
	s, _ := v.StringValueOK()
	return s == "$$ROOT"
}

func mergeFields(a *command.Arguments, v bson.RawValue) []string {
	if name, ok := v.StringValueOK(); ok {
		return []string{name}
	}
	if v.Type != bson.TypeArray {
		a.Fail(51186, "$merge 'on' field  must be either a string or an array of strings, but found %s", bsonkit.TypeName(v.Type))
		return nil
	}
	var fields []string
	for _, element := range a.Array("on", v) {
		name, ok := element.StringValueOK()
		if !ok {
			a.Fail(51134, "$merge 'on' array elements must be strings, but found %s", bsonkit.TypeName(element.Type))
		}
		fields = append(fields, name)
	}
	if len(fields) == 0 {
		a.Fail(51187, "If explicitly specifying $merge 'on', must include at least one field")
	}
	return fields
}

// uniqueOn reports that documents are told apart by the fields they are merged
// on.
func uniqueOn(c *command.Call, m mergeStage) bool {
	if len(m.on) == 1 && m.on[0] == "_id" {
		return true
	}
	info, _ := c.Server.Engine.Collection(m.into)
	for _, spec := range info.Indexes {
		same := spec.Unique && spec.Partial == nil && spec.Collation.IsSimple() && len(spec.Fields) == len(m.on)
		for _, name := range m.on {
			same = same && spec.HasField(name)
		}
		if same {
			return true
		}
	}
	return false
}

// mergeDocument stores one result.
func mergeDocument(ctx context.Context, c *command.Call, m mergeStage, doc bson.Raw) error {
	doc, err := c.Server.Engine.PrepareInsert(doc)
	if err != nil {
		return err
	}
	if m.whenMatched == "fail" {
		_, err := c.Server.Engine.Insert(ctx, c.Write(), m.into, []bson.Raw{doc})
		return err
	}
	filter, err := m.filter(doc)
	if err != nil {
		return err
	}
	change, err := mergeChange(c, m, doc)
	if err != nil {
		return err
	}
	statement := newUpdate(filter, change, nil, storage.Hint{}, false, false)
	if m.whenNotMatched == "insert" {
		statement.Upsert = func() (bson.Raw, error) { return doc, nil }
	}
	if m.whenMatched == "keepExisting" {
		statement.Apply = func(present bson.Raw) (modify.Applied, error) { return modify.Applied{Doc: present}, nil }
	}
	result, err := c.Server.Engine.Update(ctx, c.Write(), m.into, statement)
	if err == nil && result.Matched == 0 && m.whenNotMatched == "fail" {
		return mongoerr.New(mongoerr.MergeStageNoMatchingDocument,
			"$merge could not find a matching document in the target collection for at least one document in the source collection")
	}
	return err
}

// filter finds the document that a new one is merged into.
func (m mergeStage) filter(doc bson.Raw) (*match.Filter, error) {
	b := bsoncore.NewDocumentBuilder()
	for _, path := range m.on {
		v, there := bsonkit.Lookup(doc, path)
		if !there || v.Type == bson.TypeNull || v.Type == bson.TypeUndefined || v.Type == bson.TypeArray {
			return nil, mongoerr.New(51132, "$merge write error: 'on' field '%s' cannot be missing, null, undefined or an array", path)
		}
		b.StartDocument(path).AppendValue("$eq", bsoncore.Value{Type: bsoncore.Type(v.Type), Data: v.Value}).FinishDocument()
	}
	return match.Compile(bson.Raw(b.Build()), expression.Env{})
}

// mergeTogether is what "merge" does: the new fields take the place of the old.
var mergeTogether = bson.A{bson.D{{Key: "$replaceWith", Value: bson.D{{
	Key: "$mergeObjects", Value: bson.A{"$$ROOT", "$$new"},
}}}}}

// mergeChange is what happens to a matched document.
func mergeChange(c *command.Call, m mergeStage, doc bson.Raw) (*modify.Update, error) {
	env := c.Env(nil)
	update := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}
	switch m.whenMatched {
	case "merge":
		kind, data, err := bson.MarshalValue(mergeTogether)
		if err != nil {
			return nil, err
		}
		update = bson.RawValue{Type: kind, Value: data}
		env.Let = newOnly(doc)
	case "pipeline":
		let, err := m.variables(env, doc)
		if err != nil {
			return nil, err
		}
		update, env.Let = m.pipeline, let
	}
	return modify.Compile(replacement(c, update), modify.Options{SinceFive: c.Server.Version.Has(5), Env: env})
}

// newOnly are the variables by default: {new: the new document}.
func newOnly(doc bson.Raw) []bson.Raw {
	return []bson.Raw{bson.Raw(bsoncore.NewDocumentBuilder().AppendDocument("new", bsoncore.Document(doc)).Build())}
}

// variables are those of the pipeline.
func (m mergeStage) variables(env expression.Env, doc bson.Raw) ([]bson.Raw, error) {
	if m.let == nil {
		return newOnly(doc), nil
	}
	var names []string
	var compiled []*expression.Expr
	for it := bsonkit.Iterate(m.let); it.Next(); {
		e, err := expression.Compile(it.Value(), env)
		if err != nil {
			return nil, err
		}
		names, compiled = append(names, string(it.Key())), append(compiled, e)
	}
	values, err := expression.EvalAll(compiled, doc)
	if err != nil {
		return nil, err
	}
	b := bsonkit.NewBuilder(nil)
	for i, v := range values {
		if v.Type == bsonkit.Missing {
			v.Type = bson.TypeUndefined
		}
		b.Append(names[i], v)
	}
	return []bson.Raw{b.Finish()}, nil
}
