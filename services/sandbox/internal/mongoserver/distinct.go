package mongoserver

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
	"changerelay/services/sandbox/internal/query"
)

func distinct(ctx context.Context, c *call, r *reply) error {
	a := arguments{mismatch: mongoerr.TypeMismatch}
	var filter bson.Raw
	key := ""
	var collation bson.RawValue
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.name:
		case "comment":
			a.text(name, v)
		case "key":
			key = a.text(name, v)
		case "query":
			filter = a.document(name, v)
		case "collation":
			collation = v
		default:
			if !isGeneric(name) {
				a.unknown(40415, "distinct", name)
			}
		}
	}
	if collation.Type != 0 {
		a.collation(collation, true)
	}
	if key == "" {
		a.fail(40414, "BSON field 'distinct.key' is missing but a required field")
	}
	if a.err != nil {
		return a.err
	}
	ns, err := c.collection()
	if err != nil {
		return err
	}
	compiled, err := query.CompileFilter(filter, c.env(nil))
	if err != nil {
		return err
	}
	view, err := c.view(ns)
	if err != nil {
		return err
	}
	docs, err := view.Documents(compiled, nil, engine.Hint{})
	if err != nil {
		return err
	}
	values, err := distinctValues(ctx, docs, key)
	if err != nil {
		return err
	}
	r.openArray("values")
	for i, v := range values {
		r.value(arrayKey(i), v)
	}
	r.close()
	return nil
}

// distinctValues gives each value at a path once, in order; of an array its
// elements.
func distinctValues(ctx context.Context, docs puller, path string) ([]bson.RawValue, error) {
	seen := map[string]bool{}
	parsed := bsonkit.ParsePath(path)
	var values, found []bson.RawValue
	for n := 1; ; n++ {
		doc, err := docs.Next()
		if err != nil {
			return nil, err
		}
		if doc == nil {
			break
		}
		if n%checkEvery == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		found, _ = bsonkit.AppendIndexValues(found[:0], doc, parsed)
		for _, v := range found {
			if v.Type == bsonkit.Missing || v.Type == bson.TypeUndefined {
				continue
			}
			if key := string(bsonkit.AppendKey(nil, v)); !seen[key] {
				seen[key] = true
				values = append(values, v)
			}
		}
	}
	slices.SortStableFunc(values, bsonkit.Compare)
	return values, nil
}
