package data

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

func deleteDocuments(ctx context.Context, c *command.Call, r *command.Reply) error {
	w, err := parseWrite(c, "deletes")
	if err != nil {
		return err
	}
	statements := make([]deleteStatement, len(w.statements))
	for i, doc := range w.statements {
		if statements[i], err = parseDeleteStatement(doc); err != nil {
			return err
		}
	}
	failed := writeErrors{ordered: w.ordered}
	deleted := 0
	for i, statement := range statements {
		result, err := runDelete(ctx, c, w, i, statement)
		if err == nil {
			deleted += result.Matched
			continue
		}
		if err := failed.add(c, i, err); err != nil {
			return err
		}
		if failed.over {
			break
		}
	}
	r.Int32("n", int32(deleted))
	repeated(c, r)
	failed.append(r)
	return nil
}

// deleteStatement is one element of deletes.
type deleteStatement struct {
	filter    bson.Raw
	multi     bool
	hint      storage.Hint
	collation *collation.Collation
}

func parseDeleteStatement(doc bson.Raw) (deleteStatement, error) {
	var d deleteStatement
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	hasQuery, hasLimit := false, false
	for it := bsonkit.Iterate(doc); it.Next(); {
		name, v := string(it.Key()), it.Value()
		if command.Absent(v) && name != "limit" {
			continue
		}
		switch name {
		case "q":
			d.filter, hasQuery = a.Document(name, v), true
		case "limit":
			hasLimit = true
			d.multi = deletesAll(&a, v)
		case "hint":
			d.hint = a.Hint(name, v)
		case "collation":
			d.collation = a.Collation(v)
		default:
			a.Unknown(40415, "delete.deletes", name)
		}
	}
	if !hasQuery {
		a.Fail(40414, "BSON field 'delete.deletes.q' is missing but a required field")
	}
	if !hasLimit {
		a.Fail(40414, "BSON field 'delete.deletes.limit' is missing but a required field")
	}
	return d, a.Err
}

// deletesAll reads the limit of a statement. What is no number is as good as 0.
func deletesAll(a *command.Arguments, limit bson.RawValue) bool {
	if !bsonkit.IsNumber(limit.Type) {
		return true
	}
	n := bsonkit.Float(limit)
	if n != 0 && n != 1 {
		a.Fail(mongoerr.FailedToParse, "The limit field in delete objects must be 0 or 1. Got %s", bsonkit.Describe(limit))
	}
	return n == 0
}

func runDelete(ctx context.Context, c *command.Call, w writeCommand, i int, d deleteStatement) (engine.Result, error) {
	env := c.Env(nil)
	env.Collation = c.CollationOf(w.ns, d.collation)
	filter, err := match.CompileQuery(d.filter, env)
	if err != nil {
		return engine.Result{}, err
	}
	if d.multi && c.Retry != nil {
		return engine.Result{}, mongoerr.New(mongoerr.InvalidOptions, "Cannot use retryable writes with limit=0")
	}
	if w.refused != nil {
		return engine.Result{}, w.refused
	}
	return c.Server.Engine.Delete(ctx, w.write(c, i), w.ns,
		engine.Selection{Filter: filter, Hint: d.hint, Multi: d.multi})
}
