package data

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// writeCommand are the arguments that insert, update and delete share.
type writeCommand struct {
	ns oplog.Namespace
	// refused is what every statement fails with that could be run: one on a view.
	refused    error
	ordered    bool
	bypass     bool
	statements []bson.Raw
	// numbers are those of the statements in a retryable write; nil for one after
	// another, from first on.
	numbers []int32
	first   int32
}

// parseWrite reads such a command; its statements may be in the body or in a
// document sequence.
func parseWrite(c *command.Call, statements string) (writeCommand, error) {
	w := writeCommand{ordered: true}
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	given, hasFirst := false, false
	for _, sequence := range c.Request.Sequences {
		if sequence.Name != statements {
			a.Unknown(40415, c.Name, sequence.Name)
		}
		w.statements, given = sequence.Documents, true
	}
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		if command.Absent(v) {
			continue
		}
		switch name {
		case c.Name:
		case statements:
			if v.Type != bson.TypeArray {
				a.Fail(40422, "BSON field '%s.%s' is the wrong type '%s', expected type 'array'", c.Name, name, v.Type)
			}
			w.statements, given = a.Documents(name, v), true
		case "ordered":
			w.ordered = a.Boolean(name, v)
		case "bypassDocumentValidation":
			w.bypass = a.Truth(name, v)
		case "stmtIds":
			w.numbers = []int32{}
			for _, v := range a.Array(name, v) {
				w.numbers = append(w.numbers, statementNumber(&a, "stmtIds", v))
			}
		case "stmtId":
			w.first, hasFirst = statementNumber(&a, name, v), true
		default:
			if !command.IsGeneric(name) && (c.Name == "insert" || !c.TakesLet(&a, name, v)) {
				a.Unknown(40415, c.Name, name)
			}
		}
	}
	switch {
	case a.Err != nil:
	case !given:
		a.Fail(40414, "BSON field '%s.%s' is missing but a required field", c.Name, statements)
	case len(w.statements) == 0 || len(w.statements) > command.MaxWriteBatch:
		a.Fail(mongoerr.InvalidLength, "Write batch sizes must be between 1 and %d. Got %d operations.",
			command.MaxWriteBatch, len(w.statements))
	case w.numbers != nil && len(w.numbers) != len(w.statements):
		a.Fail(mongoerr.InvalidLength, "Number of statement ids must match the number of batch entries. Got %d statement ids but operation contains %d entries",
			len(w.numbers), len(w.statements))
	case w.numbers != nil && hasFirst:
		a.Fail(mongoerr.InvalidOptions, "May not specify both stmtId and stmtIds in write command")
	}
	if a.Err != nil {
		return w, a.Err
	}
	var err error
	if w.ns, err = c.Collection(); err != nil {
		return w, err
	}
	w.refused = c.NotView(w.ns)
	if w.ns.Collection == command.ProfileCollection {
		return w, mongoerr.New(mongoerr.InvalidNamespace, "cannot write to '%s'", w.ns)
	}
	return w, nil
}

// write is in whose name one statement of the command runs.
func (w writeCommand) write(c *command.Call, statement int) engine.Write {
	write := c.Write()
	write.Statement, write.BypassValidation = w.first+int32(statement), w.bypass
	if w.numbers != nil {
		write.Statements = w.numbers[statement:]
		write.Statement = write.Statements[0]
	}
	return write
}

// statementNumber is the number of a statement in a retryable write.
func statementNumber(a *command.Arguments, name string, v bson.RawValue) int32 {
	n, ok := v.Int32OK()
	if !ok {
		a.WrongType(name, v, "int")
	}
	return n
}

// repeated tells since 6.0 which statements had been done before.
func repeated(c *command.Call, r *command.Reply) {
	if c.Retry == nil || len(c.Retry.Repeated) == 0 || !c.Server.Version.Has(6) {
		return
	}
	r.OpenArray("retriedStmtIds")
	for i, number := range c.Retry.Repeated {
		r.Int32(bsonkit.ArrayKey(i), number)
	}
	r.Close()
}

// writeErrors collects what went wrong with single statements.
type writeErrors struct {
	ordered bool
	indexes []int
	errors  []*mongoerr.Error
	// over tells that the statements that follow are not run.
	over bool
}

// add notes the error of a statement. It returns an error where the command
// ends with it: for errors after which a transaction may be run again, and for
// those that concern the whole server. Any other error ends a transaction, and
// is reported as that of its statement.
func (w *writeErrors) add(c *command.Call, statement int, err error) error {
	e := mongoerr.From(err)
	if e.Code == mongoerr.InternalError || command.IsRetryableWriteError(e.Code) || e.Code == mongoerr.InvalidNamespace ||
		isInterruption(e.Code) || c.Generic.InTransaction() && command.IsTransient(e.Code, false) {
		return err
	}
	w.indexes = append(w.indexes, statement)
	w.errors = append(w.errors, e)
	w.over = w.ordered
	if c.Generic.InTransaction() {
		c.Abort()
		w.over = true
	}
	return nil
}

// isInterruption tells errors of a command that has been stopped.
func isInterruption(code mongoerr.Code) bool {
	switch code {
	case mongoerr.MaxTimeMSExpired, mongoerr.CursorKilled, mongoerr.Interrupted, mongoerr.InterruptedAtShutdown:
		return true
	}
	return false
}

func (w *writeErrors) append(r *command.Reply) {
	if len(w.errors) == 0 {
		return
	}
	r.OpenArray("writeErrors")
	for i, e := range w.errors {
		r.OpenDocument(bsonkit.ArrayKey(i))
		r.Int32("index", int32(w.indexes[i]))
		r.Int32("code", int32(e.Code))
		r.Extra(e)
		r.Text("errmsg", e.Message)
		r.Close()
	}
	r.Close()
}
