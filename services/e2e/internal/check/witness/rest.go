package witness

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/poll"
)

// What the relay leaves behind, by the collections and entities it is left in.
const (
	StillQueued      = "messages left in the subscription"
	DeadLettered     = "messages dead-lettered"
	ParkedChanges    = "changes parked by a publisher"
	ParkedMessages   = "messages parked by a projector"
	HaltedAggregates = "halted aggregates"
	SkippedEvents    = "events that projections go on without"
	LedgerGaps       = "gaps that the ledger of a stream names"
	CheckpointBehind = "checkpoints behind the last event"
)

const (
	// quiet is how long nothing must move for the relay to be at rest.
	quiet = time.Second
	// savePatience is how long a checkpoint may take to come to the last event.
	savePatience = 15 * time.Second
	// pollsAtEnd is how many empty answers in a row say that a stream is at its end.
	pollsAtEnd = 3
)

// motion is all that moves while the relay works.
type motion struct{ written, applied, seen, resent, writes, changes int }

func (w *Witness) motion() motion {
	m := motion{seen: w.Observer.Count(), resent: w.Observer.CountResent(), writes: len(w.Applies.History())}
	m.written, m.applied = w.Ledger.Counts()
	if w.tallies != nil {
		m.writes += w.tallies.Writes()
	}
	for _, seen := range w.seenBeside() {
		m.writes += seen.Writes()
	}
	m.changes = m.written
	if w.documents != nil {
		m.changes = w.documents.seen()
	}
	return m
}

// AwaitDrain waits until all that was written has been seen on the topic and in
// the read model, nothing is left in the subscription, and nothing has moved for
// a while.
func (w *Witness) AwaitDrain(ctx context.Context) error {
	return w.awaitStill(ctx, "the backlog to drain", quiet, func(m motion) bool { return min(m.applied+len(w.halted), m.seen, m.changes) >= m.written })
}

// AwaitStill waits until nothing has moved for so long and nothing is left in the
// subscription, whatever has not arrived.
func (w *Witness) AwaitStill(ctx context.Context, quiet time.Duration) error {
	return w.awaitStill(ctx, "the relay to come to rest", quiet, func(motion) bool { return true })
}

func (w *Witness) awaitStill(ctx context.Context, what string, quiet time.Duration, enough func(motion) bool) error {
	var last motion
	still := time.Now() // since when nothing has moved
	return poll.Until(ctx, what, func(ctx context.Context) (bool, string) {
		now := w.motion()
		if now != last {
			last, still = now, time.Now()
		}
		state := fmt.Sprintf("%d of %d events in the read model, %d on the topic", now.applied, now.written, now.seen)
		if !enough(now) || time.Since(still) < quiet {
			return false, state
		}
		queued, err := w.queued(ctx)
		return err == nil && queued == 0, fmt.Sprintf("%s, %d messages in the subscription, error %v", state, queued, err)
	})
}

// queued is how many messages are in the projectors' subscriptions. A broker that
// is no sandbox does not tell.
func (w *Witness) queued(ctx context.Context) (int64, error) {
	if w.endpoints.SandboxStatusURL == "" {
		return 0, nil
	}
	status, err := w.endpoints.SandboxStatus(ctx)
	if err != nil {
		return 0, err
	}
	left := int64(0)
	for _, name := range w.subscriptions {
		entity, err := status.Entity(w.names.Topic + "/Subscriptions/" + name)
		if err != nil {
			return 0, fmt.Errorf("count what is queued: %w", err)
		}
		left += entity.Counts.Active + entity.Counts.Deferred + entity.Counts.Scheduled
	}
	return left, nil
}

// AtRest looks at what a relay that is at rest has left behind, after Judge. Whoever
// injected faults knows how much of it they explain. What is left in a subscription only a sandbox
// tells.
func (w *Witness) AtRest(ctx context.Context) ([]Violation, error) {
	queued, err := w.queued(ctx)
	if err != nil {
		return nil, err
	}
	var violations []Violation
	if w.endpoints.SandboxStatusURL != "" {
		violations = []Violation{{StillQueued, validate.Findings{Count: int(queued)}}}
	}
	dead, err := w.deadLettered(ctx)
	if err != nil {
		return nil, err
	}
	violations = append(violations, Violation{DeadLettered, dead})
	for _, left := range []struct {
		name, of string
		which    bson.D
	}{
		{ParkedMessages, parkedMessages, bson.D{}},
		{HaltedAggregates, haltedAggregates, bson.D{}},
		{SkippedEvents, skippedEvents, lacked},
	} {
		found, err := w.setAside(ctx, left.of, left.which)
		if err != nil {
			return nil, fmt.Errorf("count %s: %w", left.name, err)
		}
		violations = append(violations, Violation{left.name, found})
	}
	for _, left := range []struct {
		name, of string
		which    bson.D
	}{
		{ParkedChanges, parkedChanges, bson.D{}},
		{LedgerGaps, gapsLedger, bson.D{{Key: "decision", Value: bson.D{{Key: "$nin", Value: bson.A{"begin", "void"}}}}}},
	} {
		n, err := w.State().Collection(left.of).CountDocuments(ctx, left.which)
		if err != nil {
			return nil, fmt.Errorf("count %s: %w", left.name, err)
		}
		violations = append(violations, Violation{left.name, validate.Findings{Count: int(n)}})
	}
	behind, err := w.checkpointsBehind(ctx)
	return append(violations, Violation{CheckpointBehind, behind}), err
}

