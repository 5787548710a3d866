package app_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/cli"
	"changerelay/services/projector/internal/config"
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
	config   config.Config // of a projector of version 2
	files    []string      // of projections, by version
	topics   []string      // by version: what feeds one group feeds no other
	old, new *readmodel.Store
	use      func(number int)              // makes that version's environment the commands' own
	as       func(number int, path string) // does so with other projections
}

func newVersions(t *testing.T) *versions {
	t.Helper()
	client, database := servers.Mongo(t, nil)
	cfg := configured(t, "versions", database)
	cfg.Group = "second"
	t.Setenv("READMODEL_MONGODB_URI", servers.MongoURI)
	t.Setenv("READMODEL_DATABASE", database)
	t.Setenv("SERVICEBUS_CONNECTION_STRING", servers.ServiceBus)
	t.Setenv("SERVICEBUS_SUBSCRIPTION", "projector")
	files := []string{1: file(t, "v1.yaml", versioned), 2: file(t, "v2.yaml", strings.ReplaceAll(versioned, "version: 1", "version: 2"))}
	groups, topics := []string{1: "", 2: "second"}, []string{1: "versions-live", 2: "versions"}
	as := func(number int, path string) {
		t.Setenv("SERVICEBUS_TOPIC", topics[number])
		t.Setenv("PROJECTIONS", path)
		t.Setenv("READMODEL_GROUP", groups[number])
		deployed(t, client, readmodel.Config{Database: database, Group: groups[number], Feed: readmodel.Feed{Topic: os.Getenv("SERVICEBUS_TOPIC"), Subscription: os.Getenv("SERVICEBUS_SUBSCRIPTION")}}, path)
	}
	return &versions{
		client: client, database: database,
		old:    readmodel.New(client, readmodel.Config{Database: database}),
		new:    readmodel.New(client, readmodel.Config{Database: database, Group: "second"}),
		config: cfg, files: files, topics: topics,
		as:  as,
		use: func(number int) { as(number, files[number]) },
	}
}

