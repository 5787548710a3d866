package app_test

import (
	"context"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/testserver"
)

// transaction writes events in one transaction, and returns their positions.
func (s *source) transaction(t *testing.T, count int) []contract.Position {
	t.Helper()
	stream, err := s.Watch(t.Context(), mongo.Pipeline{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close(context.WithoutCancel(t.Context())) }()
	session, err := s.Database().Client().StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.EndSession(context.WithoutCancel(t.Context()))
	_, err = session.WithTransaction(t.Context(), func(ctx context.Context) (any, error) {
		for n := range count {
			event := bson.D{{Key: "aggregateId", Value: "together"}, {Key: "type", Value: "OrderPlaced"}, {Key: "version", Value: n + 1}}
			if _, err := s.InsertOne(ctx, event); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var positions []contract.Position
	for range count {
		if !stream.Next(t.Context()) {
			t.Fatal(stream.Err())
		}
		positions = append(positions, changestream.PositionOf(stream.ResumeToken()))
	}
	return positions
}

// TestCheckpoint_SetInsideATransactionIsInTheLedger moves a checkpoint between
// changes that all have one time.
func TestCheckpoint_SetInsideATransactionIsInTheLedger(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	published(t, servers, source, 5)
	positions := source.transaction(t, 6)
	set := func(to contract.Position) int64 {
		if _, err := say[command.MoveView](t, configured(servers), "checkpoint", "set", "--why", "test", string(to)); err != nil {
			t.Fatal(err)
		}
		entries, err := state(t, servers, "stream_gaps").CountDocuments(t.Context(), bson.D{{Key: "decision", Value: "set"}})
		if err != nil {
			t.Fatal(err)
		}
		return entries
	}
	set(positions[0])
	if got := set(positions[4]); got != 2 {
		t.Errorf("%d entries after four changes are passed over, want one more", got)
	}
	entry, err := state(t, servers, "stream_gaps").FindOne(t.Context(), bson.D{{Key: "from", Value: string(positions[0])}}).Raw()
	if err != nil || !strings.Contains(entry.Lookup("error").StringValue(), string(positions[4])) {
		t.Errorf("the ledger says %s, %v, want from where to where", entry, err)
	}
	if got := set(positions[2]); got != 2 {
		t.Errorf("%d entries after a move back, want none more", got)
	}
	again := run(t, configured(servers))
	again.await(t, "the rest of the transaction to be sent", sent(3))
}
