package witness

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/poll"
	"changerelay/services/e2e/internal/harness/source"
)

// receive empties the projectors' subscription of one message, by completing or
// dead-lettering it.
func (s *stage) receive(t *testing.T, dead bool) {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(s.endpoints.ServiceBus, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.WithoutCancel(t.Context()))
	session, err := client.AcceptNextSessionForSubscription(t.Context(), s.names.Topic, s.names.Subscription, nil)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := session.ReceiveMessages(t.Context(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if dead {
		err = session.DeadLetterMessage(t.Context(), messages[0], nil)
	} else {
		err = session.CompleteMessage(t.Context(), messages[0], nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// tokenNow saves a checkpoint at the source's last change.
func (s *stage) tokenNow(t *testing.T) {
	t.Helper()
	stream, err := s.Client.Database(s.names.SourceDatabase).Collection(s.names.SourceCollection).Watch(t.Context(), bson.A{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close(context.WithoutCancel(t.Context()))
	to := bson.D{{Key: "$set", Value: bson.D{{Key: "token", Value: stream.ResumeToken()}}}}
	if _, err := s.State().Collection(checkpoints).UpdateByID(t.Context(), "stream", to, options.UpdateOne().SetUpsert(true)); err != nil {
		t.Fatal(err)
	}
}

// wantNoDrain tries AwaitDrain until it says why it did not come to its end.
func (s *stage) wantNoDrain(t *testing.T, because string) {
	t.Helper()
	err := poll.Until(t.Context(), "the reason", func(ctx context.Context) (bool, string) {
		ctx, cancel := context.WithTimeout(ctx, quiet+time.Second)
		defer cancel()
		err := s.AwaitDrain(ctx)
		if err == nil {
			t.Fatalf("drained, want it not to: %s", because)
		}
		return strings.Contains(err.Error(), because), err.Error()
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAwaitDrain_WaitsForTheSubscriptionAndForSilence(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.write(t, "a", 1)
	s.wantNoDrain(t, "0 of 1 events in the read model, 0 on the topic")
	if err := s.AwaitStill(t.Context(), quiet); err != nil {
		t.Errorf("with nothing that moves: got %v, want it at rest", err)
	}
	s.send(t, "a", 1, 1)
	s.apply(t, "a", 1)
	s.wantNoDrain(t, "1 messages in the subscription")
	s.receive(t, false)
	began := time.Now()
	if err := s.AwaitDrain(t.Context()); err != nil || time.Since(began) < quiet {
		t.Errorf("drained: got %v after %v, want it after %v of silence", err, time.Since(began), quiet)
	}
}

func TestAtRest_FindsWhatIsLeftBehind(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.write(t, "a", 1)
	s.tokenNow(t)
	s.expectLeft(t, map[string]int{})
	s.send(t, "a", 1, 1)
	s.receive(t, true)
	s.sendForeign(t)
	s.receive(t, true)
	s.send(t, "b", 1, 1)
	for collection, in := range map[string]string{"parked_changes": s.names.StateDatabase, "parked_messages": s.names.ReadModelDatabase, "halted_aggregates": s.names.ReadModelDatabase} {
		if _, err := s.Client.Database(in).Collection(collection).InsertOne(t.Context(), bson.D{{Key: "x", Value: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	s.expectLeft(t, map[string]int{StillQueued: 1, DeadLettered: 2, ParkedChanges: 1, ParkedMessages: 1, HaltedAggregates: 1})
}

// A group beside the first one leaves behind what it likes no more than that one does.
func TestAtRest_FindsWhatAnotherGroupLeavesBehind(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.write(t, "a", 1)
	s.tokenNow(t)
	s.send(t, "a", 1, 1)
	s.receive(t, true)
	of := s.names.Subscription
	s.Witness.names.Subscription, s.subscriptions = s.names.Observer, nil
	for _, collection := range []string{"parked_messages.beside", "halted_aggregates.beside", "skipped_events.beside"} {
		insert(t, s.ReadModel().Collection(collection), bson.D{{Key: "x", Value: 1}})
	}
	s.expectLeft(t, map[string]int{})
	s.judgeBeside(t)
	s.AwaitBeside(of)
	s.AwaitBeside(of)
	s.expectLeft(t, map[string]int{DeadLettered: 1, ParkedMessages: 1, HaltedAggregates: 1, SkippedEvents: 1})
}

// A subscription that the projectors were on for a while keeps what they left in it, and what
// they have dead-lettered.
func TestAtRest_FindsDeadLettersOfASubscriptionThatWasMovedFrom(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.write(t, "a", 1)
	s.tokenNow(t)
	s.send(t, "a", 1, 1)
	s.receive(t, true)
	s.send(t, "b", 1, 1)
	of := s.names.Subscription
	s.Witness.names.Subscription, s.subscriptions = s.names.Observer, nil
	s.expectLeft(t, map[string]int{})
	s.MayMove(of)
	s.MayMove(of)
	s.expectLeft(t, map[string]int{DeadLettered: 1})
}

// Events that projections go on without are left behind, until they are applied after all.
func TestAtRest_FindsSkippedEvents(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.write(t, "a", 1)
	s.tokenNow(t)
	insert(t, s.ReadModel().Collection("skipped_events"), bson.D{{Key: "x", Value: 1}}, bson.D{{Key: "endedAt", Value: time.Now()}})
	s.expectLeft(t, map[string]int{SkippedEvents: 1})
}

// Lines of the ledger that are no gaps say where a stream began, and what was not done.
func TestAtRest_FindsLinesOfTheLedger(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.write(t, "a", 1)
	s.tokenNow(t)
	var lines []any
	for _, decision := range []string{"begin", "void", "set", "stop", "lost"} {
		lines = append(lines, bson.D{{Key: "stream", Value: "s"}, {Key: "decision", Value: decision}})
	}
	insert(t, s.State().Collection(gapsLedger), lines...)
	s.expectLeft(t, map[string]int{LedgerGaps: 3})
}

// Old dead letters of others do not hide those of the relay.
func TestAtRest_LooksAtEveryDeadLetter(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for v := range int64(deadAtOnce) {
		s.send(t, "a", v, 1)
		s.receive(t, true)
	}
	s.send(t, "b", 1, 1)
	s.receive(t, true)
	found, err := s.deadLettered(t.Context())
	if err != nil || found.Count != deadAtOnce+1 {
		t.Errorf("dead letters: got %d, %v, want %d", found.Count, err, deadAtOnce+1)
	}
}

// What nobody tells is not said to be nothing.
func TestAtRest_SaysNothingOfASubscriptionThatDoesNotTell(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.write(t, "a", 1)
	s.tokenNow(t)
	s.endpoints.SandboxStatusURL = ""
	left, err := s.AtRest(t.Context())
	if err != nil || slices.ContainsFunc(left, func(v Violation) bool { return v.Name == StillQueued }) {
		t.Errorf("left: got %v, %v, want nothing said of the subscription", left, err)
	}
}

func (s *stage) expectLeft(t *testing.T, want map[string]int) {
	t.Helper()
	left, err := s.AtRest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		if f.Count != want[f.Name] {
			t.Errorf("%s: got %d %q, want %d", f.Name, f.Count, f.Samples, want[f.Name])
		}
	}
	for name := range want {
		if !slices.ContainsFunc(left, func(f Violation) bool { return f.Name == name }) {
			t.Errorf("%s: nobody has looked, want %d", name, want[name])
		}
	}
}

func TestAtRest_FindsACheckpointBehindTheLastEvent(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	behind := func() validate.Findings {
		t.Helper()
		f, err := s.behind(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if f := behind(); f.Count != 1 {
		t.Errorf("without a checkpoint: got %d, want 1", f.Count)
	}
	s.checkpoint(t, "p", 1, "a")
	if f := behind(); f.Count != 1 {
		t.Errorf("with one that is at no place: got %d, want 1", f.Count)
	}
	s.tokenNow(t)
	if f := behind(); f.Count != 0 {
		t.Errorf("at the end: got %q", f.Samples)
	}
	s.write(t, "a", 1)
	if f := behind(); f.Count != 1 || !strings.Contains(f.Samples[0], "1 events") {
		t.Errorf("one event behind: got %d %q", f.Count, f.Samples)
	}
}

func TestForgive_TakesWhatALineOfTheLedgerNames(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.write(t, "a", 1)
	s.write(t, "b", 1)
	s.send(t, "b", 1, 1)
	s.write(t, "d", 1)
	s.write(t, "d", 2)
	s.send(t, "d", 2, 1)
	s.send(t, "d", 1, 1)
	err := poll.Until(t.Context(), "the message", func(context.Context) (bool, string) { return s.Observer.Count() == 3, "none" })
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []time.Time{{}, time.Now().Add(-time.Hour), time.Now()} {
		line := bson.D{{Key: "stream", Value: "s"}, {Key: "fromTime", Value: time.Now().Add(-2 * time.Hour)}, {Key: "decision", Value: "now"}}
		if !to.IsZero() {
			line = append(line, bson.E{Key: "toTime", Value: to})
		}
		if _, err := s.State().Collection(gapsLedger).DeleteMany(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.State().Collection(gapsLedger).InsertOne(t.Context(), line); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Forgive(t.Context(), Doings{Moves: atAnyTime()}); err != nil {
			t.Fatal(err)
		}
		covered := time.Since(to) < time.Minute
		for e, want := range map[validate.Event]pardon{{Aggregate: "a", Version: 1}: unsent, {Aggregate: "b", Version: 1}: due, {Aggregate: "c", Version: 1}: due, {Aggregate: "d", Version: 1}: late, {Aggregate: "d", Version: 2}: due} {
			if !covered {
				want = due
			}
			if got := s.forgiven(source.Stored{Event: event(e.Aggregate, e.Version)}); got != want {
				t.Errorf("line to %v, event %v: forgiven %v, want %v", to, e, got, want)
			}
		}
	}
}

// A line that passes over nothing, or over another partition's changes, forgives no loss.
func TestForgive_TakesNothingForALineThatIsNoGap(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.write(t, "a", 1) // of partition 0 of 2, and 1 of 3
	began, now := time.Now().Add(-time.Minute), time.Now()
	for _, tt := range []struct {
		stream, decision string
		from, to         time.Time
		want             pardon
	}{
		{"s", "now", began, now, unsent},
		{"s", "set", began, now, unsent},
		{"s", "set", now, now, unsent}, // within a second
		{"s", "reset", began, now, unsent},
		{"s", "accept", began, now, unsent},
		{"s-0of2", "now", began, now, unsent},
		{"s-1of3", "reset", began, now, unsent},
		{"s-1of2", "now", began, now, due},
		{"s-2of3", "reset", began, now, due},
		{"s", "begin", began, now, due},
		{"s", "void", began, now, due},
		{"s", "void", now, now, due},
		{"s", "lost", began, now, due},
		{"s", "discarded", began, now, due},
		{"s", "heal", began, now, due},
		{"s", "snapshot", began, now, due},
		{"s", "stop", began, now, due},
		{"s", "report", now, now, due},
		{"s", "accept", now, now, due},                   // of settings
		{"s", "set", now.Add(time.Second), now, due},     // back, with other settings
		{"s", "reset", now.Add(time.Second), began, due}, // back
	} {
		if _, err := s.State().Collection(gapsLedger).DeleteMany(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
		insert(t, s.State().Collection(gapsLedger), bson.D{{Key: "stream", Value: tt.stream}, {Key: "decision", Value: tt.decision}, {Key: "fromTime", Value: tt.from}, {Key: "toTime", Value: tt.to}})
		if _, _, err := s.Forgive(t.Context(), Doings{Moves: atAnyTime()}); err != nil {
			t.Fatal(err)
		}
		if got := s.forgiven(source.Stored{Event: event("a", 1)}); got != tt.want {
			t.Errorf("%s of %s, %v to %v: forgiven %v, want %v", tt.decision, tt.stream, tt.from, tt.to, got, tt.want)
		}
	}
}

// What an operator has left out is forgiven where he knows of it and a ledger names
// it, and where it is not there all the same. One of both alone is not enough.
func TestForgive_TakesWhatAnOperatorHasLeftOut(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.projection.Shadow = "shadow"
	for n := int64(1); n <= 5; n++ {
		s.write(t, "a", n)
		s.send(t, "a", n, 1)
	}
	s.write(t, "b", 1)
	s.write(t, "b", 2)
	s.write(t, "b", 3)
	s.write(t, "gone", 1)
	s.send(t, "gone", 1, 1)
	s.write(t, "gone", 2)
	s.send(t, "gone", 2, 1)
	err := poll.Until(t.Context(), "the messages", func(context.Context) (bool, string) { return s.Observer.Count() == 7, "not all" })
	if err != nil {
		t.Fatal(err)
	}
	line := func(command, aggregate string, version any) bson.D {
		return bson.D{{Key: "command", Value: command}, {Key: "about", Value: bson.A{bson.D{{Key: "aggregate", Value: aggregate}, {Key: "version", Value: version}}}}}
	}
	lines := []any{
		line("parked discard", "a", int64(1)), line("halts resume", "a", int64(2)), line("parked discard", "a", int64(3)), line("parked discard", "a", int64(5)),
		line("parked discard", "b", int64(1)), line("dlq discard", "a", nil), line("parked redrive --accept-lost", "gone", nil),
		line("parked redrive --accept-lost", "there", nil),
		append(line("parked discard", "a", int64(4)), bson.E{Key: "group", Value: "others"}), append(line("parked discard", "gone", int64(2)), bson.E{Key: "group", Value: "others"}),
	}
	now := time.Now()
	purge := bson.D{{Key: "fromTime", Value: now}, {Key: "toTime", Value: now}, {Key: "decision", Value: "discarded"}, {Key: "error", Value: "2 changes were discarded and never sent: f00d; cafe"}}
	insert(t, s.ReadModel().Collection(decisionsLedger), lines...)
	lost := bson.D{{Key: "fromTime", Value: now}, {Key: "toTime", Value: now}, {Key: "decision", Value: "lost"}, {Key: "error", Value: "1 of 2 changes that \"s\" has parked are gone from parked_changes (beef)"}}
	insert(t, s.State().Collection(gapsLedger), purge, lost)
	insert(t, s.ReadModel().Collection("shadow"), bson.D{{Key: "_id", Value: "a"}, {Key: "tail", Value: bson.A{int64(4), int64(5)}}})
	change := func(id string) Leaving { return Leaving{Changes: []string{"first", id}} }
	leftOut := LeftOut{
		{Aggregate: "a", Version: 1}: {}, {Aggregate: "a", Version: 2}: {}, {Aggregate: "a", Version: 5}: {},
		{Aggregate: "b", Version: 1}: change("dead"), {Aggregate: "b", Version: 2}: change("cafe"), {Aggregate: "b", Version: 3}: change("beef"),
		{Aggregate: "gone", Version: 1}: {Deleted: true}, {Aggregate: "gone", Version: 2}: {},
	}
	_, ofNobody, err := s.Forgive(t.Context(), Doings{LeftOut: map[string]LeftOut{ownGroup: leftOut, "others": {{Aggregate: "a", Version: 4}: {}}}})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ofNobody.Samples)
	if want := []string{"event 2 of gone", "event 3 of a", "messages of there that are gone", "parked change f00d"}; !slices.Equal(ofNobody.Samples, want) {
		t.Errorf("lines of nobody: got %q, want %q", ofNobody.Samples, want)
	}
	for e, want := range map[validate.Event]pardon{
		{Aggregate: "a", Version: 1}:    without, // named, and known
		{Aggregate: "a", Version: 2}:    due,     // known, and named by a line of another kind
		{Aggregate: "a", Version: 3}:    due,     // named, and left out by nobody
		{Aggregate: "a", Version: 4}:    due,
		{Aggregate: "a", Version: 5}:    due,    // named and known, and there all the same
		{Aggregate: "b", Version: 1}:    due,    // of a change that no line names
		{Aggregate: "b", Version: 2}:    unsent, // discarded by the publisher
		{Aggregate: "b", Version: 3}:    unsent, // gone from the state database
		{Aggregate: "gone", Version: 1}: without,
		{Aggregate: "gone", Version: 2}: due, // of another group, and not deleted here
	} {
		if got := s.forgiven(source.Stored{Event: event(e.Aggregate, e.Version)}); got != want {
			t.Errorf("event %v: forgiven %v, want %v", e, got, want)
		}
	}
}

func insert(t *testing.T, into *mongo.Collection, documents ...any) {
	t.Helper()
	if _, err := into.InsertMany(t.Context(), documents); err != nil {
		t.Fatal(err)
	}
}
