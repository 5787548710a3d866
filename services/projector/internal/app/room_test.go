package app_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	mongoevent "go.mongodb.org/mongo-driver/v2/event"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/session"
)

// largestReply follows the largest answer to a find of parked messages.
type largestReply struct{ bytes atomic.Int64 }

func (l *largestReply) monitor() *mongoevent.CommandMonitor {
	return &mongoevent.CommandMonitor{Succeeded: func(_ context.Context, e *mongoevent.CommandSucceededEvent) {
		if namespace, _ := e.Reply.Lookup("cursor", "ns").StringValueOK(); strings.HasSuffix(namespace, ".parked_messages") {
			l.bytes.Store(max(l.bytes.Load(), int64(len(e.Reply))))
		}
	}}
}

// However many aggregates are redriven, and whatever their messages weigh, no more
// bytes of them are in memory than there is room for, and no page is more than its part.
func TestRedrive_ReadsNoMoreBytesThanItHasRoomFor(t *testing.T) {
	const kib, all = 1 << 10, 1 << 20
	var reply largestReply
	client, database := servers.Mongo(t, reply.monitor())
	projections := parse(t)
	store := readmodel.New(client, readmodel.Config{Database: database, Marked: projections.OwnDocuments(), Projections: projections.Parts(), ParkedBytes: all})
	var aggregates []string
	for a := range 16 {
		aggregate := fmt.Sprintf("a%02d", a)
		aggregates = append(aggregates, aggregate)
		first := event(aggregate, 1, "Happened", `{}`)
		if _, err := store.Parking.Halt(t.Context(), delivery.Halt{Event: first, Reason: "because"}); err != nil {
			t.Fatal(err)
		}
		for n := range int64(8) {
			e := event(aggregate, n+1, "Happened", fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", []int{1, 200 * kib, 60 * kib, 10}[n%4])))
			m := uncompressed(t, e)
			e.Data = nil
			if err := store.Parking.Park(t.Context(), []delivery.Parked{{Message: session.Message{Message: m}, Event: e, Reason: "because"}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	// One that an older release has parked says nothing of its weight.
	if _, err := client.Database(database).Collection(projection.ParkedMessages).UpdateMany(t.Context(),
		bson.D{{Key: "message.sessionId", Value: "a03"}}, bson.D{{Key: "$unset", Value: bson.D{{Key: "weight", Value: ""}}}}); err != nil {
		t.Fatal(err)
	}
	err := delivery.RedriveAll(t.Context(), projections, store.Writes, store.Parked, delivery.Gaps{}, aggregates, func(done delivery.Redriven) error {
		if !done.Lifted || done.Applied != 8 {
			t.Errorf("got %+v, want all eight applied", done)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	now, most := store.Parked.ParkedBytes()
	if now != 0 || most > all || most < all/4 {
		t.Errorf("got %d bytes at the end and %d at most, want none, and up to %d and not far from it", now, most, all)
	}
	if got := reply.bytes.Load(); got > all/4+16*kib {
		t.Errorf("a page was of %d bytes, want no more than a quarter of %d", got, all)
	}
	documents := sandboxtest.Documents(t, client.Database(database), "orders")
	for _, aggregate := range aggregates {
		if got := seen(documents[aggregate]); !slices.Equal(got, []int64{1, 2, 3, 4, 5, 6, 7, 8}) {
			t.Errorf("aggregate %s: seen %v, want all in order", aggregate, got)
		}
	}
}

// A message that weighs more than there is room for is redriven all the same.
func TestRedrive_AMessageBeyondTheRoomIsReadAlone(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	projections := parse(t)
	store := readmodel.New(client, readmodel.Config{Database: database, Marked: projections.OwnDocuments(), Projections: projections.Parts(), ParkedBytes: 10})
	if _, err := store.Parking.Halt(t.Context(), delivery.Halt{Event: event("a", 1, "Happened", `{}`), Reason: "because"}); err != nil {
		t.Fatal(err)
	}
	for n := range int64(3) {
		e := event("a", n+1, "Happened", `{}`)
		m := uncompressed(t, e)
		if err := store.Parking.Park(t.Context(), []delivery.Parked{{Message: session.Message{Message: m}, Event: e, Reason: "because"}}); err != nil {
			t.Fatal(err)
		}
	}
	done, err := delivery.Redrive(t.Context(), projections, store.Writes, store.Parked, delivery.Gaps{}, "a")
	if err != nil || !done.Lifted || done.Applied != 3 {
		t.Errorf("got %+v and %v, want all three applied", done, err)
	}
}
