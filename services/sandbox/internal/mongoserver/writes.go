package mongoserver

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
)

// writeCommand are the arguments that insert, update and delete share.
type writeCommand struct {
	ns         engine.Namespace
	ordered    bool
	bypass     bool
	statements []bson.Raw
}

// parseWrite reads such a command; its statements may be in the body or in a
// document sequence.
func (c *call) parseWrite(statements string) (writeCommand, error) {
	w := writeCommand{ordered: true}
	a := arguments{mismatch: mongoerr.TypeMismatch}
	given := false
	for _, sequence := range c.request.Sequences {
		if sequence.Name != statements {
			a.unknown(40415, c.name, sequence.Name)
		}
		w.statements, given = sequence.Documents, true
	}
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.name:
		case statements:
			if v.Type != bson.TypeArray {
				a.fail(40422, "BSON field '%s.%s' is the wrong type '%s', expected type 'array'", c.name, name, v.Type)
			}
			w.statements, given = a.documents(name, v), true
		case "ordered":
			w.ordered = a.boolean(name, v)
		case "bypassDocumentValidation":
			w.bypass = a.truth(name, v)
		case "stmtId", "stmtIds":
			a.fail(mongoerr.NotImplemented, "%s is not supported", name)
		default:
			if !isGeneric(name) {
				a.unknown(40415, c.name, name)
			}
		}
	}
	switch {
	case a.err != nil:
	case !given:
		a.fail(40414, "BSON field '%s.%s' is missing but a required field", c.name, statements)
	case len(w.statements) == 0 || len(w.statements) > maxWriteBatch:
		a.fail(mongoerr.InvalidLength, "Write batch sizes must be between 1 and %d. Got %d operations.",
			maxWriteBatch, len(w.statements))
	}
	if a.err != nil {
		return w, a.err
	}
	var err error
	if w.ns, err = c.collection(); err != nil {
		return w, err
	}
	return w, c.notView(w.ns)
}

// write is in whose name one statement of the command runs.
func (w writeCommand) write(c *call, statement int) engine.Write {
	write := c.write()
	write.Statement, write.BypassValidation = int32(statement), w.bypass
	return write
}

// writeErrors collects what went wrong with single statements.
type writeErrors struct {
	indexes []int
	errors  []*mongoerr.Error
}

// add notes the error of a statement. It returns an error where the command
// ends with it: inside a transaction, and for those that concern the whole
// server.
func (w *writeErrors) add(c *call, statement int, err error) error {
	e := mongoerr.From(err)
	if c.generic.inTransaction() || e.Code == mongoerr.InternalError || isRetryableWriteError(e.Code) ||
		e.Code == mongoerr.InvalidNamespace {
		return err
	}
	w.indexes = append(w.indexes, statement)
	w.errors = append(w.errors, e)
	return nil
}

func (w *writeErrors) append(r *reply) {
	if len(w.errors) == 0 {
		return
	}
	r.openArray("writeErrors")
	for i, e := range w.errors {
		r.openDocument(arrayKey(i))
		r.int32("index", int32(w.indexes[i]))
		r.int32("code", int32(e.Code))
		r.extra(e)
		r.text("errmsg", e.Message)
		r.close()
	}
	r.close()
}
