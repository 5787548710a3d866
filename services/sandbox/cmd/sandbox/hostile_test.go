package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// hostileMemory bounds what the process may ever have in memory.
const hostileMemory = 1 << 30

// hostileEntities are what the hostile clients use, and "orderly", which they do
// not. Messages live for seconds, so that what they send does not pile up.
const hostileEntities = `{"UserConfig": {"Namespaces": [{"Name": "sbemulatorns", "Queues": [
	{"Name": "plain", "Properties": {"DefaultMessageTimeToLive": "PT20S", "LockDuration": "PT5S", "MaxDeliveryCount": 3}},
	{"Name": "sessions", "Properties": {"DefaultMessageTimeToLive": "PT20S", "LockDuration": "PT5S", "RequiresSession": true,
		"RequiresDuplicateDetection": true, "DuplicateDetectionHistoryTimeWindow": "PT20S"}},
	{"Name": "orderly", "Properties": {}}
], "Topics": [{"Name": "changes", "Properties": {"DefaultMessageTimeToLive": "PT20S", "EnablePartitioning": true}, "Subscriptions": [
	{"Name": "projector", "Properties": {"RequiresSession": true, "LockDuration": "PT5S"}}, {"Name": "observer", "Properties": {}}
]}]}]}}`

// TestHostile_NoClientEndsTheSandbox has clients of both sides send commands and frames
// that are nearly right, and bytes that are not, for the time in HOSTILE_FOR.
// HOSTILE_SEED repeats a run's choices. Meanwhile orderly clients must be served.
// No command may panic or end in an internal error, memory stays bounded, and
// what was written can be read back at the next start.
func TestHostile_NoClientEndsTheSandbox(t *testing.T) {
	t.Parallel()
	h := newHostility(t)
	entities := t.TempDir() + "/Config.json"
	must(t, os.WriteFile(entities, []byte(hostileEntities), 0o600))
	args := []string{"--data", t.TempDir(), "--config", entities, "--oplog-bytes", "67108864", "--ttl-interval", "1s"}
	p := startHostileTarget(t, args)
	ctx, cancel := context.WithTimeout(t.Context(), h.lasts)
	defer cancel()
	var clients sync.WaitGroup
	for worker := range 4 {
		clients.Go(func() { newHostileDocuments(h, p.mongoAddress(), worker).run(ctx) })
		clients.Go(func() { newHostileMessages(h, p.busAddress(), worker).run(ctx) })
	}
	for ctx.Err() == nil {
		h.orderly(t, p)
	}
	clients.Wait()
	h.orderly(t, p)
	peak := p.peakMemory(t)
	must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("got %v after SIGTERM, want exit code 0", err)
	}
	h.report(t, p.log.Bytes(), peak)
	h.orderly(t, startHostileTarget(t, args))
}

// TestHostile_OrderlyClientsEndWhateverIsMadeToFail shows that no fail point of a hostile
// client outlasts a round of the orderly ones.
func TestHostile_OrderlyClientsEndWhateverIsMadeToFail(t *testing.T) {
	t.Parallel()
	entities := t.TempDir() + "/Config.json"
	must(t, os.WriteFile(entities, []byte(hostileEntities), 0o600))
	h, p := newHostility(t), startHostileTarget(t, []string{"--config", entities})
	must(t, p.client(t).Database("admin").RunCommand(t.Context(), bson.D{
		{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: "alwaysOn"},
		{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"hello", "isMaster"}}, {Key: "closeConnection", Value: true}}},
	}).Err())
	h.orderly(t, p)
}

// startHostileTarget starts the binary that SANDBOX_BIN names, or this one.
func startHostileTarget(t *testing.T, args []string) *process {
	t.Helper()
	if path := os.Getenv("SANDBOX_BIN"); path != "" {
		return startCommand(t, exec.Command(path, withFreePorts(args)...))
	}
	return startProcess(t, args...)
}

// hostility is what the clients of one run share.
type hostility struct {
	seed  uint64
	lasts time.Duration

	commands, frames, connections, answers, refusals atomic.Int64
	rounds                                           int

	t          *testing.T
	mu         sync.Mutex      // guards complaints
	complaints map[string]bool // by text
}

