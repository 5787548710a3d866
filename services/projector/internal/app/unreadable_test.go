package app_test

import (
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/sandboxtest"
)

// later returns an event's message as publishers of a later contract send it.
func later(t *testing.T, e contract.Event) contract.Message {
	t.Helper()
	m, err := contract.Encode(e, contract.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m.Properties["cloudEvents_contractversion"] = "2"
	return m
}

// Publishers that are deployed before the projectors send what these cannot read
// yet. Nothing is dead-lettered or applied out of order, and all of it is applied
// once the projector can read it.
func TestUnreadable_PublishersDeployedFirstLoseNothing(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	// Commands read what a majority has: so must be what is written for them here.
	db := client.Database(database, options.Database().SetWriteConcern(writeconcern.Majority()))
	p := start(t, configured(t, "unreadable", database), parse(t))
	onTopic(t, "unreadable", database, counting)
	for _, aggregate := range []string{"a", "b"} {
		send(t, "unreadable", happened(aggregate, 1, 1)...)
		sandboxtest.Send(t, servers, "unreadable", later(t, event(aggregate, 2, "Happened", `{}`)))
		send(t, "unreadable", happened(aggregate, 3, 3)...)
		sandboxtest.Send(t, servers, "unreadable", later(t, event(aggregate, 4, "Happened", `{}`)))
	}
	send(t, "unreadable", happened("c", 1, 4)...)
	until(t, "all are settled", func() bool { return p.Status().Completed+p.Status().DeadLettered == 12 })
	if s := p.Status(); s.DeadLettered != 0 || s.Parked != 6 {
		t.Errorf("got %d dead-lettered and %d parked, want none and 6", s.DeadLettered, s.Parked)
	}
	documents := sandboxtest.Documents(t, db, "orders")
	if a, c := seen(documents["a"]), seen(documents["c"]); !slices.Equal(a, []int64{1}) || !slices.Equal(c, []int64{1, 2, 3, 4}) {
		t.Errorf("seen: got %v and %v, want 1 of the halted aggregate and all of the other", a, c)
	}
	lines, err := runCommand(t, "parked", "redrive", "--all")
	if err == nil || len(lines) != 2 || lines[0]["failed_event_id"] != "a-2" || lines[0]["lifted"] != false {
		t.Errorf("redrive before the upgrade: got %v and %v, want it to stop at the message", lines, err)
	}

	// The upgraded projector reads version 2. This one does not, so what is parked
	// says version 1 from here on.
	if _, err := db.Collection("parked_messages").UpdateMany(t.Context(), bson.D{},
		bson.D{{Key: "$set", Value: bson.D{{Key: "message.properties.cloudEvents_contractversion", Value: "1"}}}}); err != nil {
		t.Fatal(err)
	}
	if lines, err := runCommand(t, "parked", "redrive", "--all"); err != nil || len(lines) != 2 || lines[0]["applied"] != 3.0 || lines[0]["lifted"] != true {
		t.Errorf("redrive after the upgrade: got %v and %v, want three applied and the halt lifted", lines, err)
	}
	documents = sandboxtest.Documents(t, db, "orders")
	for _, aggregate := range []string{"a", "b", "c"} {
		if got := seen(documents[aggregate]); !slices.Equal(got, []int64{1, 2, 3, 4}) {
			t.Errorf("%s: seen %v, want 1 to 4 in order", aggregate, got)
		}
	}
}

// Data of a schema that a later release brings is none of an event's own: its
// aggregate waits for the release, and nothing is stored of it meanwhile.
func TestUnreadable_AnUnknownDataSchemaHaltsItsAggregate(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	p := start(t, configured(t, "schemas", database), parse(t))
	onTopic(t, "schemas", database, counting)
	unknown := event("a", 2, "Happened", `{"n":2}`)
	unknown.DataSchema = "urn:changerelay:document-change:2"
	send(t, "schemas", event("a", 1, "Happened", `{"n":1}`), unknown, event("a", 3, "Happened", `{"n":3}`))
	until(t, "what cannot be read is parked", func() bool { return p.Status().Parked == 2 })
	if got := seen(sandboxtest.Documents(t, db, "orders")["a"]); !slices.Equal(got, []int64{1}) {
		t.Errorf("seen: got %v, want 1 alone", got)
	}
	// The upgraded projector knows the schema; here the message is made one that
	// this one knows.
	if _, err := db.Collection("parked_messages").UpdateMany(t.Context(), bson.D{},
		bson.D{{Key: "$unset", Value: bson.D{{Key: "message.properties.cloudEvents_dataschema", Value: ""}}}}); err != nil {
		t.Fatal(err)
	}
	if lines, err := runCommand(t, "parked", "redrive", "a"); err != nil || len(lines) != 1 || lines[0]["applied"] != 2.0 || lines[0]["lifted"] != true {
		t.Errorf("redrive after the upgrade: got %v and %v, want two applied and the halt lifted", lines, err)
	}
}

// A message whose sequence is not its version's stands before what may follow
// it: a redrive meets it first, whatever the sequence says.
func TestUnreadable_ASequenceAgainstTheVersionIsNotAppliedOver(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	p := start(t, configured(t, "contradictory", database), parse(t))
	onTopic(t, "contradictory", database, counting)
	m, err := contract.Encode(event("a", 2, "Happened", `{}`), contract.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m.Properties["cloudEvents_sequence"] = string(event("a", 9, "Happened", `{}`).Sequence)
	send(t, "contradictory", event("a", 1, "Happened", `{}`))
	sandboxtest.Send(t, servers, "contradictory", m)
	send(t, "contradictory", event("a", 3, "Happened", `{}`), event("a", 4, "Happened", `{}`))
	until(t, "the contradiction and what follows are parked", func() bool { return p.Status().Parked == 3 })
	if lines, err := runCommand(t, "parked", "redrive", "a"); err == nil || len(lines) != 1 || lines[0]["failed_event_id"] != "a-2" || lines[0]["applied"] != 0.0 {
		t.Errorf("redrive: got %v and %v, want it to stop before anything is applied", lines, err)
	}
	if got := seen(sandboxtest.Documents(t, db, "orders")["a"]); !slices.Equal(got, []int64{1}) {
		t.Errorf("seen: got %v, want 1 alone", got)
	}
}
