package app_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/projector/internal/app"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
)

const versioned = `projections:
  - name: orders
    version: 1
    collection: orders
    on: {Happened: {inc: {events: 1}}, Closed: {set: {closed: true}}}
  - name: totals
    version: 1
    collection: totals
    key: '"all"'
    on: {Happened: {inc: {events: 1}}}
`

// versions are two versions of two projections, each with its own environment.
type versions struct {
	client   *mongo.Client
	database string
	old, new *readmodel.Store
	use      func(number int) // makes that version's environment the commands' own
}

func newVersions(t *testing.T) *versions {
	t.Helper()
	client, database := servers.Mongo(t, nil)
	t.Setenv("READMODEL_MONGODB_URI", servers.MongoURI)
	t.Setenv("READMODEL_DATABASE", database)
	t.Setenv("SERVICEBUS_CONNECTION_STRING", servers.ServiceBus)
	t.Setenv("SERVICEBUS_TOPIC", "unused")
	t.Setenv("SERVICEBUS_SUBSCRIPTION", "unused")
	files := []string{1: file(t, "v1.yaml", versioned), 2: file(t, "v2.yaml", strings.ReplaceAll(versioned, "version: 1", "version: 2"))}
	groups := []string{1: "", 2: "second"}
	return &versions{
		client: client, database: database,
		old: readmodel.New(client, readmodel.Config{Database: database}),
		new: readmodel.New(client, readmodel.Config{Database: database, Group: "second"}),
		use: func(number int) {
			t.Setenv("PROJECTIONS", files[number])
			t.Setenv("READMODEL_GROUP", groups[number])
		},
	}
}

// applied applies an event to a version of both projections.
func applied(t *testing.T, store *readmodel.Store, version int, aggregate string, n int64, eventType string) {
	t.Helper()
	event := readmodeltest.Event(aggregate, n)
	event.Type = eventType
	of := func(name string) string { return fmt.Sprintf("%s_v%d", name, version) }
	update := bson.D{{Key: "$inc", Value: bson.D{{Key: "events", Value: 1}}}}
	writes := []projection.Write{{Projection: of("orders"), Collection: of("orders"), ID: aggregate, Event: event, Update: update}}
	if eventType == "Happened" {
		writes = append(writes, projection.Write{Projection: of("totals"), Collection: of("totals"), ID: "all", Keyed: true, Event: event, Update: update})
	}
	if _, err := store.Write(t.Context(), writes); err != nil {
		t.Fatal(err)
	}
}

// refusedFor runs a switch that is to be refused, and checks the reason.
func refusedFor(t *testing.T, name, reason string) {
	t.Helper()
	lines, err := command(t, "switch", name, "--to", "2", "--wait", "1ms")
	if err == nil || len(lines) != 1 || lines[0]["switched"] != false || !strings.Contains(fmt.Sprint(lines[0]["refused"]), reason) {
		t.Errorf("switch of %s: got %v and %v, want it refused: %s", name, lines, err, reason)
	}
}

func switchTo(t *testing.T, name, number string, more ...string) {
	t.Helper()
	lines, err := command(t, append([]string{"switch", name, "--to", number}, more...)...)
	if err != nil || len(lines) != 1 || lines[0]["switched"] != true {
		t.Errorf("switch of %s to %s: got %v and %v, want it done", name, number, lines, err)
	}
}

func TestAVersionIsSwitchedToOnceItHasCaughtUp(t *testing.T) {
	v := newVersions(t)
	live := func(when, want string) {
		t.Helper()
		lines, err := command(t, "versions")
		var got []string
		for _, l := range lines {
			if l["live"] == true {
				got = append(got, fmt.Sprint(l["collection"]))
			}
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("live %s: got %v and %v, want %s", when, got, err, want)
		}
	}
	for number := range 2 {
		v.use(number + 1)
		if _, err := command(t, "setup"); err != nil {
			t.Fatal(err)
		}
	}
	for _, aggregate := range []string{"a", "b"} {
		applied(t, v.old, 1, aggregate, 1, "Happened")
		applied(t, v.old, 1, aggregate, 2, "Happened")
	}
	applied(t, v.new, 2, "a", 1, "Happened")
	applied(t, v.new, 2, "a", 2, "Happened")
	live("at first", "orders_v1 totals_v1")
	refusedFor(t, "orders", "what version 1 had of 1 aggregates")
	refusedFor(t, "totals", "what version 1 had of 1 aggregates")
	applied(t, v.new, 2, "b", 1, "Happened")
	refusedFor(t, "orders", "what version 1 had of 1 aggregates")
	refusedFor(t, "totals", "what version 1 had of 1 aggregates")
	applied(t, v.new, 2, "b", 2, "Happened")
	if err := v.old.Halt(t.Context(), delivery.Halt{Event: *readmodeltest.Event("c", 1)}); err != nil {
		t.Fatal(err)
	}
	switchTo(t, "orders", "2")
	switchTo(t, "totals", "2")
	live("afterwards", "orders_v2 totals_v2")
	switchTo(t, "orders", "2")

	if err := v.new.Halt(t.Context(), delivery.Halt{Event: *readmodeltest.Event("c", 1)}); err != nil {
		t.Fatal(err)
	}
	refusedFor(t, "orders", "1 aggregates are halted")
	v.use(1)
	applied(t, v.new, 2, "a", 3, "Happened")
	if _, err := command(t, "switch", "totals", "--to", "1", "--wait", "1ms"); err == nil {
		t.Error("switch back to a version that is behind: got no error")
	}
	switchTo(t, "totals", "1", "--wait", "1ms", "--force")
	live("forced back", "orders_v2 totals_v1")
}

