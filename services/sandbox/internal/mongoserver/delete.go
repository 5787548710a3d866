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

func deleteDocuments(ctx context.Context, c *call, r *reply) error {
	w, err := c.parseWrite("deletes")
	if err != nil {
		return err
	}
	statements := make([]deleteStatement, len(w.statements))
	for i, doc := range w.statements {
		if statements[i], err = parseDeleteStatement(doc); err != nil {
			return err
		}
	}
	var failed writeErrors
	deleted := 0
	for i, statement := range statements {
		result, err := c.runDelete(ctx, w, i, statement)
		deleted += result.Matched
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
	r.int32("n", int32(deleted))
	failed.append(r)
	return nil
}

// deleteStatement is one element of deletes.
type deleteStatement struct {
	filter    bson.Raw
	multi     bool
	hint      engine.Hint
	collation *collation.Collation
}

func parseDeleteStatement(doc bson.Raw) (deleteStatement, error) {
	var d deleteStatement
	a := arguments{mismatch: mongoerr.TypeMismatch}
	hasQuery, hasLimit := false, false
	for it := bsonkit.Iterate(doc); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "q":
			d.filter, hasQuery = a.document(name, v), true
		case "limit":
			hasLimit = true
			switch limit := a.integer(name, v); limit {
			case 0, 1:
				d.multi = limit == 0
			default:
				a.fail(mongoerr.FailedToParse, "The limit field in delete objects must be 0 or 1. Got %d", limit)
			}
		case "hint":
			d.hint = a.hint(name, v)
		case "collation":
			d.collation = a.collation(v)
		default:
			a.unknown(40415, "delete.deletes", name)
		}
	}
	if !hasQuery {
		a.fail(40414, "BSON field 'delete.deletes.q' is missing but a required field")
	}
	if !hasLimit {
		a.fail(40414, "BSON field 'delete.deletes.limit' is missing but a required field")
	}
	return d, a.err
}

func (c *call) runDelete(ctx context.Context, w writeCommand, i int, d deleteStatement) (engine.Result, error) {
	env := c.env(nil)
	env.Collation = c.collationOf(w.ns, d.collation)
	filter, err := query.CompileFilter(d.filter, env)
	if err != nil {
		return engine.Result{}, err
	}
	if d.multi && c.retry != nil {
		return engine.Result{}, mongoerr.New(mongoerr.InvalidOptions, "Cannot use retryable writes with limit=0")
	}
	return c.server.engine.Delete(ctx, w.write(c, i), w.ns,
		engine.Selection{Filter: filter, Hint: d.hint, Multi: d.multi})
}
