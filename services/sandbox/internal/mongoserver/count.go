package mongoserver

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
	"changerelay/services/sandbox/internal/query"
	"changerelay/services/sandbox/internal/query/collation"
)

func count(ctx context.Context, c *call, r *reply) error {
	a := arguments{mismatch: mongoerr.TypeMismatch}
	var filter bson.Raw
	var hint engine.Hint
	var limit, skip int64
	var by *collation.Collation
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.name, "fields":
		case "comment":
			a.text(name, v)
		case "query":
			filter = a.document(name, v)
		case "limit":
			limit = a.integer(name, v)
		case "skip":
			skip = a.count(name, v)
		case "hint":
			hint = a.hint(name, v)
		case "collation":
			by = a.collation(v)
		default:
			if !isGeneric(name) {
				a.unknown(40415, "count", name)
			}
		}
	}
	if a.err != nil {
		return a.err
	}
	ns, err := c.collection()
	if err != nil {
		return err
	}
	n, err := c.countMatching(ctx, ns, filter, hint, by)
	if err != nil {
		return err
	}
	n = max(n-skip, 0)
	if limit < 0 {
		limit = -limit
	}
	if limit > 0 {
		n = min(n, limit)
	}
	r.int32("n", int32(n))
	return nil
}

func (c *call) countMatching(
	ctx context.Context, ns engine.Namespace, filter bson.Raw, hint engine.Hint, by *collation.Collation,
) (int64, error) {
	view, err := c.view(ns)
	if err != nil {
		return 0, err
	}
	src, err := c.throughView(ctx, ns, by, stageOf("$match", filter)...)
	if err != nil {
		return 0, err
	}
	if src != nil {
		defer src.close()
		return countAll(ctx, pulls{src})
	}
	if len(filter) <= len(emptyDocument) && hint.IsZero() {
		return int64(view.Count()), nil
	}
	env := c.env(nil)
	env.Collation = c.collationOf(ns, by)
	compiled, err := query.CompileFilter(filter, env)
	if err != nil {
		return 0, err
	}
	docs, err := view.Documents(compiled, nil, hint)
	if err != nil {
		return 0, err
	}
	return countAll(ctx, docs)
}

func countAll(ctx context.Context, docs puller) (int64, error) {
	for n := int64(0); ; n++ {
		doc, err := docs.Next()
		if doc == nil || err != nil {
			return n, err
		}
		if n%checkEvery == 0 && ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
	}
}