// A version that follows fewer types has nothing to reach where the last event
// of the live one is of another.
func TestAVersionNeedNotReachWhatItDoesNotFollow(t *testing.T) {
	v := newVersions(t)
	fewer := strings.ReplaceAll(strings.ReplaceAll(versioned, "version: 1", "version: 2"), ", Closed: {set: {closed: true}}", "")
	v.use(1)
	if _, err := command(t, "setup"); err != nil {
		t.Fatal(err)
	}
	v.use(2)
	t.Setenv("PROJECTIONS", file(t, "fewer.yaml", fewer))
	applied(t, v.old, 1, "a", 1, "Happened")
	applied(t, v.old, 1, "a", 2, "Closed")
	applied(t, v.new, 2, "a", 1, "Happened")
	switchTo(t, "orders", "2", "--wait", "1ms")
}

func TestWrongSwitchesSayWhatToDo(t *testing.T) {
	v := newVersions(t)
	v.use(2)
	if _, err := command(t, "switch", "orders", "--to", "1"); err == nil || !strings.Contains(err.Error(), "declares version 2") {
		t.Errorf("another version than the declared one: got %v", err)
	}
	if _, err := command(t, "switch", "nobody", "--to", "1"); err == nil || !strings.Contains(err.Error(), `no version of projection "nobody"`) {
		t.Errorf("an unknown projection: got %v", err)
	}
	for _, args := range [][]string{{"switch"}, {"switch", "orders"}, {"switch", "orders", "--to", "x"}, {"switch", "orders", "--to", "2", "more"}, {"versions", "more"}} {
		if _, err := command(t, args...); !errors.Is(err, app.ErrUsage) {
			t.Errorf("%v: got %v, want wrong usage", args, err)
		}
	}
	write := projection.Write{Projection: "orders", Collection: "orders", ID: "a", Event: readmodeltest.Event("a", 1), Delete: true}
	if _, err := v.old.Write(t.Context(), []projection.Write{write}); err != nil {
		t.Fatal(err)
	}
	if _, err := command(t, "switch", "orders", "--to", "2"); err == nil || !strings.Contains(err.Error(), `rename it to "orders_v1"`) {
		t.Errorf("a collection in the place of the view: got %v", err)
	}
}

// The steps are those of docs/projections.md.
func TestACollectionBecomesVersionOneAndCountsNothingTwice(t *testing.T) {
	v := newVersions(t)
	client, database := v.client, v.client.Database(v.database)
	count := bson.D{{Key: "$inc", Value: bson.D{{Key: "events", Value: 1}}}}
	write := func(own, keyed string) {
		t.Helper()
		event := readmodeltest.Event("a", 1)
		_, err := v.old.Write(t.Context(), []projection.Write{
			{Projection: own, Collection: own, ID: "a", Event: event, Update: count},
			{Projection: keyed, Collection: keyed, ID: "all", Keyed: true, Event: event, Update: count},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	write("orders", "totals")

	for _, name := range []string{"orders", "totals"} {
		rename := bson.D{{Key: "renameCollection", Value: v.database + "." + name}, {Key: "to", Value: v.database + "." + name + "_v1"}}
		if err := client.Database("admin").RunCommand(t.Context(), rename).Err(); err != nil {
			t.Fatal(err)
		}
	}
	positions := database.Collection(projection.Positions)
	if _, err := positions.Aggregate(t.Context(), bson.A{
		bson.D{{Key: "$match", Value: bson.D{{Key: "_id.projection", Value: "totals"}}}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "_id.projection", Value: "totals_v1"}}}},
		bson.D{{Key: "$merge", Value: bson.D{{Key: "into", Value: projection.Positions}}}},
	}); err != nil {
		t.Fatal(err)
	}
	v.use(1)
	if _, err := command(t, "setup"); err != nil {
		t.Fatal(err)
	}
	write("orders_v1", "totals_v1")
	for name, id := range map[string]string{"orders": "a", "totals": "all"} {
		var read struct{ Events int }
		if err := database.Collection(name).FindOne(t.Context(), bson.D{{Key: "_id", Value: id}}).Decode(&read); err != nil || read.Events != 1 {
			t.Errorf("%s through the view: got %+v and %v, want the one event counted once", name, read, err)
		}
	}
}

func TestVersionsAreSwitchedWithTheDocumentedRole(t *testing.T) {
	servers, as := guarded(t, "switching")
	environ(t, servers, "switching", as("deployer", "deploysecret"), "shop_read")
	t.Setenv("PROJECTIONS", file(t, "v1.yaml", versioned))
	if _, err := command(t, "setup"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("READMODEL_MONGODB_URI", as("operator", "switchsecret"))
	if lines, err := command(t, "versions"); err != nil || len(lines) != 2 {
		t.Errorf("versions: got %v and %v, want one of each projection", lines, err)
	}
	switchTo(t, "orders", "1")
	t.Setenv("READMODEL_MONGODB_URI", as("projector", "runsecret"))
	if _, err := command(t, "switch", "orders", "--to", "1"); err == nil {
		t.Error("a switch in the role of the projector: got no error")
	}
}
