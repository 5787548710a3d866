package app_test

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/settings"
)

const counting = `
projections:
- name: orders
  collection: orders
  on:
    Happened:
      inc: {events: 1}
      push: {seen: {value: event.version, last: 1000}}
    Doubled:
      inc: {events: data.n * 2}
`

func parse(t *testing.T) projection.Projections {
	t.Helper()
	projections, err := projection.Parse("test.yaml", []byte(counting))
	if err != nil {
		t.Fatal(err)
	}
	return projections
}

func happened(aggregate string, from, to int64) []contract.Event {
	var events []contract.Event
	for n := from; n <= to; n++ {
		events = append(events, event(aggregate, n, "Happened", `{}`))
	}
	return events
}

// seen returns the versions that an aggregate's document has counted.
func seen(d bson.Raw) []int64 {
	list, ok := d.Lookup("seen").ArrayOK()
	if !ok {
		return nil
	}
	values, _ := list.Values()
	versions := make([]int64, len(values))
	for i, v := range values {
		versions[i] = v.AsInt64()
	}
	return versions
}

// complete tells whether each aggregate has counted versions 1 to last, each once
// and in order.
func complete(t *testing.T, db *mongo.Database, aggregates int, last int64) bool {
	t.Helper()
	documents := sandboxtest.Documents(t, db, "orders")
	for _, d := range documents {
		if d.Lookup("events").AsInt64() < last {
			return false
		}
	}
	return len(documents) == aggregates
}

func checkOrder(t *testing.T, db *mongo.Database, last int64) {
	t.Helper()
	want := make([]int64, last)
	for i := range want {
		want[i] = int64(i) + 1
	}
	for id, d := range sandboxtest.Documents(t, db, "orders") {
		if got := seen(d); !slices.Equal(got, want) {
			t.Errorf("%s has counted %v, want 1 to %d, each once and in order", id, got, last)
		}
	}
}

func TestFaults_AProjectorWaitsForServersThatAreNotThereYet(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	mongoURL, err := url.Parse(servers.MongoURI)
	if err != nil {
		t.Fatal(err)
	}
	bus := regexp.MustCompile(`sb://([^;/]+)`).FindStringSubmatch(servers.ServiceBus)[1]
	mongoWay, busWay := sandboxtest.NewProxy(t, mongoURL.Host), sandboxtest.NewProxy(t, bus)
	cfg := configured(t, "restart", database)
	cfg.MongoURI = settings.Secret("mongodb://" + mongoWay.Addr + "/?directConnection=true")
	cfg.ServiceBusConnectionString = settings.Secret(strings.Replace(servers.ServiceBus, bus, busWay.Addr, 1))
	send(t, "restart", happened("a", 1, 5)...)

	p := start(t, cfg, parse(t))
	state := func() string { return p.Status().State }
	until(t, "it waits for MongoDB and says why, and since when", func() bool {
		s := p.Status()
		return s.State == "waiting for MongoDB" && s.LastError != "" && s.OutageSince != nil && !s.Ready
	})
	mongoWay.Open(t)
	until(t, "it waits for Service Bus, and says since when", func() bool {
		s := p.Status()
		return s.State == "waiting for Service Bus" && s.OutageSince != nil && !s.Ready
	})
	busWay.Open(t)
	db := client.Database(database)
	until(t, "the messages are applied", func() bool { return complete(t, db, 1, 5) })

	// Both go away and come back under load.
	for round := range int64(3) {
		mongoWay.Cut()
		send(t, "restart", happened("a", 6+round*20, 15+round*20)...)
		until(t, "it waits for MongoDB again", func() bool { return state() == "waiting for MongoDB" })
		until(t, "it says since when a message waits", func() bool { return p.Status().OldestUnapplied != nil })
		mongoWay.Open(t)
		busWay.Cut()
		send(t, "restart", happened("a", 16+round*20, 25+round*20)...)
		until(t, "it waits for Service Bus again", func() bool { return state() == "waiting for Service Bus" })
		busWay.Open(t)
	}
	until(t, "all messages are applied", func() bool { return complete(t, db, 1, 65) })
	until(t, "it runs", func() bool { return state() == "running" && p.Status().OutageSince == nil && p.Status().Ready })
	until(t, "no message waits", func() bool { return p.Status().OldestUnapplied == nil && p.Status().InFlight == 0 })
	until(t, "it says how fast it is", func() bool { return p.Status().CompletedPerSecond > 0 })
	checkOrder(t, db, 65)
	if s := p.Status(); s.Parked != 0 || s.DeadLettered != 0 || s.LastError == "" {
		t.Errorf("status: got %+v, want nothing parked, nothing dead-lettered, and the last error", s)
	}
	for _, line := range []string{"waiting for the read database", "the read database answers", "accepting sessions fails, trying again", "accepting sessions works again"} {
		if !strings.Contains(p.logs.String(), line) {
			t.Errorf("the log does not say %q", line)
		}
	}
}

