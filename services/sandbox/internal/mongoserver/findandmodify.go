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

// modification are the arguments of findAndModify.
type modification struct {
	filter       bson.Raw
	sort         bson.Raw
	fields       bson.Raw
	update       bson.RawValue
	arrayFilters []bson.Raw
	hint         engine.Hint
	remove       bool
	upsert       bool
	returnNew    bool
	bypass       bool
	collation    *collation.Collation
}

func findAndModify(ctx context.Context, c *call, r *reply) error {
	m, err := c.parseModification()
	if err != nil {
		return err
	}
	ns, err := c.collection()
	if err != nil {
		return err
	}
	if err := c.notView(ns); err != nil {
		return err
	}
	env := c.env(nil)
	m.collation = c.collationOf(ns, m.collation)
	env.Collation = m.collation
	filter, err := query.CompileFilter(m.filter, env)
	if err != nil {
		return err
	}
	projection, err := query.CompileProjection(m.fields, filter, env)
	if err != nil {
		return err
	}
	sort, err := query.CompileSort(m.sort)
	if err != nil {
		return err
	}
	result, err := c.modify(ctx, ns, m, filter, sort.In(m.collation))
	if err != nil {
		return err
	}
	if err := m.retried(result, c.retry); err != nil {
		return err
	}
	return m.answer(r, result, projection)
}

func (c *call) parseModification() (modification, error) {
	var m modification
	a := arguments{mismatch: mongoerr.TypeMismatch}
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.name:
		case "query":
			m.filter = a.document(name, v)
		case "sort":
			m.sort = a.document(name, v)
		case "fields":
			m.fields = a.document(name, v)
		case "update":
			m.update = v
		case "remove":
			m.remove = a.truth(name, v)
		case "upsert":
			m.upsert = a.truth(name, v)
		case "new":
			m.returnNew = a.truth(name, v)
		case "arrayFilters":
			m.arrayFilters = a.documents(name, v)
		case "bypassDocumentValidation":
			m.bypass = a.truth(name, v)
		case "hint":
			m.hint = a.hint(name, v)
		case "collation":
			m.collation = a.collation(v)
		default:
			if !isGeneric(name) {
				a.fail(51177, "BSON field '%s' is an unknown field.", name)
			}
		}
	}
	m.refuse(&a)
	return m, a.err
}

// refuse finds arguments that do not go together.
func (m modification) refuse(a *arguments) {
	hasUpdate := m.update.Type != 0
	switch {
	case m.remove && hasUpdate:
		a.fail(mongoerr.FailedToParse, "Cannot specify both an update and remove=true")
	case m.remove && m.upsert:
		a.fail(mongoerr.FailedToParse, "Cannot specify both upsert=true and remove=true")
	case m.remove && m.returnNew:
		a.fail(mongoerr.FailedToParse, "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document")
	case !m.remove && !hasUpdate:
		a.fail(mongoerr.FailedToParse, "Either an update or remove=true must be specified")
	}
}

func (c *call) modify(
	ctx context.Context, ns engine.Namespace, m modification, filter *query.Filter, sort *query.Sort,
) (engine.Result, error) {
	w := c.write()
	w.BypassValidation, w.Documents = m.bypass, true
	if m.remove {
		return c.server.engine.Delete(ctx, w, ns, engine.Selection{Filter: filter, Sort: sort, Hint: m.hint})
	}
	env := c.env(nil)
	env.Collation = m.collation
	change, err := query.CompileUpdate(m.update, query.UpdateOptions{ArrayFilters: m.arrayFilters, Env: env})
	if err != nil {
		return engine.Result{}, err
	}
	return c.server.engine.Update(ctx, w, ns, newUpdate(filter, change, sort, m.hint, false, m.upsert))
}

// retried refuses a retry that asks for something else than was done under its
// number (write_ops_retryability.cpp, validateFindAndModifyRetryability).
func (m modification) retried(result engine.Result, retry *engine.Retry) error {
	if retry == nil {
		return nil
	}
	code := mongoerr.Code(0)
	switch result.Operation {
	case engine.OpDelete:
		if !m.remove {
			code = 40606
		}
	case engine.OpInsert:
		if !m.upsert {
			code = 40608
		}
	case engine.OpUpdate:
		if m.remove {
			code = 40609
		}
	}
	if code == 0 {
		return nil
	}
	return mongoerr.New(code, "findAndModify retry request is not compatible with previous write in the transaction of type: %s",
		result.Operation)
}

func (m modification) answer(r *reply, result engine.Result, projection *query.Projection) error {
	r.openDocument("lastErrorObject")
	r.int32("n", int32(result.Matched))
	if !m.remove {
		r.boolean("updatedExisting", result.Matched > 0 && result.Upserted.Type == 0)
		if result.Upserted.Type != 0 {
			r.value("upserted", result.Upserted)
		}
	}
	r.close()
	shown := result.Before
	if m.returnNew {
		shown = result.After
	}
	if shown == nil {
		r.null("value")
		return nil
	}
	shown, err := projection.Apply(shown)
	if err != nil {
		return err
	}
	r.document("value", shown)
	return nil
}
