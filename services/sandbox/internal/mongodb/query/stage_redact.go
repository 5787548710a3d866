package query

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
)

// redactStage decides for each document, and for those in it where it descends,
// whether it stays.
func redactStage(v bson.RawValue, env PipelineEnv) (stage, error) {
	e, err := expression.CompileRedact(v, env.Env)
	if err != nil {
		return stage{}, err
	}
	r := redaction{e}
	return stage{each: func(doc bson.Raw) (bson.Raw, bool, error) { return r.document(doc, doc) }}, nil
}

type redaction struct{ e *expression.Expr }

func (r redaction) document(root, doc bson.Raw) (bson.Raw, bool, error) {
	verdict, err := r.e.EvalIn(root, doc)
	if err != nil {
		return nil, false, err
	}
	switch s, _ := verdict.StringValueOK(); s {
	case expression.Keep:
		return doc, true, nil
	case expression.Prune:
		return nil, false, nil
	case expression.Descend:
		made, err := r.descend(root, doc)
		return made, err == nil, err
	}
	return nil, false, mongoerr.New(17053,
		"$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and $$PRUNE, but returned %s",
		bsonkit.Describe(verdict))
}

func (r redaction) descend(root, doc bson.Raw) (bson.Raw, error) {
	b := bsonkit.NewBuilder(nil)
	for it := bsonkit.Iterate(doc); it.Next(); {
		v, err := r.value(root, it.Value())
		if err != nil {
			return nil, err
		}
		b.Append(string(it.Key()), v)
	}
	return b.Finish(), nil
}

func (r redaction) value(root bson.Raw, v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		doc, ok, err := r.document(root, v.Value)
		if err != nil || !ok {
			return bson.RawValue{}, err
		}
		return bsonkit.Document(doc), nil
	case bson.TypeArray:
		return mapElements(v, func(w bson.RawValue) (bson.RawValue, error) { return r.value(root, w) })
	}
	return v, nil
}
