package engine

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/query"
	"changerelay/services/sandbox/internal/mongodb/query/match"
	"changerelay/services/sandbox/internal/mongodb/query/modify"
)

// Write says in whose name a statement runs.
type Write struct {
	// Txn is the transaction that the statement is part of, nil for none.
	Txn *Txn
	// Retry records what the statement did, for when it comes again; nil for
	// writes that are not retryable.
	Retry *Retry
	// Statement numbers the (first) statement within its command, Statements each
	// document of an insert; nil for one after another.
	Statement  int32
	Statements []int32
	// Documents asks for the document before and after a statement for one.
	Documents bool
	// Fault, if not nil, is asked before each document of a retryable write is
	// written; an error keeps it from being written. It must not block.
	Fault func() error
	// Majority tells that the client waits for a majority to have the write.
	Majority bool
	// BypassValidation leaves out the collection's validator.
	BypassValidation bool
	// Deferred leaves it to the caller to wait until what the statement did is Durable,
	// before anybody is told of it: once for all statements of a command, each of which
	// would wait for a disk.
	Deferred bool
}

// insertChunk is how many documents are stored without letting others in.
const insertChunk = 64

// Insert stores documents that PrepareInsert has passed, in order, until one is
// refused. It returns how many are stored, counting those that the retryable
// write had stored before.
func (e *Engine) Insert(ctx context.Context, w Write, ns oplog.Namespace, docs []bson.Raw) (int, error) {
	done := 0
	for done < len(docs) {
		end := min(done+insertChunk, len(docs))
		err := e.writeAs(ctx, w, func() error {
			t, err := e.targetOrNew(w, ns)
			for ; err == nil && done < end; done++ {
				statement := w.statement(done)
				if _, before := w.Retry.result(statement); before {
					continue
				}
				if err = t.insert(docs[done]); err != nil {
					break
				}
				w.Retry.record(statement, Result{Operation: oplog.OpInsert, Matched: 1})
			}
			return err
		})
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// statement numbers a document of an insert.
func (w Write) statement(i int) int32 {
	if w.Statements != nil {
		return w.Statements[i]
	}
	return w.Statement + int32(i)
}

// Selection finds the documents of an update or delete.
type Selection struct {
	Filter *match.Filter
	// Sort decides which of several documents a statement for one takes.
	Sort *query.Sort
	Hint storage.Hint
	// Multi takes all documents instead of one.
	Multi bool
}

// Update is an update statement.
type Update struct {
	Selection
	// Apply changes a document.
	Apply func(bson.Raw) (modify.Applied, error)
	// Upsert makes the document that is stored when none was found; nil for a
	// statement that does not upsert.
	Upsert func() (bson.Raw, error)
}

// Result is what a statement did. A retried statement gets the same again.
type Result struct {
	// Operation is what was written: OpInsert for an upsert, OpNoop for nothing.
	Operation oplog.Operation
	// Matched counts documents that were found or upserted, Modified those that
	// were changed.
	Matched, Modified int
	// Upserted is the _id of an upserted document; its Type is 0 if there is none.
	Upserted bson.RawValue
	// Before and After are the document, where Write.Documents asked for it.
	Before, After bson.Raw
}

// Update changes documents. After an error Result tells what had been done
// before it.
func (e *Engine) Update(ctx context.Context, w Write, ns oplog.Namespace, u Update) (Result, error) {
	if r, before := w.Retry.result(w.Statement); before {
		return r, nil
	}
	var result Result
	var found *found
	err := e.writeAs(ctx, w, func() error {
		if err := w.Txn.goesOn(); err != nil {
			return err
		}
		t := e.target(w, ns)
		if found == nil || !u.Multi {
			var err error
			if found, err = t.find(ctx, u.Selection); err != nil {
				return err
			}
			if len(found.ids) == 0 && u.Upsert != nil {
				found = nil
				return e.upsert(w, ns, u, &result)
			}
		}
		return found.each(ctx, t, u.Filter, func(id int64, rec storage.Record) error {
			return t.update(id, rec, u, &result)
		})
	})
	return result, err
}

func (t *target) update(id int64, rec storage.Record, u Update, result *Result) error {
	applied, err := u.Apply(rec.Doc)
	if err != nil {
		return err
	}
	if applied.Changed {
		if err := t.replace(id, rec, applied); err != nil {
			return err
		}
		result.Modified++
		result.Operation = oplog.OpUpdate
	}
	result.Matched++
	if u.Multi {
		return nil
	}
	if t.write.Documents {
		result.Before, result.After = rec.Doc, applied.Doc
	}
	t.write.Retry.record(t.write.Statement, *result)
	return nil
}

func (e *Engine) upsert(w Write, ns oplog.Namespace, u Update, result *Result) error {
	doc, err := u.Upsert()
	if err != nil {
		return err
	}
	// Empty timestamps of operators stay, those of replacements were filled before.
	if doc, _, err = prepareInsert(doc); err != nil {
		return err
	}
	t, err := e.targetOrNew(w, ns)
	if err != nil {
		return err
	}
	if err := t.insert(doc); err != nil {
		return err
	}
	result.Operation, result.Matched = oplog.OpInsert, 1
	if w.Documents {
		result.After = doc
	}
	result.Upserted, _ = bsonkit.Get(doc, "_id")
	w.Retry.record(w.Statement, *result)
	return nil
}

// Delete deletes documents. After an error Result tells what had been done
// before it.
func (e *Engine) Delete(ctx context.Context, w Write, ns oplog.Namespace, s Selection) (Result, error) {
	if r, before := w.Retry.result(w.Statement); before {
		return r, nil
	}
	var result Result
	var found *found
	err := e.writeAs(ctx, w, func() error {
		if err := w.Txn.goesOn(); err != nil {
			return err
		}
		t := e.target(w, ns)
		if err := t.cappedRemove(); err != nil {
			return err
		}
		if found == nil || !s.Multi {
			var err error
			if found, err = t.find(ctx, s); err != nil {
				return err
			}
		}
		return found.each(ctx, t, s.Filter, func(id int64, rec storage.Record) error {
			if err := t.remove(id, rec); err != nil {
				return err
			}
			result.Operation = oplog.OpDelete
			result.Matched++
			if w.Documents {
				result.Before = rec.Doc
			}
			if !s.Multi {
				w.Retry.record(w.Statement, result)
			}
			return nil
		})
	})
	return result, err
}
