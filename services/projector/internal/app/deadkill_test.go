package app_test

import (
	"bytes"
	"net"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"changerelay/services/projector/internal/sandboxtest"
)

// killer is a way to a server on which a process meets its end: when the nth request
// that contains all of texts comes by, before the server has it, or, with after,
// before its answer is here.
type killer struct {
	texts [][]byte
	nth   int
	after bool
	kill  func()
	// lives tells that kill leaves the process alive: its request goes on.
	lives bool

	mu     sync.Mutex
	killed bool // guarded by mu
}

// meets tells whether a request is the one.
func (k *killer) meets(request []byte) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, text := range k.texts {
		if !bytes.Contains(request, text) {
			return false
		}
	}
	k.nth--
	return len(k.texts) > 0 && k.nth == 0
}

func (k *killer) dead() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.killed
}

func (k *killer) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.killed = true
	k.kill()
}

// listen opens the way to target, until the test's end, and returns where it begins.
func (k *killer) listen(t *testing.T, target string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { k.carry(from, target) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); running.Wait() })
	return l.Addr().String()
}

func (k *killer) carry(from net.Conn, target string) {
	defer func() { _ = from.Close() }()
	to, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	answered := make(chan struct{}, 1)
	var answers sync.WaitGroup
	defer answers.Wait()
	defer func() { _ = to.Close() }()
	answers.Go(func() {
		defer func() { _ = from.Close() }()
		for b := make([]byte, 64<<10); ; {
			n, err := to.Read(b)
			select {
			case <-answered:
				k.end() // the request's answer is here, and goes no further
				return
			default:
			}
			if _, failed := from.Write(b[:n]); err != nil || failed != nil {
				return
			}
		}
	})
	for b := make([]byte, 64<<10); ; {
		n, err := from.Read(b)
		switch met := n > 0 && k.meets(b[:n]); {
		case met && k.lives:
			k.end()
		case met && !k.after:
			k.end()
			return
		case met:
			answered <- struct{}{}
		}
		if _, failed := to.Write(b[:n]); err != nil || failed != nil {
			return
		}
	}
}

// deadKills are the steps of a dlq redrive at which it is killed.
var deadKills = []struct {
	name   string
	bus    bool
	texts  []string
	nth    int
	after  bool
	halted bool // by then
	known  bool // to every replica, by then
}{
	{name: "before the halt", texts: []string{"findAndModify", "halted_aggregates"}, nth: 1},
	{name: "halted", texts: []string{"commitTransaction"}, nth: 1, after: true, halted: true},
	{name: "before the first is parked", texts: []string{"findAndModify", "halted_aggregates", "$inc"}, nth: 1, halted: true, known: true},
	{name: "the first is parked", texts: []string{"commitTransaction"}, nth: 2, after: true, halted: true, known: true},
	{name: "both are parked", texts: []string{"commitTransaction"}, nth: 3, after: true, halted: true, known: true},
	{name: "before the first dead letter is taken away", bus: true, texts: []string{"com.microsoft:update-disposition"}, nth: 1, halted: true, known: true},
	{name: "a dead letter is taken away", bus: true, texts: []string{"com.microsoft:update-disposition"}, nth: 1, after: true, halted: true, known: true},
	{name: "before the first is applied", texts: []string{"update", "orders", "seen"}, nth: 1, halted: true, known: true},
	{name: "the first is applied", texts: []string{"update", "orders", "seen"}, nth: 1, after: true, halted: true, known: true},
	{name: "before the second is applied", texts: []string{"update", "orders", "seen"}, nth: 2, halted: true, known: true},
	{name: "the last is taken from what is parked", texts: []string{"commitTransaction"}, nth: 6, after: true, halted: true, known: true},
	{name: "lifted", texts: []string{"commitTransaction"}, nth: 7, after: true},
}

// deadKillTopics are a topic for each step.
func deadKillTopics() []string { return numbered("deadkill", len(deadKills)) }

// Wherever a redrive of dead letters is killed, nothing is lost, what comes
// meanwhile stays in order, and another run finishes it.
func TestDeadRedrive_KilledAtAnyStepAnotherRunFinishesIt(t *testing.T) {
	binary := buildProjector(t)
	for i := range deadKills {
		t.Run(deadKills[i].name, func(t *testing.T) {
			t.Parallel()
			killDeadRedrive(t, binary, i)
		})
	}
}

