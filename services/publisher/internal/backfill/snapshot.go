package backfill

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// endTimeout bounds telling the server that a session is not used any more.
const endTimeout = time.Second

// findInSnapshot finds the next documents, once: what passes is tried again by Read.
// The driver's own loop of transactions goes on for two minutes whatever became of ctx.
func (s *Source) findInSnapshot(ctx context.Context, session *mongo.Session) (chunk, error) {
	if err := session.StartTransaction(options.Transaction().
		SetReadConcern(readconcern.Snapshot()).
		SetWriteConcern(writeconcern.Majority()).
		SetReadPreference(readpref.Primary())); err != nil {
		return chunk{}, err
	}
	find := s.findPlaced
	if s.rest.begun {
		find = s.findRest
	}
	found, err := find(ctx)
	if err != nil {
		return chunk{}, err
	}
	return found, session.CommitTransaction(ctx)
}

// end ends a session, and a transaction in it that was not committed, if the server
// answers soon: it ends the transaction otherwise.
func end(ctx context.Context, session *mongo.Session) {
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	session.EndSession(ending)
}
