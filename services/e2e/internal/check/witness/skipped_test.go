package witness

import (
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/source"
)

// skips has the witness expect that events of an aggregate are skipped.
func (s *stage) skips(t *testing.T, events int64) {
	t.Helper()
	s.projection.Collection, s.projection.OnError = "orders", "skip"
	r := newRecord(s.projection)
	for v := int64(1); v <= events; v++ {
		e := event("a", v)
		document, err := bson.Marshal(bson.D{
			{Key: "_id", Value: e.ID()},
			{Key: "aggregateId", Value: "a"},
			{Key: "version", Value: v},
			{Key: "type", Value: e.Type},
			{Key: "time", Value: e.Time},
			{Key: "data", Value: e.Data},
		})
		if err != nil {
			t.Fatal(err)
		}
		e.Data = map[string]any{"price": "dear"}
		if err := r.add(s.names, source.Stored{Event: e, Document: document}); err != nil {
			t.Fatal(err)
		}
	}
	s.skipped = r.skipped
}

// kept is an event's message as projectors keep it.
func (s *stage) kept(t *testing.T, version int64) bson.D {
	t.Helper()
	m := s.encoded(t, "a", version, 1)
	return bson.D{
		{Key: "id", Value: m.ID},
		{Key: "sessionId", Value: m.SessionID},
		{Key: "partitionKey", Value: m.PartitionKey},
		{Key: "subject", Value: m.Subject},
		{Key: "contentType", Value: m.ContentType},
		{Key: "contentEncoding", Value: ""},
		{Key: "properties", Value: m.Properties},
		{Key: "body", Value: m.Body},
	}
}

// recorded is the record of a skipped event, with a message.
func recorded(event, projection, action string, version int64, message any) bson.D {
	return bson.D{
		{Key: "_id", Value: bson.D{{Key: "aggregateId", Value: "a"}, {Key: "eventId", Value: event}, {Key: "projection", Value: projection}}},
		{Key: "aggregateVersion", Value: version},
		{Key: "action", Value: action},
		{Key: "message", Value: message},
	}
}

// Where a projection goes on without what it cannot apply, each such event has a record, and
// nothing else has one.
func TestAtRest_TellsSkippedEventsThatAreExpectedFromOthers(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.skips(t, 3)
	id := func(version int64) string { return s.messageID(t, "a", version) }
	insert(t, s.ReadModel().Collection(skippedEvents),
		recorded(id(1), "orders", "skip", 1, s.kept(t, 1)), recorded(id(2), "orders", "deadletter", 2, s.kept(t, 2)),
		recorded("b1", "orders", "skip", 1, s.kept(t, 1)), recorded(id(1), "shadow", "skip", 1, s.kept(t, 1)))
	found, err := s.setAside(t.Context(), skippedEvents, lacked)
	want := []string{
		id(2) + " of a, version 2: recorded as deadletter for orders", "b1 of a, version 1: recorded as skip for orders",
		id(1) + " of a, version 1: recorded as skip for shadow", id(3) + " of a, version 3, has no record",
	}
	if err != nil || !slices.Equal(found.Samples, want) {
		t.Errorf("got %q, %v, want %q", found.Samples, err, want)
	}
}

// A record has its whole message: without it the event cannot be applied after all.
func TestAtRest_FindsRecordsOfSkippedEventsWithoutTheirMessage(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.skips(t, 6)
	altered, unread := s.kept(t, 4), s.kept(t, 5)
	altered[7].Value = []byte(`{"n":{"$numberLong":"5"}}`)
	unread[5].Value = "gzip"
	messages := []any{s.kept(t, 1), nil, bson.D{}, altered, unread, s.kept(t, 1)}
	for i, message := range messages {
		version := int64(i + 1)
		insert(t, s.ReadModel().Collection(skippedEvents), recorded(s.messageID(t, "a", version), "orders", "skip", version, message))
	}
	found, err := s.setAside(t.Context(), skippedEvents, lacked)
	if err != nil || found.Count != 5 {
		t.Fatalf("got %d %q, %v, want all but the first", found.Count, found.Samples, err)
	}
	for i, part := range []string{"message id", "message id", "[data]", "[data]", "message id"} {
		if !strings.Contains(found.Samples[i], part) {
			t.Errorf("got %q, want that it names %s", found.Samples[i], part)
		}
	}
}

// What a policy dead-letters has to be there; whatever else is dead-lettered counts.
func TestAtRest_TellsDeadLettersThatAreExpectedFromOthers(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.projection.OnError = "deadletter"
	s.skipped = map[string]skipped{"a1": {aggregate: "a", version: 1}}
	dead, err := s.deadLettered(t.Context())
	if err != nil || dead.Count != 1 || dead.Samples[0] != "message a1 of a, version 1, is not among them" {
		t.Errorf("got %d %q, %v, want the one that is missing", dead.Count, dead.Samples, err)
	}
	left, found := map[string]skipped{"a1": {}, "a2": {}, "a3": {}}, validate.Findings{}
	other := "MaxDeliveryCountExceeded"
	s.judgeDead([]*azservicebus.ReceivedMessage{{MessageID: "a1", DeadLetterReason: new(notApplied)}, {MessageID: "a2", DeadLetterReason: &other}, {MessageID: "b1", DeadLetterReason: new(notApplied)}}, left, &found)
	want := []string{"message a2: MaxDeliveryCountExceeded", "message b1: NotApplied"}
	if _, due := left["a1"]; due || len(left) != 2 || !slices.Equal(found.Samples, want) {
		t.Errorf("got %q, with %v left, want %q, with two", found.Samples, left, want)
	}
}
