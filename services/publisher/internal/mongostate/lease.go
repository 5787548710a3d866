package mongostate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/majority"
)

// watchAwait is how long the server holds back an empty answer to a watch.
const watchAwait = time.Second

// watchSlack is how long such an answer may take beyond that.
const watchSlack = 10 * time.Second

// Lease is one lease record. It implements lease.Store and lease.Watcher.
type Lease struct {
	name    string
	records *mongo.Collection
}

// Lease returns the lease of the given name.
func (d *Database) Lease(name string) *Lease {
	return &Lease{name: name, records: d.db.Collection(leases)}
}

// leaseDocument is a lease record, with what was left of it by the server's
// clock where the server was asked to compute that.
type leaseDocument struct {
	LeaderID    string    `bson:"leaderId"`
	Incarnation string    `bson:"incarnation"`
	Tenure      int64     `bson:"tenure"`
	Stream      string    `bson:"stream"`
	HeartbeatAt time.Time `bson:"heartbeatAt"`
	ExpiresAt   time.Time `bson:"expiresAt"`
	Remaining   int64     `bson:"remaining"` // milliseconds
}

func (d leaseDocument) record(remaining time.Duration) lease.Record {
	return lease.Record{
		Holder:      lease.Holder{ID: d.LeaderID, Incarnation: d.Incarnation, Tenure: d.Tenure},
		Remaining:   remaining,
		Subject:     d.Stream,
		HeartbeatAt: d.HeartbeatAt,
		ExpiresAt:   d.ExpiresAt,
	}
}

// Read implements lease.Store. The server computes what is left: subtracting
// its own clock from the expiry that its own clock wrote.
func (l *Lease) Read(ctx context.Context) (lease.Record, error) {
	cursor, err := l.records.Aggregate(ctx, mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: "_id", Value: l.name}}}},
		{{Key: "$addFields", Value: bson.D{
			{Key: "remaining", Value: bson.D{{Key: "$subtract", Value: bson.A{"$expiresAt", "$$NOW"}}}},
		}}},
	})
	if err != nil {
		return lease.Record{}, err
	}
	var found []leaseDocument
	if err := cursor.All(ctx, &found); err != nil {
		return lease.Record{}, err
	}
	if len(found) == 0 {
		return lease.Record{}, nil
	}
	return found[0].record(time.Duration(found[0].Remaining) * time.Millisecond), nil
}

// Take implements lease.Store: one findAndModify by _id alone. Any further
// condition in the filter would insert a second record, or fail to, when the
// first does not match; so the condition is in the pipeline.
func (l *Lease) Take(ctx context.Context, claim lease.Claim) (lease.Record, error) {
	sameID := bson.D{{Key: "$eq", Value: bson.A{"$leaderId", literal(claim.Holder.ID)}}}
	sameProcess := bson.D{{Key: "$eq", Value: bson.A{"$incarnation", literal(claim.Holder.Incarnation)}}}
	earlier := bson.D{{Key: "$lt", Value: bson.A{"$tenure", claim.Holder.Tenure}}}
	mine := bson.D{{Key: "$and", Value: bson.A{
		sameID,
		bson.D{{Key: "$cond", Value: bson.A{sameProcess, earlier, claim.OverOwnID}}},
	}}}
	// A missing or null expiresAt sorts below any date.
	live := bson.D{{Key: "$gt", Value: bson.A{"$expiresAt", "$$NOW"}}}
	free := bson.D{{Key: "$or", Value: bson.A{
		bson.D{{Key: "$not", Value: bson.A{live}}},
		mine,
	}}}
	taken := bson.D{
		{Key: "_id", Value: "$_id"},
		{Key: "leaderId", Value: literal(claim.Holder.ID)},
		{Key: "incarnation", Value: literal(claim.Holder.Incarnation)},
		{Key: "tenure", Value: claim.Holder.Tenure},
		{Key: "stream", Value: literal(claim.Subject)},
		{Key: "heartbeatAt", Value: "$$NOW"},
		{Key: "expiresAt", Value: fromNow(claim.TTL)},
	}
	pipeline := mongo.Pipeline{{{Key: "$replaceWith", Value: bson.D{
		{Key: "$cond", Value: bson.A{free, taken, "$$ROOT"}},
	}}}}
	var after leaseDocument
	err := l.records.FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: l.name}}, pipeline,
		options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)).Decode(&after)
	if mongo.IsDuplicateKeyError(err) {
		return l.Read(ctx) // somebody else inserted the record first
	}
	if err != nil {
		return lease.Record{}, majority.Explain(ctx, l.records.Database().Client(), err)
	}
	// How much is left of another's lease was judged by the server, but is not in
	// the answer: a standby reads again at once.
	remaining := time.Duration(0)
	if after.record(0).Holder == claim.Holder {
		remaining = claim.TTL
	}
	return after.record(remaining), nil
}

// Renew implements lease.Store. It never upserts: a record that is gone, or
// another's, stays so.
func (l *Lease) Renew(ctx context.Context, holder lease.Holder, ttl time.Duration) (lease.Record, error) {
	pipeline := mongo.Pipeline{{{Key: "$set", Value: bson.D{
		{Key: "heartbeatAt", Value: "$$NOW"},
		{Key: "expiresAt", Value: fromNow(ttl)},
	}}}}
	var after leaseDocument
	err := l.records.FindOneAndUpdate(ctx, l.heldBy(holder), pipeline,
		options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&after)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return lease.Record{}, nil
	}
	if err != nil {
		return lease.Record{}, majority.Explain(ctx, l.records.Database().Client(), err)
	}
	return after.record(ttl), nil
}

