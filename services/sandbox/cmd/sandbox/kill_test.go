package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// kills is how often the sandbox is killed.
const kills = 50

// TestKill_AcknowledgedWritesOutliveFiftyKills loads both sides of a sandbox and
// kills it at a random moment, again and again, on the same directory. What was
// acknowledged must be there after each kill. KILL_SEED repeats a run's choices,
// as far as the machine's timing lets it.
func TestKill_AcknowledgedWritesOutliveFiftyKills(t *testing.T) {
	t.Parallel()
	seed := seedOf(t)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	documents, messages := newDocuments(), newMessages()
	for round := range kills {
		p := startProcess(t, "--data", dir)
		client := p.client(t)
		documents.expect(t, client)
		l := &load{round: round, seed: seed, enough: int64(1 + random.IntN(250)), reached: make(chan struct{})}
		l.run(t, p, client, documents, messages)
		forget(client)
		if random.IntN(3) == 0 {
			tear(t, dir, random)
		}
		if t.Failed() {
			t.Fatalf("after kill %d", round+1)
		}
	}
	p := startProcess(t, "--data", dir)
	client := p.client(t)
	documents.expect(t, client)
	documents.expectEvents(t, client)
	messages.expect(t, p)
	documents.report(t)
	messages.report(t)
}

func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv("KILL_SEED"); given != "" {
		var err error
		seed, err = strconv.ParseUint(given, 10, 64)
		must(t, err)
	}
	t.Logf("KILL_SEED=%d", seed)
	return seed
}

// load is what happens in one life of the sandbox.
type load struct {
	round int
	seed  uint64
	// enough is how many acknowledgements make the sandbox be killed.
	enough  int64
	acked   atomic.Int64
	reached chan struct{}
}

// run keeps workers going until the sandbox has been killed under them.
func (l *load) run(t *testing.T, p *process, client *mongo.Client, documents *documents, messages *messages) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	bus := p.bus(t)
	if documents.token == nil {
		documents.watch(t, client)
	}
	var workers sync.WaitGroup
	for w := range 3 {
		name := fmt.Sprintf("round %02d worker %d", l.round, w)
		workers.Go(func() { documents.work(ctx, client, l, name, l.random(w)) })
	}
	for w := range 2 {
		name := fmt.Sprintf("round %02d sender %d", l.round, w)
		workers.Go(func() { messages.send(ctx, bus, l, name) })
	}
	workers.Go(func() { messages.complete(ctx, bus, l) })
	select {
	case <-l.reached:
	case <-time.NewTimer(waitTimeout).C:
		t.Errorf("waited in vain for %d acknowledgements, got %d", l.enough, l.acked.Load())
	}
	must(t, p.cmd.Process.Kill())
	_ = p.cmd.Wait() // it was killed
	cancel()
	workers.Wait()
	_ = bus.Close(ctx) // over, as the sandbox is
}

// forget closes a client of a sandbox that is dead.
func forget(client *mongo.Client) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_ = client.Disconnect(over)
}

// waitTimeout ends only what hangs.
const waitTimeout = 90 * time.Second

func (l *load) random(worker int) *rand.Rand {
	return rand.New(rand.NewPCG(l.seed, uint64(1+l.round*10+worker)))
}

// acknowledged counts.
func (l *load) acknowledged() {
	if l.acked.Add(1) == l.enough {
		close(l.reached)
	}
}

// tear puts a part of a record behind the journals, as a crash of the machine
// may leave it.
func tear(t *testing.T, dir string, random *rand.Rand) {
	t.Helper()
	for _, side := range []string{"mongodb", "servicebus"} {
		segments, err := filepath.Glob(filepath.Join(dir, side, "segment-*"))
		must(t, err)
		if len(segments) == 0 {
			t.Fatalf("got no segment of %s in %s", side, dir)
		}
		file, err := os.OpenFile(segments[len(segments)-1], os.O_WRONLY|os.O_APPEND, 0)
		must(t, err)
		part := frame(random)
		part = part[:1+random.IntN(len(part)-1)]
		_, err = file.Write(part)
		must(t, err)
		must(t, file.Close())
	}
}

// frame is a record as the journal writes it: length, checksums, content.
func frame(random *rand.Rand) []byte {
	table := crc32.MakeTable(crc32.Castagnoli)
	record := make([]byte, 200)
	for i := range record {
		record[i] = byte(random.Uint32())
	}
	length := binary.LittleEndian.AppendUint32(nil, uint32(len(record)))
	head := binary.LittleEndian.AppendUint32(length, crc32.Checksum(length, table))
	return append(binary.LittleEndian.AppendUint32(head, crc32.Checksum(record, table)), record...)
}