// What a replica could not apply in an outage another has applied: it is ready once the read
// database answers, though no message comes that would show it.
func TestFaults_AReplicaWhoseSessionAnotherHasTakenIsReadyAgain(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	mongoURL, err := url.Parse(servers.MongoURI)
	if err != nil {
		t.Fatal(err)
	}
	way := sandboxtest.NewProxy(t, mongoURL.Host)
	way.Open(t)
	cfg := configured(t, "taken", database)
	cfg.InstanceID, cfg.RetryTime = "cut-off", time.Second
	cfg.MongoURI = settings.Secret("mongodb://" + way.Addr + "/?directConnection=true")
	p := start(t, cfg, parse(t))
	until(t, "it is ready", func() bool { return p.Status().Ready })
	way.Cut()
	send(t, "taken", happened("a", 1, 5)...)
	until(t, "it waits for MongoDB", func() bool { return p.Status().State == "waiting for MongoDB" })

	cfg = configured(t, "taken", database)
	cfg.InstanceID = "other"
	start(t, cfg, parse(t))
	until(t, "another applies the messages", func() bool { return complete(t, client.Database(database), 1, 5) })
	way.Open(t)
	until(t, "it is ready again", func() bool {
		s := p.Status()
		return s.Ready && s.State == "running" && s.OutageSince == nil
	})
	if log := p.logs.String(); !strings.Contains(log, "applying messages would work again") {
		t.Error("the log does not say that applying would work again")
	}
}

func TestFaults_ReplicasComeAndGoAndEachEventCountsOnceInOrder(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	const aggregates, rounds, versions = 12, 4, 20
	replica := func(n int) *projector {
		cfg := configured(t, "replay", database)
		cfg.InstanceID = fmt.Sprintf("replica-%d", n)
		cfg.BatchSize = 7
		return start(t, cfg, parse(t))
	}
	running := []*projector{replica(0), replica(1)}
	for round := range int64(rounds) {
		for a := range aggregates {
			send(t, "replay", happened(fmt.Sprintf("order-%02d", a), round*versions+1, (round+1)*versions)...)
			// A stale sender repeats what was sent before, late.
			send(t, "replay", happened(fmt.Sprintf("order-%02d", a), round*versions+3, round*versions+9)...)
		}
		// One goes, another comes, in the middle of it.
		if err := running[0].stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		running = append(running[1:], replica(int(round)+2))
	}
	until(t, "everything is applied", func() bool { return complete(t, db, aggregates, rounds*versions) })
	checkOrder(t, db, rounds*versions)
}

func TestFaults_AForeignMessageIsDeadLetteredWithItsReason(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	sandboxtest.Send(t, servers, "foreign", contract.Message{ID: "x", SessionID: "a", PartitionKey: "a", Body: []byte("hello")})
	send(t, "foreign", happened("a", 1, 2)...)
	p := start(t, configured(t, "foreign", database), parse(t))
	until(t, "the aggregate's events are applied", func() bool { return complete(t, client.Database(database), 1, 2) })
	until(t, "the foreign message is settled", func() bool { return p.Status().DeadLettered == 1 })

	dead, err := servers.Client(t).NewReceiverForSubscription("foreign", "projector", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	got, err := dead.ReceiveMessages(ctx, 1, nil)
	if err != nil || len(got) != 1 {
		t.Fatalf("receive the dead letter: got %d and %v", len(got), err)
	}
	if *got[0].DeadLetterReason != "ForeignMessage" || !strings.Contains(*got[0].DeadLetterErrorDescription, "specversion: is missing") {
		t.Errorf("got %q: %q, want ForeignMessage and the fields", *got[0].DeadLetterReason, *got[0].DeadLetterErrorDescription)
	}
}

func TestFaults_APoisonousEventParksItsAggregateAlone(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	send(t, "poison", happened("sick", 1, 2)...)
	send(t, "poison", event("sick", 3, "Doubled", `{"n":"three"}`))
	send(t, "poison", happened("sick", 4, 6)...)
	send(t, "poison", happened("well", 1, 6)...)
	p := start(t, configured(t, "poison", database), parse(t))
	until(t, "all are settled", func() bool { return p.Status().Completed == 12 })
	documents := sandboxtest.Documents(t, db, "orders")
	if got := seen(documents["sick"]); !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("the halted aggregate has counted %v, want 1 and 2", got)
	}
	if got := seen(documents["well"]); !slices.Equal(got, []int64{1, 2, 3, 4, 5, 6}) {
		t.Errorf("the other aggregate has counted %v, want 1 to 6", got)
	}
	until(t, "status tells of the halt", func() bool {
		s := p.Status()
		return s.Parked == 4 && s.HaltedAggregates != nil && *s.HaltedAggregates == 1
	})
	// The halt outlives the process.
	if err := p.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	send(t, "poison", happened("sick", 7, 7)...)
	next := start(t, configured(t, "poison", database), parse(t))
	until(t, "the next message is parked too", func() bool { return next.Status().Parked == 1 })
	n, err := db.Collection("parked_messages").CountDocuments(t.Context(), bson.D{})
	if err != nil || n != 5 {
		t.Errorf("parked messages: got %d and %v, want 5", n, err)
	}
}
