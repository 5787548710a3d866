package data

import (
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

func distinct(ctx context.Context, c *command.Call, r *command.Reply) error {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	var filter bson.Raw
	key, named := "", false
	var by *collation.Collation
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.Name:
		case "comment":
			textBefore5(c, &a, name, v)
		case "key":
			named = true
			if key = a.Text(name, v); strings.ContainsRune(key, 0) {
				a.Fail(31032, "Key field cannot contain an embedded null byte")
			}
		case "query":
			filter = a.Document(name, v)
		case "collation":
			by = a.Collation(v)
		default:
			if !command.IsGeneric(name) {
				a.Unknown(40415, "distinct", name)
			}
		}
	}
	if !named {
		a.Fail(40414, "BSON field 'distinct.key' is missing but a required field")
	}
	if a.Err != nil {
		return a.Err
	}
	ns, err := c.Collection()
	if err != nil {
		return err
	}
	env := c.Env(nil)
	by = c.CollationOf(ns, by)
	env.Collation = by
	compiled, err := match.CompileQuery(filter, env)
	if err != nil {
		return err
	}
	docs, end, err := distinctDocuments(ctx, c, ns, key, filter, compiled, by)
	if err != nil {
		return err
	}
	defer end()
	values, err := distinctValues(ctx, docs, key, by)
	if err != nil {
		return err
	}
	r.OpenArray("values")
	for i, v := range values {
		r.Value(bsonkit.ArrayKey(i), v)
	}
	r.Close()
	return nil
}

// distinctDocuments gives the documents whose values count, and what ends them.
func distinctDocuments(
	ctx context.Context, c *command.Call, ns oplog.Namespace, key string, filter bson.Raw, compiled *match.Filter, by *collation.Collation,
) (docs command.Puller, end func(), err error) {
	src, err := throughView(ctx, c, ns, by, command.StageOf("$match", filter)...)
	if err != nil {
		return nil, nil, err
	}
	if src != nil {
		return src, src.Close, nil
	}
	view, err := c.View(ns)
	if err != nil {
		return nil, nil, err
	}
	found, ok := view.Distinct(compiled, key)
	if !ok || !by.IsSimple() {
		if found, err = view.Documents(compiled, nil, storage.Hint{}); err != nil {
			return nil, nil, err
		}
	}
	found.Interrupted = c.Interrupted
	return found, func() {}, nil
}

// distinctValues gives each value at a path once, in order; of an array its
// elements.
func distinctValues(
	ctx context.Context, docs command.Puller, path string, by *collation.Collation,
) ([]bson.RawValue, error) {
	seen := map[string]bool{}
	parsed := bsonkit.ParsePath(path)
	var values, found []bson.RawValue
	size := 0
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
				if size += len(v.Value) + 8; size > bsonkit.MaxDocument {
					return nil, mongoerr.New(17217, "distinct too big, 16mb cap")
				}
			}
		}
	}
	slices.SortStableFunc(values, func(a, b bson.RawValue) int {
		return bsonkit.Compare(by.Fold(a), by.Fold(b))
	})
	return values, nil
}
