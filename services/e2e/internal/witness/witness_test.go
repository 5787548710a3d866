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

	"changerelay/services/e2e/internal/cluster"
	"changerelay/services/e2e/internal/cluster/clustertest"
	"changerelay/services/e2e/internal/orders"
	"changerelay/services/e2e/internal/poll"
	"changerelay/services/e2e/internal/source"
	"changerelay/services/e2e/internal/validate"
)

// stage is a witness over a sandbox in which the test itself plays publisher
// and projector, so that it can do what those must not.
type stage struct {
	*Witness
	writer *source.Writer
	sender *azservicebus.Sender
	names  cluster.Names
	sent   int
}

func newStage(t *testing.T) *stage {
	t.Helper()
	endpoints, names := clustertest.Sandbox(t), cluster.DefaultNames()
	w, err := Open(t.Context(), endpoints, names, Latest)
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
	batch := []orders.Event{{Aggregate: aggregate, Version: version, Type: "T", Time: time.Now(), Data: orders.Data{"n": version}}}
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

// send sends an event as a publisher of the term would, under a fresh id.
func (s *stage) send(t *testing.T, aggregate string, version, term int64) {
	t.Helper()
	s.sent++
	err := s.sender.SendMessage(t.Context(), &azservicebus.Message{
		MessageID: new(fmt.Sprintf("%s-%d-%d-%d", aggregate, version, term, time.Now().UnixNano())), SessionID: &aggregate, PartitionKey: &aggregate,
		ApplicationProperties: map[string]any{
			"cloudEvents_source": s.names.Source(), "cloudEvents_aggregateversion": version, "cloudEvents_term": term,
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
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
	fields := bson.D{{Key: "data", Value: bson.D{{Key: "n", Value: version}}}, {Key: "_relay", Value: bson.D{{Key: "aggregateVersion", Value: version}, {Key: "by", Value: hold}}}}
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

func TestTheVerdictFindsWhatWasDoneWrong(t *testing.T) {
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
			name: "events that were archived, of which one was not sent and one not applied", want: map[string]int{LostBeforeTopic: 1, LostBeforeReadModel: 1, WrongDocuments: 1},
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
			name: "an event that nobody wrote", want: map[string]int{NeverWritten: 1, WrongDocuments: 1},
			do: func(t *testing.T, s *stage) {
				t.Helper()
				s.send(t, "ghost", 1, 1)
				s.apply(t, "ghost", 1)
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
			for _, f := range v.Faults {
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
