package witness

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"changerelay/pkg/contract"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/cluster/clustertest"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/poll"
	"changerelay/services/e2e/internal/harness/source"
)

// stage is a witness over a sandbox in which the test itself plays publisher
// and projector, so that it can do what those must not.
type stage struct {
	*Witness
	writer *source.Writer
	sender *azservicebus.Sender
	names  cluster.Names
	sent   int
	sentAt time.Time // when the last one was accepted
}

func newStage(t *testing.T) *stage {
	t.Helper()
	return newStageOf(t, Latest)
}

// newStageOf is newStage for another read model.
func newStageOf(t *testing.T, projection Projection) *stage {
	t.Helper()
	endpoints, names := clustertest.Sandbox(t), cluster.DefaultNames()
	w, err := Open(t.Context(), endpoints, names, projection)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	g := errgroup.Group{}
	g.Go(func() error { return w.Run(ctx) })
	client, err := azservicebus.NewClientFromConnectionString(endpoints.ServiceBus, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := g.Wait(); err != nil {
			t.Errorf("witness: %v", err)
		}
		w.Close(context.Background())
		_ = client.Close(context.Background())
	})
	sender, err := client.NewSender(names.Topic, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &stage{Witness: w, writer: source.NewWriter(w.Client, names.SourceDatabase, names.SourceCollection), sender: sender, names: names}
}

