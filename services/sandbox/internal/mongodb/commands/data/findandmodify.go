package data

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
	"changerelay/services/sandbox/internal/mongodb/query/match"
	"changerelay/services/sandbox/internal/mongodb/query/modify"
)

// modification are the arguments of findAndModify.
type modification struct {
	// statement is its number in a retryable write.
	statement    int32
	filter       bson.Raw
	sort         bson.Raw
	fields       bson.Raw
	update       bson.RawValue
	arrayFilters []bson.Raw
	hint         storage.Hint
	remove       bool
	upsert       bool
	returnNew    bool
	bypass       bool
	collation    *collation.Collation
}

func findAndModify(ctx context.Context, c *command.Call, r *command.Reply) error {
	m, err := parseModification(c)
	if err != nil {
		return err
	}
	ns, err := c.Collection()
	if err != nil {
		return err
	}
	if err := c.NotView(ns); err != nil {
		return err
	}
	env := c.Env(nil)
	m.collation = c.CollationOf(ns, m.collation)
	env.Collation = m.collation
	filter, err := match.CompileQuery(m.filter, env)
	if err != nil {
		return err
	}
	projection, err := query.CompileProjection(m.fields, filter, env)
	if err != nil {
		return err
	}
	if m.returnNew && projection.Positional() {
		return mongoerr.New(mongoerr.BadValue, "cannot use a positional projection and return the new document")
	}
	sort, err := query.CompileSort(m.sort)
	if err != nil {
		return err
	}
	result, err := modifyOne(ctx, c, ns, m, filter, sort.In(m.collation))
	if err != nil {
		return err
	}
	if err := m.retried(result, c.Retry); err != nil {
		return err
	}
	if c.Retry != nil && len(c.Retry.Repeated) > 0 && c.Server.Version.Has(6) {
		r.Int32("retriedStmtId", c.Retry.Repeated[0])
	}
	return m.answer(r, result, projection)
}

func parseModification(c *command.Call) (modification, error) {
	var m modification
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.Name:
		case "query":
			m.filter = documentOfModification(c, &a, name, v, 31160)
		case "sort":
			m.sort = documentOfModification(c, &a, name, v, 31174)
		case "fields":
			m.fields = documentOfModification(c, &a, name, v, 31175)
		case "update":
			m.update = v
		case "remove":
			m.remove = flag(c, &a, name, v)
		case "upsert":
			m.upsert = flag(c, &a, name, v)
		case "new":
			m.returnNew = flag(c, &a, name, v)
		case "arrayFilters":
			m.arrayFilters = a.Documents(name, v)
		case "bypassDocumentValidation":
			m.bypass = a.Truth(name, v)
		case "hint":
			m.hint = a.Hint(name, v)
		case "collation":
			m.collation = a.Collation(v)
		case "stmtId":
			m.statement = statementNumber(&a, name, v)
		default:
			if !command.IsGeneric(name) && !c.TakesLet(&a, name, v) {
				a.Fail(51177, "BSON field '%s' is an unknown field.", name)
			}
		}
	}
	m.refuse(&a)
	return m, a.Err
}

// flag takes anything before 5.0 (find_and_modify_request.cpp, trueValue).
func flag(c *command.Call, a *command.Arguments, name string, v bson.RawValue) bool {
	if !c.Server.Version.Has(5) {
		return bsonkit.Truthy(v)
	}
	return a.Truth(name, v)
}

// documentOfModification takes no null and has a code for each field before 5.0.
func documentOfModification(c *command.Call, a *command.Arguments, name string, v bson.RawValue, code mongoerr.Code) bson.Raw {
	if v.Type != bson.TypeEmbeddedDocument && !c.Server.Version.Has(5) {
		a.Fail(code, "'%s' parameter must be an object, found %s", name, bsonkit.TypeName(v.Type))
	}
	return a.Document(name, v)
}

// refuse finds arguments that do not go together.
func (m modification) refuse(a *command.Arguments) {
	hasUpdate := m.update.Type != 0
	switch {
	case m.remove && hasUpdate:
		a.Fail(mongoerr.FailedToParse, "Cannot specify both an update and remove=true")
	case m.remove && m.arrayFilters != nil:
		a.Fail(mongoerr.FailedToParse, "Cannot specify arrayFilters and remove=true")
	case m.remove && m.upsert:
		a.Fail(mongoerr.FailedToParse, "Cannot specify both upsert=true and remove=true")
	case m.remove && m.returnNew:
		a.Fail(mongoerr.FailedToParse, "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document")
	case !m.remove && !hasUpdate:
		a.Fail(mongoerr.FailedToParse, "Either an update or remove=true must be specified")
	}
}

func modifyOne(ctx context.Context, c *command.Call, ns oplog.Namespace, m modification, filter *match.Filter, sort *query.Sort,
) (engine.Result, error) {
	w := c.Write()
	w.BypassValidation, w.Documents, w.Statement = m.bypass, true, m.statement
	if m.remove {
		return c.Server.Engine.Delete(ctx, w, ns, engine.Selection{Filter: filter, Sort: sort, Hint: m.hint})
	}
	env := c.Env(nil)
	env.Collation = m.collation
	change, err := modify.Compile(replacement(c, m.update), modify.Options{SinceFive: c.Server.Version.Has(5), ArrayFilters: m.arrayFilters, Env: env})
	if err != nil {
		return engine.Result{}, err
	}
	return c.Server.Engine.Update(ctx, w, ns, newUpdate(filter, change, sort, m.hint, false, m.upsert))
}

// retried refuses a retry that asks for something else than was done under its
// number (write_ops_retryability.cpp, validateFindAndModifyRetryability).
func (m modification) retried(result engine.Result, retry *engine.Retry) error {
	if retry == nil {
		return nil
	}
	code := mongoerr.Code(0)
	switch result.Operation {
	case oplog.OpDelete:
		if !m.remove {
			code = 40606
		}
	case oplog.OpInsert:
		if !m.upsert {
			code = 40608
		}
	case oplog.OpUpdate:
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

func (m modification) answer(r *command.Reply, result engine.Result, projection *query.Projection) error {
	r.OpenDocument("lastErrorObject")
	r.Int32("n", int32(result.Matched))
	if !m.remove {
		r.Boolean("updatedExisting", result.Matched > 0 && result.Upserted.Type == 0)
		if result.Upserted.Type != 0 {
			r.Value("upserted", result.Upserted)
		}
	}
	r.Close()
	shown := result.Before
	if m.returnNew {
		shown = result.After
	}
	if shown == nil {
		r.Null("value")
		return nil
	}
	shown, err := projection.Apply(shown)
	if err != nil {
		return err
	}
	r.Document("value", shown)
	return nil
}

// findAndModifyPrivileges are those of findAndModify, which also shows the
// document.
func findAndModifyPrivileges(c *command.Call) []access.Privilege {
	actions := []access.Action{access.Find}
	given := func(name string) bool {
		v, _ := bsonkit.Get(c.Body, name)
		return flag(c, &command.Arguments{}, name, v)
	}
	if given("remove") {
		actions = append(actions, access.Remove)
	} else {
		actions = append(actions, access.Update)
	}
	if given("upsert") {
		actions = append(actions, access.Insert)
	}
	return c.OnOwnCollection(actions...)
}