func newHostility(t *testing.T) *hostility {
	t.Helper()
	h := &hostility{seed: uint64(time.Now().UnixNano()), lasts: 2 * time.Second, t: t, complaints: map[string]bool{}}
	var err error
	if given := os.Getenv("HOSTILE_SEED"); given != "" {
		h.seed, err = strconv.ParseUint(given, 10, 64)
		must(t, err)
	}
	if given := os.Getenv("HOSTILE_FOR"); given != "" {
		h.lasts, err = time.ParseDuration(given)
		must(t, err)
	}
	t.Logf("HOSTILE_SEED=%d", h.seed)
	return h
}

func (h *hostility) random(client int) *rand.Rand {
	return rand.New(rand.NewPCG(h.seed, uint64(client)))
}

// complain fails the test with an answer that no client may ever get, and what it
// was given to.
func (h *hostility) complain(text, request string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.complaints[text] && len(h.complaints) < 50 {
		h.complaints[text] = true
		h.t.Errorf("%s\n\tin answer to %s", text, request[:min(len(request), 3000)])
	}
}

// orderly does a round of what clients do that mean well. It also ends the fail
// points and step-downs that hostile clients have started, and drops what they
// have written.
func (h *hostility) orderly(t *testing.T, p *process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	h.rounds++
	client := p.client(t)
	defer forget(client)
	for {
		// Each try begins anew: a fail point of greetings keeps the driver from connecting.
		try, end := context.WithTimeout(ctx, orderlyPatience)
		h.endFailPoints(t, p)
		calm(try, client, h.rounds%20 == 0)
		err := h.store(try, client)
		end()
		if err == nil {
			break
		}
		if ctx.Err() != nil || mongo.IsNetworkError(err) && p.ended() {
			t.Fatalf("round %d: %v\n%s", h.rounds, err, p.stacks())
		}
		// A fail point that somebody has set meanwhile.
	}
	h.passOn(ctx, t, p)
}

// orderlyPatience bounds one try of an orderly client.
const orderlyPatience = 10 * time.Second

// endFailPoints ends every fail point there is, without a greeting: greetings may
// be what fails.
func (h *hostility) endFailPoints(t *testing.T, p *process) {
	t.Helper()
	nc, err := net.Dial("tcp", p.mongoAddress())
	if err != nil {
		return // what comes next says why
	}
	defer func() { _ = nc.Close() }()
	c := &hostileDocuments{hostility: h, nc: nc, in: bufio.NewReader(nc)}
	for _, name := range []string{"failCommand", "failGetMoreAfterCursorCheckout", "onPrimaryTransactionalWrite", "maxTimeAlwaysTimeOut"} {
		raw, err := bson.Marshal(bson.D{{Key: "configureFailPoint", Value: name}, {Key: "mode", Value: "off"}, {Key: "$db", Value: "admin"}})
		must(t, err)
		message := c.message(2013, append(make([]byte, 5), raw...))
		_ = nc.SetDeadline(time.Now().Add(orderlyPatience))
		if _, err := nc.Write(message); err != nil {
			return
		}
		if _, err := c.read(); err != nil {
			return
		}
	}
}

// stacks ends the process and gives what all its goroutines were at.
func (p *process) stacks() []byte {
	_ = p.cmd.Process.Signal(syscall.SIGQUIT) // it may be dead
	_ = p.cmd.Wait()
	log := p.log.Bytes()
	if at := bytes.Index(log, []byte("\ngoroutine ")); at >= 0 {
		return log[at:min(at+1_000_000, len(log))]
	}
	return log[max(0, len(log)-20_000):]
}

// store writes a document and looks for it.
func (h *hostility) store(ctx context.Context, client *mongo.Client) error {
	documents := client.Database("orderly").Collection("c", options.Collection().SetWriteConcern(writeconcern.Majority()))
	if _, err := documents.InsertOne(ctx, bson.D{{Key: "round", Value: h.rounds}}); err != nil {
		return err
	}
	n, err := documents.CountDocuments(ctx, bson.D{{Key: "round", Value: h.rounds}})
	if err == nil && n == 0 {
		err = errors.New("the document that was inserted is not there")
	}
	return err
}

// ended tells that nobody listens any more.
func (p *process) ended() bool {
	nc, err := net.Dial("tcp", p.mongoAddress())
	if err == nil {
		_ = nc.Close()
	}
	return err != nil
}

