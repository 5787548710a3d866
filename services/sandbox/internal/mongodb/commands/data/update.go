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

func update(ctx context.Context, c *command.Call, r *command.Reply) error {
	w, err := parseWrite(c, "updates")
	if err != nil {
		return err
	}
	statements := make([]updateStatement, len(w.statements))
	for i, doc := range w.statements {
		if statements[i], err = parseUpdateStatement(c, w.ns, doc); err != nil {
			return err
		}
	}
	failed := writeErrors{ordered: w.ordered}
	var upserted []engine.Result
	var upsertedAt []int
	matched, modified := 0, 0
	for i, statement := range statements {
		result, err := runUpdate(ctx, c, w, i, statement)
		if err == nil {
			matched += result.Matched
			modified += result.Modified
			if result.Upserted.Type != 0 {
				upserted, upsertedAt = append(upserted, result), append(upsertedAt, i)
			}
			continue
		}
		// What a statement did before it failed is not counted, as on the server.
		if err := failed.add(c, i, err); err != nil {
			return err
		}
		if failed.over {
			break
		}
	}
	r.Int32("n", int32(matched))
	r.Int32("nModified", int32(modified))
	if len(upserted) > 0 {
		r.OpenArray("upserted")
		for i, result := range upserted {
			r.OpenDocument(bsonkit.ArrayKey(i))
			r.Int32("index", int32(upsertedAt[i]))
			r.Value("_id", result.Upserted)
			r.Close()
		}
		r.Close()
	}
	repeated(c, r)
	failed.append(r)
	return nil
}

// unrecognizedStage is the code of a stage that there is not.
const unrecognizedStage mongoerr.Code = 40324

// updateStatement is one element of updates.
type updateStatement struct {
	filter       bson.Raw
	update       bson.RawValue
	constants    bson.Raw
	arrayFilters []bson.Raw
	multi        bool
	upsert       bool
	hint         storage.Hint
	collation    *collation.Collation
}

// compile makes what is applied of a statement. Statements are compiled one at a
// time: what they compute beforehand may be many times what the client has sent.
func (u *updateStatement) compile(c *command.Call, ns oplog.Namespace) (*modify.Update, error) {
	env := c.Env(u.constants)
	env.Collation = c.CollationOf(ns, u.collation)
	return modify.Compile(u.update, modify.Options{SinceFive: c.Server.Version.Has(5), ArrayFilters: u.arrayFilters, Env: env})
}

func parseUpdateStatement(c *command.Call, ns oplog.Namespace, doc bson.Raw) (updateStatement, error) {
	var u updateStatement
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	hasQuery := false
	for it := bsonkit.Iterate(doc); it.Next(); {
		name, v := string(it.Key()), it.Value()
		if command.Absent(v) && name != "u" {
			continue
		}
		switch name {
		case "q":
			u.filter, hasQuery = a.Document(name, v), true
		case "u":
			if u.update = v; v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
				a.Fail(mongoerr.FailedToParse, "Update argument must be either an object or an array")
			}
		case "c":
			u.constants = a.Document(name, v)
		case "multi":
			u.multi = a.Boolean(name, v)
		case "upsert":
			u.upsert = a.Boolean(name, v)
		case "arrayFilters":
			u.arrayFilters = a.Documents(name, v)
		case "hint":
			u.hint = a.Hint(name, v)
		case "collation":
			u.collation = a.Collation(v)
		default:
			a.Unknown(40415, "update.updates", name)
		}
	}
	if !hasQuery {
		a.Fail(40414, "BSON field 'update.updates.q' is missing but a required field")
	}
	if u.update.Type == 0 {
		a.Fail(40414, "BSON field 'update.updates.u' is missing but a required field")
	}
	if a.Err != nil {
		return u, a.Err
	}
	u.update = replacement(c, u.update)
	if u.update.Type == bson.TypeArray {
		// What is no pipeline at all fails the command, not the statement.
		if _, err := u.compile(c, ns); mongoerr.Is(err, unrecognizedStage) || mongoerr.Is(err, mongoerr.TypeMismatch) {
			return u, err
		}
	}
	return u, nil
}

func runUpdate(ctx context.Context, c *command.Call, w writeCommand, i int, u updateStatement) (engine.Result, error) {
	env := c.Env(nil)
	env.Collation = c.CollationOf(w.ns, u.collation)
	filter, err := match.CompileQuery(u.filter, env)
	if err != nil {
		return engine.Result{}, err
	}
	change, err := u.compile(c, w.ns)
	if err != nil {
		return engine.Result{}, err
	}
	if u.constants != nil && !change.IsPipeline() {
		return engine.Result{}, mongoerr.New(51198, "Constant values may only be specified for pipeline updates")
	}
	if u.multi && change.IsReplacement() {
		return engine.Result{}, mongoerr.New(mongoerr.FailedToParse, "multi update is not supported for replacement-style update")
	}
	if u.multi && c.Retry != nil {
		return engine.Result{}, mongoerr.New(mongoerr.InvalidOptions, "Cannot use retryable writes with multi=true")
	}
	if w.refused != nil {
		return engine.Result{}, w.refused
	}
	return c.Server.Engine.Update(ctx, w.write(c, i), w.ns, newUpdate(filter, change, nil, u.hint, u.multi, u.upsert))
}

// newUpdate makes the engine's statement of a compiled update.
func newUpdate(
	filter *match.Filter, change *modify.Update, sort *query.Sort, hint storage.Hint, multi, upsert bool,
) engine.Update {
	u := engine.Update{
		Selection: engine.Selection{Filter: filter, Sort: sort, Hint: hint, Multi: multi},
		Apply:     func(doc bson.Raw) (modify.Applied, error) { return change.Apply(doc, filter) },
	}
	if upsert {
		u.Upsert = func() (bson.Raw, error) { return change.Upsert(filter) }
	}
	return u
}

// replacement is an update that may be a whole document, with its empty
// timestamps filled in; operators keep theirs.
func replacement(c *command.Call, update bson.RawValue) bson.RawValue {
	if update.Type == bson.TypeEmbeddedDocument && !match.IsOperators(update) {
		update.Value = c.Server.Engine.PrepareReplacement(update.Value)
	}
	return update
}

// updatePrivileges are those of update: an upsert inserts.
func updatePrivileges(c *command.Call) []access.Privilege {
	actions := []access.Action{access.Update}
	each := func(statement bson.Raw) {
		if command.IsTrue(statement, "upsert") {
			actions = append(actions, access.Insert)
		}
	}
	for _, sequence := range c.Request.Sequences {
		for _, statement := range sequence.Documents {
			each(statement)
		}
	}
	for it := bsonkit.Iterate(command.ArrayOf(c.Body, "updates")); it.Next(); {
		statement, _ := it.Value().DocumentOK()
		each(statement)
	}
	return c.OnOwnCollection(actions...)
}
