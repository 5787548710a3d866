package data

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/command"
)

func insert(ctx context.Context, c *command.Call, r *command.Reply) error {
	w, err := parseWrite(c, "documents")
	if err != nil {
		return err
	}
	failed := writeErrors{ordered: w.ordered}
	inserted := 0
	if !c.Server.Version.Has(5) {
		w.forgetBeforeRepeated(c)
	}
	for next := 0; next < len(w.statements); {
		docs, refused := prepareInserts(c, w.statements[next:])
		n, err := insertPrepared(ctx, c, w, next, docs, &failed)
		inserted += n
		if err != nil {
			return err
		}
		next += len(docs)
		if failed.over || refused == nil {
			break
		}
		if err := failed.add(c, next, refused); err != nil {
			return err
		}
		if failed.over {
			break
		}
		next++
	}
	r.Int32("n", int32(inserted))
	repeated(c, r)
	failed.append(r)
	return nil
}

// serverBatch is how many documents a server inserts at once.
const serverBatch = 64

// forgetBeforeRepeated leaves out of a retried insert what 4.4 leaves out: the
// statements that wait for a full batch when the last one turns out to be done.
func (w *writeCommand) forgetBeforeRepeated(c *command.Call) {
	last := len(w.statements) - 1
	number := func(i int) int32 { return w.write(c, i).Statement }
	if !c.Retry.Done(number(last)) {
		return
	}
	inserted, waiting := 0, 0
	for i := range w.statements {
		if c.Retry.Done(number(i)) {
			continue
		}
		if waiting++; waiting == serverBatch {
			inserted, waiting = i+1, 0
		}
	}
	var kept writeCommand
	for i, doc := range w.statements {
		if n := number(i); i < inserted || c.Retry.Done(n) {
			kept.statements, kept.numbers = append(kept.statements, doc), append(kept.numbers, n)
		}
	}
	w.statements, w.numbers = kept.statements, kept.numbers
}

// insertPrepared stores documents, the first of which is that numbered first in
// the command. Unless the command is ordered it goes on after those that are
// refused.
func insertPrepared(ctx context.Context, c *command.Call, w writeCommand, first int, docs []bson.Raw, failed *writeErrors,
) (inserted int, err error) {
	for done := 0; done < len(docs); done++ {
		n, err := 0, w.refused
		if err == nil {
			n, err = c.Server.Engine.Insert(ctx, w.write(c, first+done), w.ns, docs[done:])
		}
		inserted += n
		if err == nil {
			break
		}
		done += n
		if err := failed.add(c, first+done, err); err != nil {
			return inserted, err
		}
		if failed.over {
			break
		}
	}
	return inserted, nil
}

// prepareInserts gives the documents before the first that cannot be stored,
// and why that is.
func prepareInserts(c *command.Call, given []bson.Raw) ([]bson.Raw, error) {
	docs := make([]bson.Raw, 0, len(given))
	for _, doc := range given {
		stored, err := c.Server.Engine.PrepareInsert(doc)
		if err != nil {
			return docs, err
		}
		docs = append(docs, stored)
	}
	return docs, nil
}