// setAside finds what the projectors keep in a collection of each group, and that should
// not be there: of the first group, where some are expected, what is unlike that.
func (w *Witness) setAside(ctx context.Context, collection string, which bson.D) (found validate.Findings, err error) {
	of := []string{collection}
	for group := range w.seenBeside() {
		of = append(of, collection+"."+group)
	}
	unlike := w.unlikeHalted
	if collection == skippedEvents {
		unlike = func(ctx context.Context, _ string) (validate.Findings, error) { return w.unlikeSkipped(ctx) }
	}
	if collection == skippedEvents && w.projection.OnError != "" || collection != skippedEvents && len(w.halted) > 0 {
		if found, err = unlike(ctx, collection); err != nil {
			return found, err
		}
		of = of[1:]
	}
	for _, name := range of {
		n, err := w.ReadModel().Collection(name).CountDocuments(ctx, which)
		if err != nil {
			return found, err
		}
		found.Count += int(n)
	}
	return found, nil
}

// checkpointsBehind finds checkpoints from which events would be read again,
// although all were sent. A save may be on its way still.
func (w *Witness) checkpointsBehind(ctx context.Context) (found validate.Findings, err error) {
	wait, cancel := context.WithTimeout(ctx, savePatience)
	defer cancel()
	_ = poll.Until(wait, "the checkpoints", func(context.Context) (bool, string) {
		found, err = w.behind(ctx)
		return err == nil && found.Count == 0, ""
	})
	return found, err
}

func (w *Witness) behind(ctx context.Context) (found validate.Findings, err error) {
	var stored []struct {
		Stream  string          `bson:"_id"`
		Token   bson.Raw        `bson:"token"`
		StartAt *bson.Timestamp `bson:"startAt"`
	}
	cursor, err := w.State().Collection(checkpoints).Find(ctx, bson.D{})
	if err == nil {
		err = cursor.All(ctx, &stored)
	}
	if err != nil {
		return found, fmt.Errorf("read the checkpoints: %w", err)
	}
	if len(stored) == 0 {
		found.Add("there is no checkpoint")
	}
	for _, c := range stored {
		start := options.ChangeStream().SetMaxAwaitTime(10 * time.Millisecond)
		switch {
		case c.Token != nil:
			start.SetResumeAfter(c.Token)
		case c.StartAt != nil:
			start.SetStartAtOperationTime(c.StartAt)
		default:
			found.Add("%s: is at no place", c.Stream)
			continue
		}
		for _, collection := range w.names.Collections() {
			n, err := w.eventsAfter(ctx, collection, start)
			if err != nil {
				return found, fmt.Errorf("read on from the checkpoint of %s: %w", c.Stream, err)
			}
			if n > 0 {
				found.Add("%s: %d events of %s would be read again", c.Stream, n, collection)
			}
		}
	}
	return found, nil
}

// eventsAfter counts the events of a collection of the source after a place.
func (w *Witness) eventsAfter(ctx context.Context, collection string, start *options.ChangeStreamOptionsBuilder) (n int, err error) {
	events := bson.A{"insert"}
	if w.documents != nil {
		events = append(events, "update", "replace", "delete")
	}
	these := mongo.Pipeline{{{Key: "$match", Value: bson.D{{Key: "operationType", Value: bson.D{{Key: "$in", Value: events}}}}}}}
	stream, err := w.Client.Database(w.names.SourceDatabase).Collection(collection).Watch(ctx, these, start)
	if err != nil {
		return 0, err
	}
	defer stream.Close(context.WithoutCancel(ctx))
	for empty := 0; empty < pollsAtEnd && stream.Err() == nil; {
		if stream.TryNext(ctx) {
			n, empty = n+1, 0
			continue
		}
		empty++
	}
	return n, stream.Err()
}
