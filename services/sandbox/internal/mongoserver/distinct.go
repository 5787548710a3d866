package mongoserver

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
	"changerelay/services/sandbox/internal/query"
	"changerelay/services/sandbox/internal/query/collation"
)

func distinct(ctx context.Context, c *call, r *reply) error {
	a := arguments{mismatch: mongoerr.TypeMismatch}
	var filter bson.Raw
	key := ""
	var by *collation.Collation
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
			by = a.collation(v)
		default:
			if !isGeneric(name) {
				a.unknown(40415, "distinct", name)
			}
		}
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
	env := c.env(nil)
	by = c.collationOf(ns, by)
	env.Collation = by
	compiled, err := query.CompileFilter(filter, env)
	if err != nil {
		return err
	}
	docs, err := c.distinctDocuments(ctx, ns, filter, compiled, by)
	if err != nil {
		return err
	}
	values, err := distinctValues(ctx, docs, key, by)
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

func (c *call) distinctDocuments(
	ctx context.Context, ns engine.Namespace, filter bson.Raw, compiled *query.Filter, by *collation.Collation,
) (puller, error) {
	src, err := c.throughView(ctx, ns, by, stageOf("$match", filter)...)
	if err != nil {
		return nil, err
	}
	if src != nil {
		return pulls{src}, nil
	}
	view, err := c.view(ns)
	if err != nil {
		return nil, err
	}
	return view.Documents(compiled, nil, engine.Hint{})
}

// distinctValues gives each value at a path once, in order; of an array its
// elements.
func distinctValues(
	ctx context.Context, docs puller, path string, by *collation.Collation,
) ([]bson.RawValue, error) {
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
			if key := string(bsonkit.AppendKey(nil, by.Fold(v))); !seen[key] {
				seen[key] = true
				values = append(values, v)
			}
		}
	}
	slices.SortStableFunc(values, func(a, b bson.RawValue) int {
		return bsonkit.Compare(by.Fold(a), by.Fold(b))
	})
	return values, nil
}