// What is halted for another reason is for parked redrive.
func TestDeadRedrive_LeavesOtherHaltsAlone(t *testing.T) {
	const topic = "deadothers"
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	p := start(t, configured(t, topic, database), parse(t))
	onTopic(t, topic, database, counting)
	send(t, topic, event("a", 1, "Doubled", `{"n":"x"}`))
	until(t, "the aggregate is halted", func() bool { return p.Status().Parked == 1 })
	if lines, err := runCommand(t, "dlq", "redrive", "--all"); err != nil || len(lines) != 0 {
		t.Errorf("got %v and %v, want nothing done", lines, err)
	}
	if halted := sandboxtest.Documents(t, db, "halted_aggregates"); len(halted) != 1 {
		t.Errorf("%d aggregates are halted, want the one", len(halted))
	}
}

func killDeadRedrive(t *testing.T, binary string, step int) {
	s, topic := deadKills[step], deadKillTopics()[step]
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	send(t, topic, happened("a", 1, 2)...)
	deadLetter(t, topic, "a")
	deadLetter(t, topic, "a")
	cfg := configured(t, topic, database)
	cfg.Projections = file(t, "projections.yaml", counting)
	p := start(t, cfg, parse(t))
	until(t, "the projector runs", func() bool { return strings.Contains(p.logs.String(), "taking sessions") })
	run := func(mongoURI, bus string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), binary, "dlq", "redrive", "--all")
		cmd.Env = append(os.Environ(), "SERVICEBUS_CONNECTION_STRING="+bus, "SERVICEBUS_TOPIC="+topic, "SERVICEBUS_SUBSCRIPTION=projector",
			"READMODEL_MONGODB_URI="+mongoURI, "READMODEL_DATABASE="+database, "PROJECTIONS="+cfg.Projections)
		return cmd
	}

	k := &killer{nth: s.nth, after: s.after}
	for _, text := range s.texts {
		k.texts = append(k.texts, []byte(text))
	}
	var first *exec.Cmd
	started := make(chan struct{})
	k.kill = func() { <-started; _ = first.Process.Signal(syscall.SIGKILL) }
	mongoURI, bus := servers.MongoURI, servers.ServiceBus
	if s.bus {
		at := regexp.MustCompile(`sb://([^;/]+)`).FindStringSubmatch(bus)[1]
		bus = strings.Replace(bus, at, k.listen(t, at), 1)
	} else {
		to, err := url.Parse(mongoURI)
		if err != nil {
			t.Fatal(err)
		}
		mongoURI = "mongodb://" + k.listen(t, to.Host) + "/?directConnection=true"
	}
	first = run(mongoURI, bus)
	var said bytes.Buffer
	first.Stdout, first.Stderr = &said, &said
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	close(started)
	if err := first.Wait(); err == nil || !k.dead() {
		t.Fatalf("the first run was not killed: %v: %s", err, &said)
	}

	if halted := len(sandboxtest.Documents(t, db, "halted_aggregates")) > 0; halted != s.halted {
		t.Errorf("halted: got %t, want %t", halted, s.halted)
	}
	if s.known {
		send(t, topic, happened("a", 3, 3)...)
	}
	// The broker gives a lock that died with the first run back when it ends.
	until(t, "another run finishes it", func() bool {
		output, err := run(servers.MongoURI, servers.ServiceBus).CombinedOutput()
		if err != nil && !strings.Contains(string(output), "is locked by another") {
			t.Fatalf("the next run: %v: %s", err, output)
		}
		return err == nil
	})
	if !s.known {
		send(t, topic, happened("a", 3, 3)...)
	}
	until(t, "everything is applied in order", func() bool {
		return slices.Equal(seen(sandboxtest.Documents(t, db, "orders")["a"]), []int64{1, 2, 3})
	})
	if parked, err := db.Collection("parked_messages").EstimatedDocumentCount(t.Context()); err != nil || parked != 0 {
		t.Errorf("got %d parked and %v, want none", parked, err)
	}
	if halted := sandboxtest.Documents(t, db, "halted_aggregates"); len(halted) != 0 {
		t.Errorf("%d aggregates are still halted, want none", len(halted))
	}
}
