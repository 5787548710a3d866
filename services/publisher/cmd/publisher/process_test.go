package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/testserver"
)

// asPublisher makes the test binary be the publisher.
const asPublisher = "TEST_AS_PUBLISHER"

func TestMain(m *testing.M) {
	if os.Getenv(asPublisher) != "" {
		main()
	}
	testserver.Main(m)
}

// process is a publisher in an operating-system process of its own.
type process struct {
	command *exec.Cmd
	addr    string
	log     sync.WaitGroup
	said    bytes.Buffer // after the address of the admin port; to be read after log
}

type status struct {
	Role, State, Leader string
	Term, Sent          int64
}

func start(t *testing.T, servers testserver.Servers, instance string, env ...string) *process {
	t.Helper()
	p := &process{command: exec.Command(os.Args[0])}
	p.command.Env = append(os.Environ(), asPublisher+"=1",
		"MONGODB_URI="+servers.MongoURI, "SOURCE_DATABASE=shop", "SOURCE_COLLECTION=events",
		"SERVICEBUS_CONNECTION_STRING="+servers.ServiceBus, "SERVICEBUS_TOPIC="+testserver.Topic,
		"INSTANCE_ID="+instance, "ADMIN_ADDR=127.0.0.1:0",
		"LEASE_TTL=3s", "LEASE_RENEW_DEADLINE=2s", "LEASE_HEARTBEAT=500ms")
	p.command.Env = append(p.command.Env, env...)
	stderr, err := p.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.command.Process.Kill()
		p.log.Wait()
		_ = p.command.Wait() // it was killed, or has ended
	})
	lines := bufio.NewScanner(stderr)
	for p.addr == "" && lines.Scan() {
		var line struct{ Message, Addr string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Message == "admin listening" {
			p.addr = line.Addr
		}
	}
	p.log.Go(func() { _, _ = io.Copy(&p.said, stderr) })
	return p
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.command.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func (p *process) await(t *testing.T, what string, wanted func(status) bool) status {
	t.Helper()
	var got status
	testserver.Eventually(t, what, func() bool {
		response, err := http.Get("http://" + p.addr + "/status") //nolint:noctx // the process answers or is gone
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		got = status{}
		return json.NewDecoder(response.Body).Decode(&got) == nil && wanted(got)
	})
	http.DefaultClient.CloseIdleConnections()
	return got
}

func leads(s status) bool { return s.Role == "leader" && s.State == "publishing" }

func TestProcess_AFrozenLeaderDoesNoHarmWhenItWakes(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	events := testserver.Connect(t, servers.MongoURI).Database("shop").Collection("events")
	frozen := start(t, servers, "frozen")
	frozen.await(t, "the first to lead", leads)
	follower := start(t, servers, "follower")
	write(t, events, 1, 50)
	frozen.signal(t, syscall.SIGSTOP)
	write(t, events, 51, 100)
	term := follower.await(t, "the second to lead and to send the rest", func(s status) bool { return leads(s) && s.Sent >= 50 }).Term
	before := checkpointed(t, events.Database().Client())
	frozen.signal(t, syscall.SIGCONT)
	frozen.await(t, "the first to step down by itself", func(s status) bool { return s.Role == "standby" && s.Leader == "follower" })
	write(t, events, 101, 150)
	follower.await(t, "the later events to be sent", func(s status) bool { return s.Sent >= 100 })
	if got := follower.await(t, "the second", func(status) bool { return true }); got.Term != term || !leads(got) {
		t.Errorf("the second is %+v, want it leading in term %d throughout", got, term)
	}
	if after := checkpointed(t, events.Database().Client()); after < before {
		t.Errorf("the checkpoint went back from %q to %q", before, after)
	}
	wantAll(t, servers, 150)
}

func TestProcess_AKilledLeaderIsFollowedAndNothingIsLost(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	events := testserver.Connect(t, servers.MongoURI).Database("shop").Collection("events")
	leader := start(t, servers, "leader")
	leader.await(t, "the first to lead", leads)
	follower := start(t, servers, "follower")
	write(t, events, 1, 400)
	leader.signal(t, syscall.SIGKILL)
	write(t, events, 401, 500)
	follower.await(t, "the second to lead", leads)
	wantAll(t, servers, 500)
}

func TestProcess_ASignalStopsTheProcessInOrder(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	p := start(t, servers, "a")
	p.await(t, "the publisher to lead", leads)
	p.signal(t, syscall.SIGTERM)
	p.log.Wait()
	if err := p.command.Wait(); err != nil {
		t.Errorf("the process ended with %v, want status 0", err)
	}
	lease, err := testserver.Connect(t, servers.MongoURI).Database("change_relay").Collection("leader_leases").
		FindOne(t.Context(), bson.D{}).Raw()
	if holder, _ := lease.Lookup("leaderId").StringValueOK(); err != nil || holder != "" {
		t.Errorf("the lease is held by %q (%v), want it released", holder, err)
	}
}

func TestProcess_OfTwoProcessesWithOneIDTheOlderEndsWithAFailure(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	older := start(t, servers, "twin", "INSTANCE_ID_UNIQUE=true")
	older.await(t, "the older to lead", leads)
	newer := start(t, servers, "twin", "INSTANCE_ID_UNIQUE=true")
	newer.await(t, "the newer to lead", leads)
	older.log.Wait()
	exit, ended := errors.AsType[*exec.ExitError](older.command.Wait())
	if !ended || exit.ExitCode() != 1 || !strings.Contains(older.said.String(), "another process uses this instance's id") {
		t.Errorf("the older ended with %v, saying %s, want status 1 and why", exit, &older.said)
	}
}

// write inserts the events first to last of one aggregate.
func write(t *testing.T, events *mongo.Collection, first, last int) {
	t.Helper()
	var documents []any
	for n := first; n <= last; n++ {
		documents = append(documents, bson.D{
			{Key: "aggregateId", Value: "order-1"},
			{Key: "version", Value: n},
			{Key: "type", Value: "OrderPlaced"},
			{Key: "data", Value: bson.D{}},
		})
	}
	if _, err := events.InsertMany(t.Context(), documents); err != nil {
		t.Fatal(err)
	}
}

func checkpointed(t *testing.T, client *mongo.Client) string {
	t.Helper()
	found, err := client.Database("change_relay").Collection("resume_tokens").FindOne(t.Context(), bson.D{}).Raw()
	if err != nil {
		t.Fatal(err)
	}
	position, _ := found.Lookup("position").StringValueOK()
	return position
}

// wantAll receives until versions 1 to count are there, and wants each to have
// been accepted first in order.
func wantAll(t *testing.T, servers testserver.Servers, count int) {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(servers.ServiceBus, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(context.WithoutCancel(t.Context())) }()
	receiver, err := client.NewReceiverForSubscription(testserver.Topic, "observer",
		&azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	if err != nil {
		t.Fatal(err)
	}
	accepted := map[int64]string{} // by the topic's number, the version
	versions := map[string]bool{}
	for len(versions) < count {
		messages, err := receiver.ReceiveMessages(t.Context(), 500, nil)
		if err != nil {
			t.Fatalf("received %d of %d: %v", len(versions), count, err)
		}
		for _, m := range messages {
			version := fmt.Sprint(m.ApplicationProperties["cloudEvents_aggregateversion"])
			accepted[*m.SequenceNumber] = version
			versions[version] = true
		}
	}
	numbers := make([]int64, 0, len(accepted))
	for n := range accepted {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	next := 1
	for _, n := range numbers {
		if accepted[n] == fmt.Sprint(next) {
			next++
		}
	}
	if next != count+1 {
		t.Errorf("version %d was not accepted after the ones before it", next)
	}
}