// deployed notes a deployment as its projectors do when they start, moved to where
// it is where it was elsewhere.
func deployed(t *testing.T, client *mongo.Client, cfg readmodel.Config, path string) {
	t.Helper()
	projections, err := projection.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Projections = projections.Parts()
	store, collections := readmodel.New(client, cfg), projections.Collections()
	plan, err := store.PlanMove(t.Context(), collections)
	if err == nil {
		err = store.Move(t.Context(), plan, "a test")
	}
	if err == nil {
		err = store.Claim(t.Context(), collections, "a test")
	}
	if err == nil {
		err = store.Deploy(t.Context(), "a test")
	}
	if err != nil {
		t.Fatal(err)
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
	if _, err := store.Writes.Write(t.Context(), writes); err != nil {
		t.Fatal(err)
	}
}

// refusedFor runs a switch that is to be refused, and checks the reason.
func refusedFor(t *testing.T, name, reason string) {
	t.Helper()
	lines, err := runCommand(t, "switch", name, "--to", "2", "--wait", "1ms")
	if err == nil || len(lines) != 1 || lines[0]["switched"] != false || !strings.Contains(fmt.Sprint(lines[0]["refused"]), reason) {
		t.Errorf("switch of %s: got %v and %v, want it refused: %s", name, lines, err, reason)
	}
}

func switchTo(t *testing.T, name, number string, more ...string) {
	t.Helper()
	lines, err := runCommand(t, append([]string{"switch", name, "--to", number}, more...)...)
	if err != nil || len(lines) != 1 || lines[0]["switched"] != true {
		t.Errorf("switch of %s to %s: got %v and %v, want it done", name, number, lines, err)
	}
}

func TestVersions_AVersionIsSwitchedToOnceItHasCaughtUp(t *testing.T) {
	v := newVersions(t)
	live := func(when, want string) {
		t.Helper()
		lines, err := runCommand(t, "versions")
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
		if _, err := runCommand(t, "setup"); err != nil {
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
	if _, err := v.old.Parking.Halt(t.Context(), delivery.Halt{Event: *readmodeltest.Event("c", 1)}); err != nil {
		t.Fatal(err)
	}
	switchTo(t, "orders", "2")
	switchTo(t, "totals", "2")
	live("afterwards", "orders_v2 totals_v2")
	switchTo(t, "orders", "2")

	if _, err := v.new.Parking.Halt(t.Context(), delivery.Halt{Event: *readmodeltest.Event("c", 1)}); err != nil {
		t.Fatal(err)
	}
	refusedFor(t, "orders", "1 aggregates are halted")
	v.use(1)
	applied(t, v.new, 2, "a", 3, "Happened")
	if _, err := runCommand(t, "switch", "totals", "--to", "1", "--wait", "1ms"); err == nil {
		t.Error("switch back to a version that is behind: got no error")
	}
	switchTo(t, "totals", "1", "--wait", "1ms", "--force")
	live("forced back", "orders_v2 totals_v1")
}

// dealt has a version's own projections decide about an event, and stores that.
func dealt(t *testing.T, store *readmodel.Store, path, aggregate string, n int64, eventType string) {
	t.Helper()
	event := readmodeltest.Event(aggregate, n)
	event.Type = eventType
	writes, err := load(t, path).Decide(&projection.Change{Event: *event})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Writes.Write(t.Context(), writes); err != nil {
		t.Fatal(err)
	}
}

// A version is complete when it has dealt with each aggregate's last event, also
// where that is of a type that it does not follow; an empty one never is.
func TestSwitch_TakesAVersionThatHasDealtWithEveryEvent(t *testing.T) {
	v := newVersions(t)
	live := file(t, "live.yaml", versioned)
	fewer := file(t, "fewer.yaml", strings.ReplaceAll(strings.ReplaceAll(versioned, "version: 1", "version: 2"), ", Closed: {set: {closed: true}}", ""))
	v.use(1)
	if _, err := runCommand(t, "setup"); err != nil {
		t.Fatal(err)
	}
	v.as(2, fewer)
	for range 2 {
		dealt(t, v.old, live, "a", 1, "Happened")
		dealt(t, v.old, live, "a", 2, "Closed")
		dealt(t, v.old, live, "b", 1, "Unheard")
	}
	both := func(reason string) {
		t.Helper()
		refusedFor(t, "orders", reason)
		refusedFor(t, "totals", reason)
	}
	both("what version 1 had of 2 aggregates")
	dealt(t, v.new, fewer, "a", 1, "Happened")
	dealt(t, v.new, fewer, "b", 1, "Unheard")
	both("what version 1 had of 1 aggregates")
	dealt(t, v.new, fewer, "a", 2, "Closed")
	for _, name := range []string{"orders", "totals"} {
		lines, err := runCommand(t, "switch", name, "--to", "2", "--dry-run")
		if err != nil || len(lines) != 1 || lines[0]["switched"] != false || lines[0]["dry_run"] != true {
			t.Errorf("a dry switch of %s: got %v and %v, want it allowed and not done", name, lines, err)
		}
		switchTo(t, name, "2", "--wait", "1ms")
	}
}

// What the source has deleted a copy does not show; what an event has erased it does.
func TestSwitch_AsksForNothingOfWhatTheSourceHasDeleted(t *testing.T) {
	v := newVersions(t)
	erasing := strings.ReplaceAll(versioned, "Closed: {set: {closed: true}}", "Closed: {delete: true}")
	live, next := file(t, "live.yaml", erasing), file(t, "next.yaml", strings.ReplaceAll(erasing, "version: 1", "version: 2"))
	v.use(1)
	if _, err := runCommand(t, "setup"); err != nil {
		t.Fatal(err)
	}
	v.as(2, next)
	dealt(t, v.old, live, "a", 1, "Happened")
	dealt(t, v.old, live, "a", 2, "Closed")
	refusedFor(t, "orders", "what version 1 had of 1 aggregates")
	deletion := readmodeltest.Event("a", 3)
	deletion.Type, deletion.Operation = "Closed", contract.Delete
	writes, err := load(t, live).Decide(&projection.Change{Event: *deletion})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.old.Writes.Write(t.Context(), writes); err != nil {
		t.Fatal(err)
	}
	switchTo(t, "orders", "2", "--wait", "1ms")
	switchTo(t, "totals", "2", "--wait", "1ms")
}

// A version that has another key than the live one is compared with it all the
// same: by what each notes of aggregates, whichever way round.
func TestSwitch_ComparesVersionsOfDifferentKeys(t *testing.T) {
	own, keyed := versioned, strings.ReplaceAll(versioned, "    collection: orders\n", "    collection: orders\n    key: '\"b\"'\n")
	for name, of := range map[string]struct{ live, next string }{
		"a key is new":       {own, keyed},
		"the key is dropped": {strings.ReplaceAll(keyed, `"b"`, `"everybody"`), own},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVersions(t)
			live, next := file(t, "live.yaml", of.live), file(t, "next.yaml", strings.ReplaceAll(of.next, "version: 1", "version: 2"))
			v.as(1, live)
			if _, err := runCommand(t, "setup"); err != nil {
				t.Fatal(err)
			}
			v.as(2, next)
			aggregates := []string{"a", "b", "c", "d"}
			for _, aggregate := range aggregates {
				dealt(t, v.old, live, aggregate, 1, "Happened")
			}
			dealt(t, v.old, live, "d", 2, "Unheard")
			refusedFor(t, "orders", "what version 1 had of 4 aggregates")
			// Where b is the key, the document of that id is not the aggregate's own.
			for i, aggregate := range []string{"a", "c", "b"} {
				dealt(t, v.new, next, aggregate, 1, "Happened")
				refusedFor(t, "orders", fmt.Sprintf("what version 1 had of %d aggregates", 3-i))
			}
			dealt(t, v.new, next, "d", 1, "Happened")
			refusedFor(t, "orders", "what version 1 had of 1 aggregates")
			dealt(t, v.new, next, "d", 2, "Unheard")
			switchTo(t, "orders", "2", "--wait", "1ms")
		})
	}
}

// Where the live version has not noted whose events its documents show, nobody
// can say what the new one lacks.
func TestSwitch_IsRefusedWhereNobodyKnowsWhatTheLiveVersionHas(t *testing.T) {
	v := newVersions(t)
	v.use(1)
	if _, err := runCommand(t, "setup"); err != nil {
		t.Fatal(err)
	}
	applied(t, v.old, 1, "a", 1, "Happened")
	v.use(2)
	positions := v.client.Database(v.database).Collection(projection.Positions, options.Collection().SetWriteConcern(writeconcern.Majority()))
	if _, err := positions.DeleteMany(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	refusedFor(t, "totals", "it cannot be known what the version has dealt with")
	switchTo(t, "totals", "2", "--wait", "1ms", "--force")
}

func TestVersions_WrongSwitchesSayWhatToDo(t *testing.T) {
	v := newVersions(t)
	v.use(2)
	if _, err := runCommand(t, "switch", "orders", "--to", "1"); err == nil || !strings.Contains(err.Error(), "declares version 2") {
		t.Errorf("another version than the declared one: got %v", err)
	}
	if _, err := runCommand(t, "switch", "nobody", "--to", "1"); err == nil || !strings.Contains(err.Error(), `no version of projection "nobody"`) {
		t.Errorf("an unknown projection: got %v", err)
	}
	for _, args := range [][]string{{"switch"}, {"switch", "orders"}, {"switch", "orders", "--to", "x"}, {"switch", "orders", "--to", "2", "more"}, {"versions", "more"}} {
		if _, err := runCommand(t, args...); !errors.Is(err, cli.ErrUsage) {
			t.Errorf("%v: got %v, want wrong usage", args, err)
		}
	}
	write := projection.Write{Projection: "orders", Collection: "orders", ID: "a", Event: readmodeltest.Event("a", 1), Delete: true}
	if _, err := v.old.Writes.Write(t.Context(), []projection.Write{write}); err != nil {
		t.Fatal(err)
	}
	if _, err := runCommand(t, "switch", "orders", "--to", "2"); err == nil || !strings.Contains(err.Error(), `rename it to "orders_v1"`) {
		t.Errorf("a collection in the place of the view: got %v", err)
	}
}

// The steps are those of docs/projections.md.
func TestVersions_ACollectionBecomesVersionOneAndCountsNothingTwice(t *testing.T) {
	v := newVersions(t)
	client, database := v.client, v.client.Database(v.database)
	count := bson.D{{Key: "$inc", Value: bson.D{{Key: "events", Value: 1}}}}
	write := func(own, keyed string) {
		t.Helper()
		event := readmodeltest.Event("a", 1)
		_, err := v.old.Writes.Write(t.Context(), []projection.Write{
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
	if _, err := runCommand(t, "setup"); err != nil {
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

func TestVersions_VersionsAreSwitchedWithTheDocumentedRole(t *testing.T) {
	servers, as := guarded(t, "switching")
	environ(t, servers, "switching", as("deployer", "deploysecret"), "shop_read")
	path := file(t, "v1.yaml", versioned)
	t.Setenv("PROJECTIONS", path)
	if _, err := runCommand(t, "setup"); err != nil {
		t.Fatal(err)
	}
	runner, err := mongo.Connect(options.Client().ApplyURI(as("projector", "runsecret")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = runner.Disconnect(t.Context()) }()
	deployed(t, runner, readmodel.Config{Database: "shop_read", Feed: readmodel.Feed{Topic: "switching", Subscription: "projector"}}, path)
	t.Setenv("READMODEL_MONGODB_URI", as("operator", "switchsecret"))
	if lines, err := runCommand(t, "versions"); err != nil || len(lines) != 2 {
		t.Errorf("versions: got %v and %v, want one of each projection", lines, err)
	}
	switchTo(t, "orders", "1")
	t.Setenv("READMODEL_MONGODB_URI", as("projector", "runsecret"))
	if _, err := runCommand(t, "switch", "orders", "--to", "1"); err == nil {
		t.Error("a switch in the role of the projector: got no error")
	}
}
