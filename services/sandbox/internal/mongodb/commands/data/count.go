package data

import (
	"context"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

func count(ctx context.Context, c *command.Call, r *command.Reply) error {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	var filter bson.Raw
	var hint storage.Hint
	var limit, skip int64
	var by *collation.Collation
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.Name, "fields":
		case "comment":
			textBefore5(c, &a, name, v)
		case "query":
			filter = a.Document(name, v)
		case "limit":
			limit = countLimit(&a, name, v)
		case "skip":
			skip = countSkip(&a, name, v)
		case "hint":
			hint = a.Hint(name, v)
		case "collation":
			by = a.Collation(v)
		default:
			if !command.IsGeneric(name) {
				a.Unknown(40415, "count", name)
			}
		}
	}
	if a.Err != nil {
		return a.Err
	}
	ns, err := c.Collection()
	if err != nil {
		return err
	}
	n, err := countMatching(ctx, c, ns, filter, hint, by)
	if err != nil {
		return err
	}
	n = max(n-skip, 0)
	if limit > 0 {
		n = min(n, limit)
	}
	r.Int32("n", int32(n))
	return nil
}

// textBefore5 refuses a comment that is no text where 4.4.1 does; other commands take any.
func textBefore5(c *command.Call, a *command.Arguments, name string, v bson.RawValue) {
	if !c.Server.Version.Has(5) {
		a.Text(name, v)
	}
}

// countLimit is the limit of a count: it may be negative, which says the same.
func countLimit(a *command.Arguments, name string, v bson.RawValue) int64 {
	n := a.WholeNumber(name, v)
	if n == math.MinInt64 {
		a.Fail(mongoerr.BadValue, "limit value for count cannot be min long")
	}
	return max(n, -n)
}

func countSkip(a *command.Arguments, name string, v bson.RawValue) int64 {
	n := a.WholeNumber(name, v)
	if n < 0 {
		a.Fail(mongoerr.FailedToParse, "Expected a positive number in: %s: %d", name, n)
	}
	return n
}

func countMatching(ctx context.Context, c *command.Call, ns oplog.Namespace, filter bson.Raw, hint storage.Hint, by *collation.Collation,
) (int64, error) {
	view, err := c.View(ns)
	if err != nil {
		return 0, err
	}
	src, err := throughView(ctx, c, ns, by, command.StageOf("$match", filter)...)
	if err != nil {
		return 0, err
	}
	if src != nil {
		defer src.Close()
		return countAll(ctx, src)
	}
	if len(filter) <= len(bsonkit.Empty) && hint.IsZero() {
		return int64(view.Count()), nil
	}
	env := c.Env(nil)
	env.Collation = c.CollationOf(ns, by)
	compiled, err := match.CompileQuery(filter, env)
	if err != nil {
		return 0, err
	}
	docs, err := view.Documents(compiled, nil, hint)
	if err != nil {
		return 0, err
	}
	docs.KeysOnly()
	docs.Interrupted = c.Interrupted
	return countAll(ctx, docs)
}

func countAll(ctx context.Context, docs command.Puller) (int64, error) {
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
