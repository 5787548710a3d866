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

// insertPrepared stores documents, the first of which is that numbered first in
// the command. Unless the command is ordered it goes on after those that are
// refused.
func insertPrepared(ctx context.Context, c *command.Call, w writeCommand, first int, docs []bson.Raw, failed *writeErrors,
) (inserted int, err error) {
	for done := 0; done < len(docs); done++ {
		n, err := c.Server.Engine.Insert(ctx, w.write(c, first+done), w.ns, docs[done:])
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