func (s *stage) write(t *testing.T, aggregate string, version int64) {
	t.Helper()
	batch := []orders.Event{event(aggregate, version)}
	if err := s.writer.Insert(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	s.Ledger.Wrote(batch)
}

// archive moves events out of the source.
func (s *stage) archive(t *testing.T, aggregate string, versions ...int64) {
	t.Helper()
	var ids []string
	for _, v := range versions {
		ids = append(ids, orders.Event{Aggregate: aggregate, Version: v}.ID())
	}
	if err := s.Archive(t.Context(), s.writer, ids); err != nil {
		t.Fatal(err)
	}
}

// send sends an event as a publisher of the term would, if the broker detected
// no duplicates.
func (s *stage) send(t *testing.T, aggregate string, version, term int64) {
	t.Helper()
	s.sendChanged(t, aggregate, version, term, func(*azservicebus.Message) {})
}

// sendChanged is send with the message changed. What is sent is written by the
// contract's encoder, so that it and the witness are held against each other.
func (s *stage) sendChanged(t *testing.T, aggregate string, version, term int64, change func(*azservicebus.Message)) {
	t.Helper()
	s.sent++
	m := s.encoded(t, aggregate, version, term)
	message := &azservicebus.Message{
		MessageID: &m.ID, SessionID: &m.SessionID, PartitionKey: &m.PartitionKey, Subject: &m.Subject, ContentType: &m.ContentType,
		ApplicationProperties: m.Properties, Body: m.Body,
	}
	change(message)
	// A broker tells of a message's time in milliseconds: each has one of its own.
	err := poll.Until(t.Context(), "another millisecond", func(context.Context) (bool, string) {
		return time.Now().Truncate(time.Millisecond).After(s.sentAt), "the one of the message before"
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.sender.SendMessage(t.Context(), message, nil); err != nil {
		t.Fatal(err)
	}
	s.sentAt = time.Now()
}

// encoded is an event's message as a publisher of the term would send it.
func (s *stage) encoded(t *testing.T, aggregate string, version, term int64) contract.Message {
	t.Helper()
	document := event(aggregate, version)
	owed := contract.Event{
		Source: contract.Source(s.names.SourceDatabase, s.names.SourceCollection), Type: document.Type, AggregateID: aggregate,
		Time: document.Time, Operation: contract.Insert, Version: contract.VersionOf(version), Term: term,
		Position: contract.StreamPosition(uint32(version), 1, "82"), ContentType: contract.ContentTypeJSON, Data: fmt.Appendf(nil, `{"n":{"$numberLong":"%d"}}`, version),
	}
	owed.Sequence = contract.SequenceOf(owed.Version, owed.Position)
	owed.ID = s.messageID(t, aggregate, version)
	m, err := contract.Encode(owed, contract.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// sendForeign sends a message of another source.
func (s *stage) sendForeign(t *testing.T) {
	t.Helper()
	s.sendChanged(t, "a", 1, 1, func(m *azservicebus.Message) {
		m.MessageID = new("foreign")
		set("source", "/other")(m)
	})
	s.sent-- // none of ours
}

// messageID is the event's id by the contract.
func (s *stage) messageID(t *testing.T, aggregate string, version int64) string {
	t.Helper()
	key, err := bson.Marshal(bson.D{{Key: "_id", Value: event(aggregate, version).ID()}})
	if err != nil {
		t.Fatal(err)
	}
	return contract.Identity{
		Database: s.names.SourceDatabase, Collection: s.names.SourceCollection, DocumentKey: key,
		Operation: contract.Insert, Version: contract.VersionOf(version),
	}.MessageID()
}

// event is the event of that version, of which the document in the source and
// the message are made.
func event(aggregate string, version int64) orders.Event {
	at := time.Date(1960, 2, 3, 4, 5, int(version), 6e6, time.UTC)
	return orders.Event{Aggregate: aggregate, Version: version, Type: "T", Time: at, Data: orders.Data{"n": version}}
}

// apply brings a read document to a version, as a projector would.
func (s *stage) apply(t *testing.T, aggregate string, version int64) {
	t.Helper()
	s.applyUnder(t, aggregate, version, "p/1")
}

// applyUnder is apply by a hold.
func (s *stage) applyUnder(t *testing.T, aggregate string, version int64, hold string) {
	t.Helper()
	docs := s.ReadModel().Collection(Latest.Collection)
	e := event(aggregate, version)
	fields := bson.D{{Key: "data", Value: bson.D{{Key: "n", Value: version}}}, {Key: "_relay", Value: bson.D{
		{Key: "eventId", Value: s.messageID(t, aggregate, version)},
		{Key: "eventType", Value: e.Type},
		{Key: "eventTime", Value: e.Time},
		{Key: "sequence", Value: fmt.Sprintf("%019d", version)},
		{Key: "aggregateVersion", Value: version},
		{Key: "by", Value: hold},
	}}}
	result, err := docs.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: aggregate}}, bson.D{{Key: "$set", Value: fields}})
	if err != nil {
		t.Fatal(err)
	}
	if result.MatchedCount == 1 {
		return
	}
	if _, err := docs.InsertOne(t.Context(), append(bson.D{{Key: "_id", Value: aggregate}}, fields...)); err != nil {
		t.Fatal(err)
	}
}

// relayField changes one field of a read document's bookkeeping.
func (s *stage) relayField(t *testing.T, aggregate, field string) {
	t.Helper()
	to := bson.D{{Key: "$set", Value: bson.D{{Key: "_relay." + field, Value: "other"}}}}
	if _, err := s.ReadModel().Collection(Latest.Collection).UpdateByID(t.Context(), aggregate, to); err != nil {
		t.Fatal(err)
	}
}

// checkpoint writes a checkpoint, whoever may.
func (s *stage) checkpoint(t *testing.T, owner string, term int64, position string) {
	t.Helper()
	c := s.State().Collection(checkpoints)
	if _, err := c.DeleteOne(t.Context(), bson.D{{Key: "_id", Value: "stream"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.InsertOne(t.Context(), bson.D{{Key: "_id", Value: "stream"}, {Key: "owner", Value: owner}, {Key: "term", Value: term}, {Key: "position", Value: position}}); err != nil {
		t.Fatal(err)
	}
}

// hold writes a lease, whoever may.
func (s *stage) hold(t *testing.T, leader string, from, until time.Time) {
	t.Helper()
	c := s.State().Collection(leases)
	if _, err := c.DeleteOne(t.Context(), bson.D{{Key: "_id", Value: "lease"}}); err != nil {
		t.Fatal(err)
	}
	doc := bson.D{{Key: "_id", Value: "lease"}, {Key: "leaderId", Value: leader}, {Key: "incarnation", Value: leader}, {Key: "heartbeatAt", Value: from}, {Key: "expiresAt", Value: until}}
	if _, err := c.InsertOne(t.Context(), doc); err != nil {
		t.Fatal(err)
	}
}

func TestWitness_TheVerdictFindsWhatWasDoneWrong(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		do   func(t *testing.T, s *stage)
		want map[string]int
	}{
		{
			name: "a clean run", want: map[string]int{},
			do: func(t *testing.T, s *stage) {
				t.Helper()
				s.hold(t, "p", time.Now(), time.Now().Add(time.Minute))
				for v := int64(1); v <= 3; v++ {
					s.write(t, "a", v)
					s.send(t, "a", v, 1)
					s.apply(t, "a", v)
					s.checkpoint(t, "p", 1, fmt.Sprint(v))
				}
			},
		},
		{
			name: "an event that the source acknowledged and lost", want: map[string]int{LostAtSource: 1},
			do: func(t *testing.T, s *stage) {
				t.Helper()
				s.write(t, "a", 1)
				s.send(t, "a", 1, 1)
				s.apply(t, "a", 1)
				s.Ledger.Wrote([]orders.Event{{Aggregate: "a", Version: 2}})
			},
		},
		{
			name: "an event that was not sent", want: map[string]int{LostBeforeTopic: 1},
			do: func(t *testing.T, s *stage) {
				t.Helper()
				s.write(t, "a", 1)
				s.apply(t, "a", 1)
			},
		},
		{
			name: "events that were not applied", want: map[string]int{LostBeforeReadModel: 2, WrongDocuments: 1},
			do: func(t *testing.T, s *stage) {
				t.Helper()
				s.write(t, "a", 1)
				s.write(t, "a", 2)
				s.send(t, "a", 1, 1)
				s.send(t, "a", 2, 1)
			},
		},
		{
			name: "events that were archived, of which one was not sent and one not applied", want: map[string]int{LostBeforeTopic: 1, LostBeforeReadModel: 1, WrongDocuments: 1, Misplaced: 1},
			do: func(t *testing.T, s *stage) {
				t.Helper()
				for v := int64(1); v <= 3; v++ {
					s.write(t, "a", v)
				}
				s.send(t, "a", 2, 1)
				s.send(t, "a", 3, 1)
				s.apply(t, "a", 2)
				s.archive(t, "a", 1, 2)
			},
		},
		{
			name: "events sent in the wrong order", want: map[string]int{OutOfOrder: 1},
			do: func(t *testing.T, s *stage) {
				t.Helper()
				s.write(t, "a", 1)
				s.write(t, "a", 2)
				s.send(t, "a", 2, 1)
				s.send(t, "a", 1, 1)
				s.apply(t, "a", 2)
			},
		},
		{
			name: "a read document that went back and forth", want: map[string]int{DocumentsWentBack: 1},
			do: func(t *testing.T, s *stage) {
				t.Helper()
				s.write(t, "a", 1)
				s.write(t, "a", 2)
				s.send(t, "a", 1, 1)
				s.send(t, "a", 2, 1)
				s.apply(t, "a", 2)
				s.apply(t, "a", 1)
				s.apply(t, "a", 2)
			},
		},
		{
			name: "a read document that two worked on at once", want: map[string]int{WorkedOnAtOnce: 1},
			do: func(t *testing.T, s *stage) {
				t.Helper()
				for v, hold := range []string{1: "p/1", 2: "q/1", 3: "p/1", 4: "q/2"} {
					if v > 0 {
						s.write(t, "a", int64(v))
						s.send(t, "a", int64(v), 1)
						s.applyUnder(t, "a", int64(v), hold)
					}
				}
			},
		},
		{
			name: "an event that nobody wrote", want: map[string]int{NeverWritten: 1, WrongDocuments: 1, Misplaced: 1},
			do: func(t *testing.T, s *stage) {
				t.Helper()
				s.send(t, "ghost", 1, 1)
				s.apply(t, "ghost", 1)
			},
		},
		{
			name: "an event under a second id", want: map[string]int{SeveralIDs: 1, UnlikeSource: 1},
			do: func(t *testing.T, s *stage) {
				t.Helper()
				s.write(t, "a", 1)
				s.send(t, "a", 1, 1)
				s.sendChanged(t, "a", 1, 1, func(m *azservicebus.Message) { m.MessageID = new("another") })
				s.apply(t, "a", 1)
			},
		},
		{
			name: "an event that stands before the one before it", want: map[string]int{PositionsBack: 1},
			do: func(t *testing.T, s *stage) {
				t.Helper()
				s.write(t, "a", 1)
				s.write(t, "a", 2)
				s.send(t, "a", 1, 1)
				s.sendChanged(t, "a", 2, 1, set("position", "0000000000000001.82"))
				s.apply(t, "a", 2)
			},
		},
		{
			name: "an event that stands where the one before it stands", want: map[string]int{PositionsBack: 1},
			do: func(t *testing.T, s *stage) {
				t.Helper()
				for v := int64(1); v <= 2; v++ {
					s.write(t, "a", v)
					s.sendChanged(t, "a", v, 1, set("position", "0000000500000001.82"))
					s.apply(t, "a", v)
				}
			},
		},
		{
			name: "documents that say they have come to another event, and are halted", want: map[string]int{Misplaced: 2, MarkedHalted: 1},
			do: func(t *testing.T, s *stage) {
				t.Helper()
				for i, field := range []string{"eventType", "eventId", "halted"} {
					aggregate := fmt.Sprint(i)
					s.write(t, aggregate, 1)
					s.send(t, aggregate, 1, 1)
					s.apply(t, aggregate, 1)
					s.relayField(t, aggregate, field)
				}
			},
		},
		{
			name: "a document that is deleted, and keeps its data", want: map[string]int{WrongDocuments: 1},
			do: func(t *testing.T, s *stage) {
				t.Helper()
				s.write(t, "a", 1)
				s.send(t, "a", 1, 1)
				s.apply(t, "a", 1)
				tombstone := bson.D{{Key: "_id", Value: "b"}, {Key: "data", Value: 1}, {Key: "_relay", Value: bson.D{{Key: "deletedAt", Value: time.Now()}}}}
				insert(t, s.ReadModel().Collection(Latest.Collection), tombstone)
			},
		},
		{
			name: "a message of another source", want: map[string]int{Foreign: 1},
			do: func(t *testing.T, s *stage) {
				t.Helper()
				s.write(t, "a", 1)
				s.send(t, "a", 1, 1)
				s.apply(t, "a", 1)
				s.sendForeign(t)
			},
		},
		{
			name: "an insert that is sent as a copy's", want: map[string]int{Copied: 1},
			do: func(t *testing.T, s *stage) {
				t.Helper()
				s.write(t, "a", 1)
				s.sendChanged(t, "a", 1, 1, set("operation", "snapshot"))
				s.apply(t, "a", 1)
			},
		},
		{
			name: "a message that is dropped after an hour", want: map[string]int{Mortal: 1},
			do: func(t *testing.T, s *stage) {
				t.Helper()
				s.write(t, "a", 1)
				s.sendChanged(t, "a", 1, 1, func(m *azservicebus.Message) { m.TimeToLive = new(time.Hour) })
				s.apply(t, "a", 1)
			},
		},
		{
			name: "a term out of nowhere", want: map[string]int{TermsUnclaimed: 1, OverlappingTerms: 1},
			do: func(t *testing.T, s *stage) {
				t.Helper()
				s.write(t, "a", 1)
				s.send(t, "a", 1, 9)
				s.apply(t, "a", 1)
			},
		},
		{
			name: "a checkpoint written by an old term, and one that went back", want: map[string]int{CheckpointsWentBack: 2},
			do: func(t *testing.T, s *stage) {
				t.Helper()
				s.checkpoint(t, "p", 2, "b")
				s.checkpoint(t, "p", 1, "c")
				s.checkpoint(t, "p", 1, "a")
			},
		},
		{
			name: "a term that two publishers claimed", want: map[string]int{TermsShared: 1},
			do: func(t *testing.T, s *stage) {
				t.Helper()
				s.checkpoint(t, "p", 1, "a")
				s.checkpoint(t, "q", 1, "b")
			},
		},
		{
			name: "a lease taken from its holder", want: map[string]int{LeasesOverlapping: 1},
			do: func(t *testing.T, s *stage) {
				t.Helper()
				s.hold(t, "p", time.Now(), time.Now().Add(time.Minute))
				s.hold(t, "q", time.Now().Add(time.Second), time.Now().Add(time.Minute))
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			tt.do(t, s)
			s.settle(t)
			v, err := s.Judge(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range v.Violations {
				if f.Count != tt.want[f.Name] {
					t.Errorf("%s: got %d %q, want %d", f.Name, f.Count, f.Samples, tt.want[f.Name])
				}
			}
		})
	}
}

// settle waits until the watchers have seen all that was done: each stream is in
// order, so a last write that is seen says that all before it were.
func (s *stage) settle(t *testing.T) {
	t.Helper()
	s.write(t, "last", 1)
	s.send(t, "last", 1, 1)
	s.apply(t, "last", 1)
	if _, err := s.State().Collection(checkpoints).InsertOne(t.Context(), bson.D{{Key: "_id", Value: "last"}, {Key: "term", Value: int64(1)}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.State().Collection(leases).InsertOne(t.Context(), bson.D{{Key: "_id", Value: "last"}, {Key: "leaderId", Value: "x"}}); err != nil {
		t.Fatal(err)
	}
	seen := func() bool {
		return s.Observer.Count() == s.sent &&
			slices.ContainsFunc(s.Applies.History(), func(a validate.Apply) bool { return a.Document == "last" }) &&
			slices.ContainsFunc(s.Checkpoints.History(), func(c validate.Checkpoint) bool { return c.Stream == "last" }) &&
			slices.ContainsFunc(s.Leases.History(), func(h validate.Holding) bool { return h.Lease == "last" })
	}
	err := poll.Until(t.Context(), "the watchers to have seen all", func(context.Context) (bool, string) { return seen(), "not all" })
	if err != nil {
		t.Fatal(err)
	}
}

// Who watches a relay that runs already has not seen its term being claimed.
func TestWitness_ATermThatWasClaimedBeforeIsKnown(t *testing.T) {
	t.Parallel()
	servers, names := clustertest.Sandbox(t), cluster.DefaultNames()
	open := func() *Witness {
		w, err := Open(t.Context(), servers, names, Orders)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close(context.Background()) })
		return w
	}
	before := open()
	claimed := bson.D{{Key: "_id", Value: "s"}, {Key: "owner", Value: "p"}, {Key: "term", Value: int64(3)}}
	if _, err := before.State().Collection(checkpoints).InsertOne(t.Context(), claimed); err != nil {
		t.Fatal(err)
	}
	w := open()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	save := bson.D{{Key: "$set", Value: bson.D{{Key: "position", Value: "p1"}}}}
	if _, err := before.State().Collection(checkpoints).UpdateByID(t.Context(), "s", save); err != nil {
		t.Fatal(err)
	}
	want := []validate.Checkpoint{{Stream: "s", Owner: "p", Term: 3, Position: "p1"}}
	err := poll.Until(t.Context(), "what was saved", func(context.Context) (bool, string) {
		got := w.Checkpoints.History()
		for i := range got {
			got[i].At = 0 // now
		}
		return slices.Equal(got, want), fmt.Sprint(got)
	})
	stop()
	if ended := <-done; err != nil || ended != nil {
		t.Errorf("history: %v, %v, want %v", err, ended, want)
	}
}

// set changes a CloudEvents attribute of a message; nil takes it away.
func set(attribute string, value any) func(*azservicebus.Message) {
	return func(m *azservicebus.Message) {
		m.ApplicationProperties["cloudEvents_"+attribute] = value
		if value == nil {
			delete(m.ApplicationProperties, "cloudEvents_"+attribute)
		}
	}
}

func TestWitness_TheVerdictFindsEveryPartOfAMessageThatIsUnlikeItsDocument(t *testing.T) {
	t.Parallel()
	changes := []func(*azservicebus.Message){
		func(m *azservicebus.Message) { m.MessageID = new("x") },
		func(m *azservicebus.Message) { m.Subject = new("x") },
		func(m *azservicebus.Message) { m.Subject = nil },
		func(m *azservicebus.Message) { m.ContentType = new("text/plain") },
		func(m *azservicebus.Message) { m.Body = []byte(`{}`) },
		func(m *azservicebus.Message) { m.Body = []byte(`{"n":1.0}`) },
		func(m *azservicebus.Message) { m.Body = []byte(`{"n":1`) },
		set("specversion", "1.1"), set("specversion", nil),
		set("contractversion", "2"), set("contractversion", nil),
		set("id", "x"), set("id", nil),
		set("type", "x"), set("type", nil),
		set("subject", "x"), set("subject", nil),
		set("operation", "update"), set("operation", nil),
		set("sequence", "1"), set("sequence", nil),
		set("time", "1970-01-01T00:00:00Z"), set("time", nil),
		set("dataschema", "x"),
		set("further", "x"),
		func(m *azservicebus.Message) { m.CorrelationID = new("x") },
		func(m *azservicebus.Message) { m.ReplyTo = new("x") },
		func(m *azservicebus.Message) { m.ReplyToSessionID = new("x") },
		func(m *azservicebus.Message) { m.To = new("x") },
		func(m *azservicebus.Message) { m.ScheduledEnqueueTime = new(time.Now().Add(-time.Hour)) },
	}
	s := newStage(t)
	for i, change := range changes {
		aggregate := fmt.Sprint(i)
		s.write(t, aggregate, 1)
		s.sendChanged(t, aggregate, 1, 1, change)
		s.apply(t, aggregate, 1)
	}
	s.settle(t)
	v, err := s.Judge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := v.Violation(UnlikeSource); got.Count != len(changes) {
		t.Errorf("got %d %q, want all %d", got.Count, got.Samples, len(changes))
	}
}

// What another group has made of the events is judged by itself: by a document that
// counts an event twice, one that lacks one, and one of an aggregate that nobody has.
func TestJudge_FindsWhatAnotherGroupHasMadeWrong(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, aggregate := range []string{"lost", "right", "twice"} {
		s.write(t, aggregate, 1)
		s.send(t, aggregate, 1, 1)
	}
	s.judgeBeside(t)
	insert(t, s.ReadModel().Collection("beside"),
		bson.D{{Key: "_id", Value: "right"}, {Key: "events", Value: int64(1)}, {Key: "sum", Value: int64(1)}, {Key: "tail", Value: bson.A{int64(1)}}},
		bson.D{{Key: "_id", Value: "twice"}, {Key: "events", Value: int64(2)}, {Key: "sum", Value: int64(2)}})
	s.awaitTallied(t, 2)
	v, err := s.Judge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := v.Violation(MisappliedBeside); got.Count != 2 {
		t.Errorf("misapplied: got %d %q, want the lost one and the double one", got.Count, got.Samples)
	}
	if got := v.Violation(WrongBeside); got.Count == 0 {
		t.Error("got no document that is unlike the last event of its aggregate")
	}
}