// calm makes the only member a primary again, lets writes in and may drop the hostile databases.
func calm(ctx context.Context, client *mongo.Client, drop bool) {
	admin := client.Database("admin")
	for _, command := range []bson.D{
		{{Key: "replSetFreeze", Value: 0}},
		{{Key: "killAllSessions", Value: bson.A{}}},
	} {
		_ = admin.RunCommand(ctx, command).Err() // refused where there is nothing to end
	}
	for admin.RunCommand(ctx, bson.D{{Key: "fsyncUnlock", Value: 1}}).Err() == nil {
		continue // somebody has locked writes, perhaps more than once
	}
	names, err := client.ListDatabaseNames(ctx, bson.D{})
	if err != nil || !drop {
		return // whatever is wrong is found by what comes next
	}
	for _, name := range names {
		if name != "admin" && name != "config" && name != "local" && name != "orderly" {
			_ = client.Database(name).Drop(ctx)
		}
	}
	_, _ = client.Database("orderly").Collection("c").DeleteMany(ctx, bson.D{}) // as above
}

// passOn sends a message and takes it, and takes the dead letters of the others.
func (h *hostility) passOn(ctx context.Context, t *testing.T, p *process) {
	t.Helper()
	bus := p.bus(t) //nolint:contextcheck // it is closed after the test
	defer func() { _ = bus.Close(ctx) }()
	sender, err := bus.NewSender("orderly", nil)
	must(t, err)
	want := fmt.Sprint("round ", h.rounds)
	must(t, sender.SendMessage(ctx, &azservicebus.Message{Body: []byte(want)}, nil))
	receiver, err := bus.NewReceiverForQueue("orderly", nil)
	must(t, err)
	messages, err := receiver.ReceiveMessages(ctx, 1, nil)
	must(t, err)
	if got := string(messages[0].Body); got != want {
		t.Errorf("got the message %q, want %q", got, want)
	}
	must(t, receiver.CompleteMessage(ctx, messages[0], nil))
	for _, queue := range []string{"plain", "sessions"} {
		drain(ctx, bus, queue)
	}
}

func drain(ctx context.Context, bus *azservicebus.Client, queue string) {
	receiver, err := bus.NewReceiverForQueue(queue, &azservicebus.ReceiverOptions{
		SubQueue: azservicebus.SubQueueDeadLetter, ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete,
	})
	if err != nil {
		return
	}
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, _ = receiver.ReceiveMessages(short, 5000, nil) // mostly there are none
	_ = receiver.Close(ctx)
}

func (h *hostility) report(t *testing.T, log []byte, peak int) {
	t.Helper()
	if at := bytes.Index(log, []byte("panic")); at >= 0 {
		t.Errorf("a client made the sandbox panic: %s", log[at:min(at+4000, len(log))])
	}
	if peak > hostileMemory {
		t.Errorf("got %d MiB of memory at most, want no more than %d", peak>>20, hostileMemory>>20)
	}
	for name, n := range map[string]int64{
		"commands": h.commands.Load(), "answers": h.answers.Load(), "refusals": h.refusals.Load(), "frames": h.frames.Load(),
	} {
		if n == 0 {
			t.Errorf("got no %s", name)
		}
	}
	t.Logf("%v: %d commands with %d answers, %d of them refusals; %d frames; %d connections; %d orderly rounds; %d MiB of memory at most",
		h.lasts, h.commands.Load(), h.answers.Load(), h.refusals.Load(), h.frames.Load(), h.connections.Load(), h.rounds, peak>>20)
}

func (p *process) mongoAddress() string {
	rest := strings.TrimPrefix(p.vars["MONGODB_URI"], "mongodb://")
	return rest[:strings.IndexByte(rest, '/')]
}

func (p *process) busAddress() string {
	rest := strings.TrimPrefix(p.vars["SERVICEBUS_CONNECTION_STRING"], "Endpoint=sb://")
	return strings.TrimSuffix(rest[:strings.IndexByte(rest, ';')], "/")
}

// peakMemory is the most that the process ever had resident, in bytes; 0 where
// the system does not say.
func (p *process) peakMemory(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Logf("NOT RUN: the bound of memory: %v", err)
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
	must(t, err)
	return kilobytes << 10
}
