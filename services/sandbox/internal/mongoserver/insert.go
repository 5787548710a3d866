package mongoserver

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func insert(ctx context.Context, c *call, r *reply) error {
	w, err := c.parseWrite("documents")
	if err != nil {
		return err
	}
	var failed writeErrors
	inserted := 0
	for next := 0; next < len(w.statements); {
		docs, refused := c.prepareInserts(w.statements[next:])
		n, err := c.insertPrepared(ctx, w, next, docs, &failed)
		inserted += n
		if err != nil {
			return err
		}
		next += len(docs)
		if w.ordered && len(failed.errors) > 0 || refused == nil {
			break
		}
		if err := failed.add(c, next, refused); err != nil {
			return err
		}
		if w.ordered {
			break
		}
		next++
	}
	r.int32("n", int32(inserted))
	failed.append(r)
	return nil
}

// insertPrepared stores documents, the first of which is that numbered first in
// the command. Unless the command is ordered it goes on after those that are
// refused.
func (c *call) insertPrepared(
	ctx context.Context, w writeCommand, first int, docs []bson.Raw, failed *writeErrors,
) (inserted int, err error) {
	for done := 0; done < len(docs); done++ {
		n, err := c.server.engine.Insert(ctx, w.write(c, first+done), w.ns, docs[done:])
		inserted += n
		if err == nil {
			break
		}
		done += n
		if err := failed.add(c, first+done, err); err != nil {
			return inserted, err
		}
		if w.ordered {
			break
		}
	}
	return inserted, nil
}

// prepareInserts gives the documents before the first that can not be stored,
// and why that is.
func (c *call) prepareInserts(given []bson.Raw) ([]bson.Raw, error) {
	docs := make([]bson.Raw, 0, len(given))
	for _, doc := range given {
		stored, err := c.server.engine.PrepareInsert(doc)
		if err != nil {
			return docs, err
		}
		docs = append(docs, stored)
	}
	return docs, nil
}
