package witness

import (
	"context"
	"fmt"
	"maps"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/expect"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/orders"
)

// skipped is an event that a projection goes on without.
type skipped struct {
	aggregate string
	version   int64
	message   expect.Print // that its record must keep
}

// keptMessage is a message as the projectors keep it.
type keptMessage struct {
	ID              string         `bson:"id"`
	SessionID       string         `bson:"sessionId"`
	PartitionKey    string         `bson:"partitionKey"`
	Subject         string         `bson:"subject"`
	ContentType     string         `bson:"contentType"`
	ContentEncoding string         `bson:"contentEncoding"`
	Properties      map[string]any `bson:"properties"`
	Body            []byte         `bson:"body"`
}

// unlike are the parts in which a kept message is not the one that is owed; all where none
// is kept.
func (m *keptMessage) unlike(owed expect.Print) []expect.Part {
	if m == nil {
		m = &keptMessage{}
	}
	received := &azservicebus.ReceivedMessage{
		MessageID: m.ID, SessionID: &m.SessionID, PartitionKey: &m.PartitionKey, Subject: &m.Subject, ContentType: &m.ContentType,
		ApplicationProperties: m.Properties, Body: m.Body,
	}
	if m.ContentEncoding != "" {
		received.RawAMQPMessage = &azservicebus.AMQPAnnotatedMessage{Properties: &azservicebus.AMQPAnnotatedMessageProperties{ContentEncoding: &m.ContentEncoding}}
	}
	seen := expect.Seen(received)
	return seen.Print().Differences(owed)
}

// unaddable says of an event that its price is no number, which orders.yaml adds up.
func unaddable(e orders.Event) bool {
	data, _ := e.Data.(map[string]any)
	_, is := data["price"].(string)
	return is
}

// unlikeSkipped finds events that the projection should have gone on without, and of which
// there is no record, and records of others: each has one, with its whole message.
func (w *Witness) unlikeSkipped(ctx context.Context) (found validate.Findings, err error) {
	var all []struct {
		Key struct {
			Aggregate  string `bson:"aggregateId"`
			Event      string `bson:"eventId"`
			Projection string `bson:"projection"`
		} `bson:"_id"`
		Version int64        `bson:"aggregateVersion"`
		Action  string       `bson:"action"`
		Message *keptMessage `bson:"message"`
	}
	cursor, err := w.ReadModel().Collection(skippedEvents).Find(ctx, lacked)
	if err == nil {
		err = cursor.All(ctx, &all)
	}
	if err != nil {
		return found, fmt.Errorf("read the records of skipped events: %w", err)
	}
	missing := maps.Clone(w.skipped)
	for _, r := range all {
		want, known := missing[r.Key.Event]
		got := skipped{aggregate: r.Key.Aggregate, version: r.Version, message: want.message}
		if !known || want != got || r.Key.Projection != w.projection.Collection || r.Action != w.projection.OnError {
			found.Add("%s of %s, version %d: recorded as %s for %s", r.Key.Event, r.Key.Aggregate, r.Version, r.Action, r.Key.Projection)
		} else if unlike := r.Message.unlike(want.message); len(unlike) > 0 {
			found.Add("%s of %s, version %d: recorded with another %v", r.Key.Event, r.Key.Aggregate, r.Version, unlike)
		}
		delete(missing, r.Key.Event)
	}
	for id, of := range missing {
		found.Add("%s of %s, version %d, has no record", id, of.aggregate, of.version)
	}
	return found, nil
}

// lacked are the records of events that documents lack still.
var lacked = bson.D{{Key: "endedAt", Value: nil}}

// notApplied is why a projection's policy dead-letters a message.
const notApplied = "NotApplied"
