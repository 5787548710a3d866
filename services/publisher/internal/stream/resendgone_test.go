package stream

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/redact"
	"changerelay/services/publisher/internal/resend"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// resending is a term of a stream with one partition, and what is kept of its resends.
type resending struct {
	t    *testing.T
	s    *resends
	kept *mongo.Collection
	said bytes.Buffer
}

func beginResending(t *testing.T) *resending {
	t.Helper()
	client, name := testserver.Mongo(t), testserver.Name(t)
	r := &resending{t: t, kept: client.Database(name).Collection("resends")}
	stream := &Stream{
		Shared: Shared{State: mongostate.New(client, name), Secrets: redact.New()}, config: config.Config{StreamName: "orders", InstanceID: "me", Partitions: 1},
		log: zerolog.New(&r.said), whole: "orders", tracker: &status.Tracker{},
	}
	r.s = &resends{
		Resends: stream.State.Resends("orders", 1), t: &term{Stream: stream, claimed: &checkpoint.Claimed{Checkpoint: checkpoint.Checkpoint{Term: 7}}},
		seen: &seenResends{over: map[string]bool{}},
	}
	return r
}

func (r *resending) begin(id string) {
	r.t.Helper()
	if _, err := r.s.Begin(r.t.Context(), resend.Record{ID: id, Who: "me", Why: "a test", BeganAt: time.Now(), Total: 9}); err != nil {
		r.t.Fatal(err)
	}
}

// take wants a resend to be taken, or none.
func (r *resending) take(want string) {
	r.t.Helper()
	record, err := r.s.Take(r.t.Context(), 0, 7)
	if record.ID != want || (want == "") != errors.Is(err, resend.ErrNone) || want != "" && err != nil {
		r.t.Fatalf("taken is %q, %v, want %q", record.ID, err, want)
	}
}

func (r *resending) save(id string, read int64, done bool) error {
	r.t.Helper()
	return r.s.Save(r.t.Context(), id, 0, resend.Part{Term: 7, Read: read, Done: done, UpdatedAt: time.Now()})
}

func (r *resending) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *resending) forget() {
	r.t.Helper()
	_, err := r.kept.DeleteMany(r.t.Context(), bson.D{})
	r.must(err)
}

// copied returns a function that puts back what is kept now.
func (r *resending) copied() (putBack func()) {
	r.t.Helper()
	document, err := r.kept.FindOne(r.t.Context(), bson.D{}).Raw()
	r.must(err)
	return func() {
		r.t.Helper()
		r.forget()
		_, err := r.kept.InsertOne(r.t.Context(), document)
		r.must(err)
	}
}

func (r *resending) decide(from, to resend.State) {
	r.t.Helper()
	changed, err := r.s.Decide(r.t.Context(), "r1", []resend.State{from}, to, "me", "a test")
	if err != nil || !changed {
		r.t.Fatalf("not %s: %v", to, err)
	}
}

// ledger has the causes of what is in it.
func (r *resending) ledger() (causes []string) {
	r.t.Helper()
	gaps, err := r.s.t.State.Gaps("orders").Latest(r.t.Context())
	r.must(err)
	for _, gap := range gaps {
		causes = append(causes, gap.Cause)
	}
	return causes
}

// What becomes of the record of a resend that this process has taken, and what the ledger
// has to say of that.
func TestResends_WhatBecomesOfARecordIsInTheLedger(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		happens func(r *resending)
		ledger  []string
	}{
		"it ends, and another one begins": {func(r *resending) {
			r.must(r.save("r1", 5, true))
			r.begin("r2")
			r.take("r2")
			r.must(r.save("r2", 1, false))
			r.take("r2")
		}, nil},
		"it is gone": {func(r *resending) {
			r.forget()
			r.take("")
			r.take("")
		}, []string{"resend lost"}},
		"it is gone, and another one runs": {func(r *resending) {
			r.forget()
			r.begin("r2")
			r.take("r2")
		}, []string{"resend lost"}},
		"it is gone before its progress is saved": {func(r *resending) {
			r.forget()
			if err := r.save("r1", 5, false); !errors.Is(err, resend.ErrSuperseded) {
				r.t.Errorf("saved: %v", err)
			}
		}, []string{"resend lost"}},
		"it is paused, and goes on": {func(r *resending) {
			r.decide(resend.Running, resend.Paused)
			r.take("")
			r.decide(resend.Paused, resend.Running)
			r.take("r1")
		}, nil},
		"it is gone while it is paused": {func(r *resending) {
			r.decide(resend.Running, resend.Paused)
			r.take("")
			r.forget()
			r.take("")
		}, []string{"resend lost"}},
		"it runs again after its end": {func(r *resending) {
			putBack := r.copied()
			r.must(r.save("r1", 0, true))
			r.take("")
			putBack()
			r.take("r1")
			r.take("r1")
		}, []string{"resend returned"}},
		"it runs again after it was cancelled": {func(r *resending) {
			putBack := r.copied()
			r.decide(resend.Running, resend.Cancelled)
			r.take("")
			putBack()
			r.take("r1")
		}, []string{"resend returned"}},
		"it is further back than it was": {func(r *resending) {
			putBack := r.copied()
			r.must(r.save("r1", 5, false))
			putBack()
			r.take("r1")
		}, []string{"resend returned"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := beginResending(t)
			r.begin("r1")
			r.take("r1")
			tt.happens(r)
			if causes := r.ledger(); !slices.Equal(causes, tt.ledger) {
				t.Errorf("the ledger has %q, want %q", causes, tt.ledger)
			}
			if said := r.said.String(); strings.Count(said, `"error"`) != len(tt.ledger) {
				t.Errorf("got %s, want each to be said once", said)
			}
		})
	}
}

func TestResends_WhatCannotBeEnteredIsEnteredLater(t *testing.T) {
	t.Parallel()
	r := beginResending(t)
	r.begin("r1")
	r.take("r1")
	r.forget()
	gone, err := mongo.Connect(options.Client().ApplyURI("mongodb://127.0.0.1:1"))
	r.must(err)
	r.must(gone.Disconnect(t.Context()))
	state := r.s.t.State
	r.s.t.State = mongostate.New(gone, "state")
	if _, err := r.s.Take(t.Context(), 0, 7); err == nil || errors.Is(err, resend.ErrNone) {
		t.Errorf("got %v while the ledger cannot be written, want that it failed", err)
	}
	r.s.t.State = state
	r.take("")
	if causes := r.ledger(); !slices.Equal(causes, []string{"resend lost"}) {
		t.Errorf("the ledger has %q, want the loss", causes)
	}
}
