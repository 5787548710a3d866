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

func update(ctx context.Context, c *call, r *reply) error {
	w, err := c.parseWrite("updates")
	if err != nil {
		return err
	}
	statements := make([]updateStatement, len(w.statements))
	for i, doc := range w.statements {
		if statements[i], err = c.parseUpdateStatement(w.ns, doc); err != nil {
			return err
		}
	}
	var failed writeErrors
	var upserted []engine.Result
	var upsertedAt []int
	matched, modified := 0, 0
	for i, statement := range statements {
		result, err := c.runUpdate(ctx, w, i, statement)
		matched += result.Matched
		modified += result.Modified
		if result.Upserted.Type != 0 {
			upserted, upsertedAt = append(upserted, result), append(upsertedAt, i)
		}
		if err == nil {
			continue
		}
		if err := failed.add(c, i, err); err != nil {
			return err
		}
		if w.ordered {
			break
		}
	}
	r.int32("n", int32(matched))
	r.int32("nModified", int32(modified))
	if len(upserted) > 0 {
		r.openArray("upserted")
		for i, result := range upserted {
			r.openDocument(arrayKey(i))
			r.int32("index", int32(upsertedAt[i]))
			r.value("_id", result.Upserted)
			r.close()
		}
		r.close()
	}
	failed.append(r)
	return nil
}

// updateStatement is one element of updates.
type updateStatement struct {
	filter       bson.Raw
	update       bson.RawValue
	constants    bson.Raw
	arrayFilters []bson.Raw
	multi        bool
	upsert       bool
	hint         engine.Hint
	collation    *collation.Collation
	// change is the compiled update; or refused says why it is none.
	change  *query.Update
	refused error
}

func (c *call) parseUpdateStatement(ns engine.Namespace, doc bson.Raw) (updateStatement, error) {
	var u updateStatement
	a := arguments{mismatch: mongoerr.TypeMismatch}
	hasQuery := false
	for it := bsonkit.Iterate(doc); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "q":
			u.filter, hasQuery = a.document(name, v), true
		case "u":
			u.update = v
		case "c":
			u.constants = a.document(name, v)
		case "multi":
			u.multi = a.boolean(name, v)
		case "upsert":
			u.upsert = a.boolean(name, v)
		case "arrayFilters":
			u.arrayFilters = a.documents(name, v)
		case "hint":
			u.hint = a.hint(name, v)
		case "collation":
			u.collation = a.collation(v)
		default:
			a.unknown(40415, "update.updates", name)
		}
	}
	if !hasQuery {
		a.fail(40414, "BSON field 'update.updates.q' is missing but a required field")
	}
	if u.update.Type == 0 {
		a.fail(40414, "BSON field 'update.updates.u' is missing but a required field")
	}
	if a.err != nil {
		return u, a.err
	}
	env := c.env(u.constants)
	env.Collation = c.collationOf(ns, u.collation)
	u.change, u.refused = query.CompileUpdate(u.update, query.UpdateOptions{ArrayFilters: u.arrayFilters, Env: env})
	if u.update.Type == bson.TypeArray {
		// A pipeline that is none fails the command, not the statement.
		return u, u.refused
	}
	return u, nil
}

func (c *call) runUpdate(ctx context.Context, w writeCommand, i int, u updateStatement) (engine.Result, error) {
	env := c.env(nil)
	env.Collation = c.collationOf(w.ns, u.collation)
	filter, err := query.CompileFilter(u.filter, env)
	if err != nil {
		return engine.Result{}, err
	}
	if u.refused != nil {
		return engine.Result{}, u.refused
	}
	if u.multi && u.change.IsReplacement() {
		return engine.Result{}, mongoerr.New(mongoerr.FailedToParse, "multi update is not supported for replacement-style update")
	}
	if u.multi && c.retry != nil {
		return engine.Result{}, mongoerr.New(mongoerr.InvalidOptions, "Cannot use retryable writes with multi=true")
	}
	return c.server.engine.Update(ctx, w.write(c, i), w.ns, newUpdate(filter, u.change, nil, u.hint, u.multi, u.upsert))
}

// newUpdate makes the engine's statement of a compiled update.
func newUpdate(
	filter *query.Filter, change *query.Update, sort *query.Sort, hint engine.Hint, multi, upsert bool,
) engine.Update {
	u := engine.Update{
		Selection: engine.Selection{Filter: filter, Sort: sort, Hint: hint, Multi: multi},
		Apply:     func(doc bson.Raw) (query.Applied, error) { return change.Apply(doc, filter) },
	}
	if upsert {
		u.Upsert = func() (bson.Raw, error) { return change.Upsert(filter) }
	}
	return u
}
