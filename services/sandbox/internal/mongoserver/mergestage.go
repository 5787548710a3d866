package mongoserver

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
	"changerelay/services/sandbox/internal/query"
	"changerelay/services/sandbox/internal/query/expression"
)

// mergeStage is a $merge
// (https://www.mongodb.com/docs/v4.4/reference/operator/aggregation/merge/).
type mergeStage struct {
	into engine.Namespace
	on   []string
	// let are the variables of the pipeline, expressions over the new document.
	let         bson.Raw
	whenMatched string
	// pipeline is what happens to a matched document, where it is one.
	pipeline       bson.RawValue
	whenNotMatched string
}

func (c *call) merge(ctx context.Context, g aggregation, spec bson.RawValue, src source) error {
	m, err := c.parseMerge(g.ns.DB, spec)
	if err != nil {
		return err
	}
	for doc, err := range sourced(src) {
		if err != nil {
			return err
		}
		if err := c.mergeDocument(ctx, m, doc); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) parseMerge(db string, spec bson.RawValue) (mergeStage, error) {
	m := mergeStage{on: []string{"_id"}, whenMatched: "merge", whenNotMatched: "insert"}
	a := arguments{mismatch: mongoerr.TypeMismatch}
	if _, ok := spec.StringValueOK(); ok {
		m.into = a.outTarget("$merge", db, spec)
		return m, a.err
	}
	for it := bsonkit.Iterate(a.document("$merge", spec)); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "into":
			m.into = a.outTarget("$merge", db, v)
		case "on":
			m.on = a.mergeFields(v)
		case "let":
			m.let = a.document(name, v)
		case "whenMatched":
			if v.Type == bson.TypeArray {
				m.whenMatched, m.pipeline = "pipeline", v
			} else {
				m.whenMatched = a.oneOf(name, v, "merge", "replace", "keepExisting", "fail")
			}
		case "whenNotMatched":
			m.whenNotMatched = a.oneOf(name, v, "insert", "discard", "fail")
		default:
			a.unknown(40415, "$merge", name)
		}
	}
	if m.into.Collection == "" {
		a.fail(40414, "BSON field '$merge.into' is missing but a required field")
	}
	if m.let != nil && m.whenMatched != "pipeline" {
		a.fail(51199, "Cannot use 'let' variables with 'whenMatched: %s' mode", m.whenMatched)
	}
	if a.err == nil && !c.uniqueOn(m) {
		a.fail(51183, "Cannot find index to verify that join fields will be unique")
	}
	return m, a.err
}

func (a *arguments) mergeFields(v bson.RawValue) []string {
	if v.Type != bson.TypeArray {
		return []string{a.text("on", v)}
	}
	var fields []string
	for _, element := range a.array("on", v) {
		fields = append(fields, a.text("on", element))
	}
	if len(fields) == 0 {
		a.fail(51187, "If explicitly specifying $merge 'on', must include at least one field")
	}
	return fields
}

// oneOf reads a text that is one of a few.
func (a *arguments) oneOf(name string, v bson.RawValue, allowed ...string) string {
	given := a.text(name, v)
	if slices.Contains(allowed, given) {
		return given
	}
	a.fail(mongoerr.BadValue, "Enumeration value '%s' for field '%s' is not a valid value.", given, name)
	return ""
}

// uniqueOn reports that documents are told apart by the fields they are merged
// on.
func (c *call) uniqueOn(m mergeStage) bool {
	if len(m.on) == 1 && m.on[0] == "_id" {
		return true
	}
	info, _ := c.server.engine.Collection(m.into)
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
func (c *call) mergeDocument(ctx context.Context, m mergeStage, doc bson.Raw) error {
	doc, err := c.server.engine.PrepareInsert(doc)
	if err != nil {
		return err
	}
	if m.whenMatched == "fail" {
		_, err := c.server.engine.Insert(ctx, c.write(), m.into, []bson.Raw{doc})
		return err
	}
	filter, err := m.filter(doc)
	if err != nil {
		return err
	}
	change, err := c.mergeChange(m, doc)
	if err != nil {
		return err
	}
	statement := newUpdate(filter, change, nil, engine.Hint{}, false, false)
	if m.whenNotMatched == "insert" {
		statement.Upsert = func() (bson.Raw, error) { return doc, nil }
	}
	if m.whenMatched == "keepExisting" {
		statement.Apply = func(present bson.Raw) (query.Applied, error) { return query.Applied{Doc: present}, nil }
	}
	result, err := c.server.engine.Update(ctx, c.write(), m.into, statement)
	if err == nil && result.Matched == 0 && m.whenNotMatched == "fail" {
		return mongoerr.New(mongoerr.MergeStageNoMatchingDocument,
			"$merge could not find a matching document in the target collection for at least one document in the source collection")
	}
	return err
}

// filter finds the document that a new one is merged into.
func (m mergeStage) filter(doc bson.Raw) (*query.Filter, error) {
	b := bsoncore.NewDocumentBuilder()
	for _, path := range m.on {
		v, there := bsonkit.Lookup(doc, path)
		if !there || v.Type == bson.TypeNull || v.Type == bson.TypeUndefined || v.Type == bson.TypeArray {
			return nil, mongoerr.New(51132, "$merge write error: 'on' field '%s' cannot be missing, null, undefined or an array", path)
		}
		b.StartDocument(path).AppendValue("$eq", bsoncore.Value{Type: bsoncore.Type(v.Type), Data: v.Value}).FinishDocument()
	}
	return query.CompileFilter(bson.Raw(b.Build()), query.Env{})
}

// mergeTogether is what "merge" does: the new fields take the place of the old.
var mergeTogether = bson.A{bson.D{{Key: "$replaceWith", Value: bson.D{{
	Key: "$mergeObjects", Value: bson.A{"$$ROOT", "$$new"},
}}}}}

// mergeChange is what happens to a matched document.
func (c *call) mergeChange(m mergeStage, doc bson.Raw) (*query.Update, error) {
	env := c.env(nil)
	update := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}
	switch m.whenMatched {
	case "merge":
		kind, data, err := bson.MarshalValue(mergeTogether)
		if err != nil {
			return nil, err
		}
		update = bson.RawValue{Type: kind, Value: data}
		env.Let = bson.Raw(bsoncore.NewDocumentBuilder().AppendDocument("new", bsoncore.Document(doc)).Build())
	case "pipeline":
		let, err := m.variables(env, doc)
		if err != nil {
			return nil, err
		}
		update, env.Let = m.pipeline, let
	}
	return query.CompileUpdate(update, query.UpdateOptions{Env: env})
}

// variables are those of the pipeline: {new: the new document} by default.
func (m mergeStage) variables(env query.Env, doc bson.Raw) (bson.Raw, error) {
	b := bsoncore.NewDocumentBuilder()
	if m.let == nil {
		return bson.Raw(b.AppendDocument("new", bsoncore.Document(doc)).Build()), nil
	}
	for it := bsonkit.Iterate(m.let); it.Next(); {
		compiled, err := expression.Compile(it.Value(), env)
		if err != nil {
			return nil, err
		}
		v, err := compiled.Eval(doc)
		if err != nil {
			return nil, err
		}
		if v.Type == bsonkit.Missing {
			v.Type = bson.TypeUndefined
		}
		b.AppendValue(string(it.Key()), bsoncore.Value{Type: bsoncore.Type(v.Type), Data: v.Value})
	}
	return bson.Raw(b.Build()), nil
}
