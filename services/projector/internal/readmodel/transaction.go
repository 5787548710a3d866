package readmodel

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"changerelay/services/projector/internal/readmodel/reply"
)

// Application is what projectors call themselves to the server.
const Application = "change-relay-projector"

// How transactions are found whose process has died. A live one has the next command
// or the end of its transaction on the way at once.
const (
	// idleFor is how long no command has worked in such a transaction.
	idleFor = 3 * time.Second
	// conflictTime is how long a transaction starts over before it looks for one that is
	// in its way, and how long a store then leaves it at that.
	conflictTime = time.Second
)

// maxTimeExpired is the server's code for an operation that has waited for as long as it
// may.
const maxTimeExpired = 50

// together runs f in a transaction, again where another one was in its way. One that
// stays in its way may be a dead process's.
func (s *database) together(ctx context.Context, f func(ctx context.Context) error) error {
	session, err := s.db.Client().StartSession()
	if err != nil {
		return fmt.Errorf("start a session: %w", err)
	}
	defer session.EndSession(context.WithoutCancel(ctx))
	began := time.Now()
	_, err = session.WithTransaction(ctx, func(within context.Context) (any, error) {
		err := f(within)
		if err != nil && ctx.Err() != nil {
			return nil, context.Cause(ctx) // the driver would begin again, for two minutes
		}
		if reply.Has(err, reply.WriteConflict) && time.Since(began) >= conflictTime && s.looks.due() {
			s.endIdle(ctx)
		}
		return nil, err
	},
		options.Transaction().SetReadConcern(readconcern.Snapshot()).SetWriteConcern(writeconcern.Majority()).SetReadPreference(readpref.Primary()))
	return err
}

// looks are when a store has looked for idle transactions.
type looks struct {
	mu   sync.Mutex
	last time.Time // guarded by mu
}

// due tells whether it is time to look again, and counts it as done.
func (l *looks) due() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.last) < conflictTime {
		return false
	}
	l.last = time.Now()
	return true
}

// endIdle ends the transactions of projectors of the same user in which nothing has
// happened for long: the server would keep what a dead process has changed for it,
// until they are transactionLifetimeLimitSeconds old. A live one is only made
// to start over. What cannot be looked at, or ended, ends as the server has it.
func (s *database) endIdle(ctx context.Context) {
	admin := s.db.Client().Database("admin")
	cursor, err := admin.Aggregate(ctx, mongo.Pipeline{
		{{Key: "$currentOp", Value: bson.D{{Key: "allUsers", Value: false}, {Key: "idleSessions", Value: true}}}},
		{{Key: "$match", Value: bson.D{
			{Key: "type", Value: "idleSession"},
			{Key: "appName", Value: Application},
			{Key: "transaction.timeInactiveMicros", Value: bson.D{{Key: "$gte", Value: idleFor.Microseconds()}}},
		}}},
		{{Key: "$project", Value: bson.D{{Key: "_id", Value: 0}, {Key: "id", Value: "$lsid.id"}}}},
	})
	var sessions []bson.Raw
	if err == nil {
		err = cursor.All(ctx, &sessions)
	}
	if err != nil || len(sessions) == 0 {
		return
	}
	if err := admin.RunCommand(ctx, bson.D{{Key: "killSessions", Value: sessions}}).Err(); err == nil {
		s.ended(len(sessions))
	}
}