// Release implements lease.Store. The record stays, without a holder and over.
func (l *Lease) Release(ctx context.Context, holder lease.Holder) (bool, error) {
	pipeline := mongo.Pipeline{{{Key: "$set", Value: bson.D{
		{Key: "leaderId", Value: ""},
		{Key: "incarnation", Value: ""},
		{Key: "tenure", Value: int64(0)},
		{Key: "expiresAt", Value: "$$NOW"},
	}}}}
	result, err := l.records.UpdateOne(ctx, l.heldBy(holder), pipeline)
	if err != nil {
		return false, err
	}
	return result.MatchedCount == 1, nil
}

// Halt says in the lease why its holder waits for an operator, whatever becomes
// of the stream's record. It is nothing where another holds the lease, or where the
// holder has confirmed a later term than the one that it has seen, in this tenure or
// in another.
func (l *Lease) Halt(ctx context.Context, holder lease.Holder, seen int64, why string) error {
	notLater := bson.D{{Key: "$not", Value: bson.D{{Key: "$gt", Value: seen}}}} // or absent
	return l.say(ctx, append(byHolder(l.name, holder), bson.E{Key: "confirmed", Value: notLater}),
		bson.D{{Key: "$set", Value: bson.D{{Key: "halt", Value: why}}}})
}

// Confirm says in the lease that its holder has claimed a term, and waits for nobody.
func (l *Lease) Confirm(ctx context.Context, holder lease.Holder, term int64) error {
	return l.say(ctx, byHolder(l.name, holder), bson.D{
		{Key: "$max", Value: bson.D{{Key: "confirmed", Value: term}}},
		{Key: "$set", Value: bson.D{{Key: "halt", Value: ""}}},
	})
}

// byHolder is the filter of a lease that a process holds, in whatever tenure.
func byHolder(name string, holder lease.Holder) bson.D {
	return bson.D{{Key: "_id", Value: name}, {Key: "leaderId", Value: holder.ID}, {Key: "incarnation", Value: holder.Incarnation}}
}

func (l *Lease) say(ctx context.Context, which, update bson.D) error {
	if _, err := l.records.UpdateOne(ctx, which, update); err != nil {
		return fmt.Errorf("note in lease %q whether its holder waits: %w", l.name, majority.Explain(ctx, l.records.Database().Client(), err))
	}
	return nil
}

// Watch implements lease.Watcher with a change stream on the record.
func (l *Lease) Watch(ctx context.Context, changed func()) error {
	open, cancel := context.WithTimeout(ctx, watchSlack)
	defer cancel()
	stream, err := l.records.Watch(open, mongo.Pipeline{{{Key: "$match", Value: bson.D{
		{Key: "documentKey._id", Value: l.name},
	}}}}, options.ChangeStream().SetMaxAwaitTime(watchAwait))
	if err != nil {
		return fmt.Errorf("watch lease %q: %w", l.name, err)
	}
	defer l.forget(ctx, stream, stream.ID())
	changed()
	for ctx.Err() == nil {
		if l.poll(ctx, stream) {
			changed()
		}
		if err := stream.Err(); err != nil {
			return fmt.Errorf("watch lease %q: %w", l.name, err)
		}
		if stream.ID() == 0 {
			return fmt.Errorf("watch lease %q: closed by the server", l.name)
		}
	}
	return ctx.Err()
}

// forgetTime bounds telling the server that a cursor is not needed.
const forgetTime = 3 * time.Second

// forget frees a watch's cursor, also when ctx has ended.
func (l *Lease) forget(ctx context.Context, stream *mongo.ChangeStream, cursor int64) {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetTime)
	defer cancel()
	// A poll that its context cuts off has the driver forget the cursor: it tries to
	// close it with the same context.
	forgotten := stream.ID() == 0
	_ = stream.Close(closing) // a cursor that is not closed times out on the server
	if forgotten {
		l.records.Database().RunCommand(closing, bson.D{{Key: "killCursors", Value: l.records.Name()}, {Key: "cursors", Value: bson.A{cursor}}})
	}
}

func (l *Lease) poll(ctx context.Context, stream *mongo.ChangeStream) bool {
	poll, cancel := context.WithTimeout(ctx, watchAwait+watchSlack)
	defer cancel()
	return stream.TryNext(poll)
}

func (l *Lease) heldBy(holder lease.Holder) bson.D {
	return bson.D{
		{Key: "_id", Value: l.name},
		{Key: "leaderId", Value: holder.ID},
		{Key: "incarnation", Value: holder.Incarnation},
		{Key: "tenure", Value: holder.Tenure},
	}
}

// fromNow is the server's time d from now, in an aggregation expression.
func fromNow(d time.Duration) bson.D {
	return bson.D{{Key: "$add", Value: bson.A{"$$NOW", d.Milliseconds()}}}
}

// literal keeps a value that begins with a dollar sign from being read as a field.
func literal(value any) bson.D { return bson.D{{Key: "$literal", Value: value}} }
