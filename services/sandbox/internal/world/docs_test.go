package world

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the table of worlds into docs/sandbox.md")

// sources says for each figure what it is and where it comes from. Vendor is Microsoft's documentation of the service (messaging
// throttling, quotas, performance), SDKs the issues of its client libraries.
var sources = []struct{ field, what, source string }{
	{"mongodb.round_trip", "round trip", "cross-zone 1.55 ms measured by simonpainter.com; 70 ms is Microsoft's own on-premises example"},
	{"mongodb.jitter", "jitter each way, at most", "guess"},
	{"mongodb.bytes_per_second", "bandwidth of a connection, each way", "guess"},
	{"mongodb.majority", "majority write", "guess: round trip of the members and two flushes"},
	{"mongodb.journal_interval", "change event of a write that nobody waits for", "`storage.journal.commitIntervalMs`; measured as 106 ms (meteor PR 14444)"},
	{"mongodb.lag", "lag of the member that a majority needs", "none of the named; flow control holds it at 10 s or less (`flowControlTargetLagSeconds`)"},
	{"mongodb.resume_per_entry", "resume, for each oplog entry", "measured as 2.1–2.3 µs (PeerDB PR 4213); 20 µs was seen once on a busy server (monstache 721)"},
	{"mongodb.max_connections", "connections", "Atlas M10 and M30"},
	{"service_bus.round_trip", "round trip", "as above; emulator: guess"},
	{"service_bus.jitter", "jitter each way, at most", "guess"},
	{"service_bus.bytes_per_second", "bandwidth of a connection, each way", "4 MB/s is what the vendor gives a messaging unit; otherwise a guess"},
	{"service_bus.send.p50", "send, half within", "premium: measured when idle (jessebenson/azure-performance), less the round trip; otherwise a guess"},
	{"service_bus.send.p99", "send, 99 of 100 within", "premium: as above; standard: guess, a heavier tail"},
	{"service_bus.settle.p50", "settlement, half within", "azure-service-bus 749: fast half 20 ms; datacenter, emulator: guess"},
	{"service_bus.settle.p99", "settlement, 99 of 100 within", "azure-service-bus 749: slow half 100 ms; datacenter, emulator: guess"},
	{"service_bus.accept.p50", "accepting a session, half within", "guess"},
	{"service_bus.accept.p99", "accepting a session, 99 of 100 within", "guess"},
	{"service_bus.credits_per_second", "credits in a second", "vendor, throttling"},
	{"service_bus.costs.send", "credits of a message sent", "vendor, throttling"},
	{"service_bus.costs.receive", "credits of a message received", "vendor, throttling; for each message: azure-sdk-for-java 37594"},
	{"service_bus.costs.peek", "credits of a message peeked", "vendor, throttling"},
	{"service_bus.costs.settle", "credits of a settlement", "not in the vendor's table"},
	{"service_bus.costs.management", "credits of a management request", "vendor, throttling"},
	{"service_bus.costs.filter", "credits of a rule that a message is held against", "vendor, throttling"},
	{"service_bus.messages_per_second", "messages in a second, each way", "the vendor's sample at 1 messaging unit: 2,223 for a topic with one subscription"},
	{"service_bus.throughput_bytes_per_second", "bytes in a second, each way", "vendor, performance: about 4 MB/s a messaging unit"},
	{"service_bus.queue_time", "longest wait before it refuses", "mean send of the same sample when saturated: 448 ms"},
	{"service_bus.busy_wait", "wait that server-busy advises", "SDKs: 50009 says 2 s, 50002 says 4 s (azure-sdk-for-python 19376, 20308); that Premium says 50002 is a guess"},
	{"service_bus.max_message_bytes", "message", "vendor, quotas; datacenter: guess"},
	{"service_bus.max_batch_bytes", "batch", "azure-sdk-for-net 25381"},
	{"service_bus.max_batch_messages", "messages of a batch", "azure-sdk-for-python 14903, azure-service-bus 397; emulator: guess"},
	{"service_bus.max_entities", "queues and topics", "vendor, quotas; emulator: its overview"},
	{"service_bus.max_subscriptions", "subscriptions of a topic", "vendor, quotas; emulator: its overview"},
	{"service_bus.max_connections", "connections", "vendor, quotas; emulator: its overview"},
	{"service_bus.max_session_links", "links of an AMQP session", "handle-max 255 in the service's own begin (azure-sdk-for-python 38629)"},
	{"service_bus.link_idle", "link without traffic", "vendor, AMQP troubleshooting"},
	{"service_bus.connection_idle", "connection without links", "vendor, AMQP troubleshooting"},
	{"service_bus.accept_wait", "wait for the next session", "azure-sdk-for-net 30962"},
}

const (
	begin = "<!-- worlds: written by go test ./internal/world -run Docs -update -->\n"
	end   = "<!-- /worlds -->\n"
)

func TestDocs_EveryFigureOfEveryWorldIsInTheTable(t *testing.T) {
	t.Parallel()
	page := filepath.Join("..", "..", "..", "..", "docs", "sandbox.md")
	text, err := os.ReadFile(page)
	must(t, err)
	before, rest, ok := bytes.Cut(text, []byte(begin))
	got, after, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		t.Fatalf("docs/sandbox.md lacks %q or %q", begin, end)
	}
	want := table(t)
	if *update {
		must(t, os.WriteFile(page, bytes.Join([][]byte{before, []byte(begin + want + end), after}, nil), 0o644))
		return
	}
	if string(got) != want {
		t.Errorf("the table of worlds in docs/sandbox.md is not that of the code: run go test ./internal/world -run Docs -update")
	}
}

func table(t *testing.T) string {
	var b strings.Builder
	names := Names()
	fmt.Fprintf(&b, "| figure | %s | source |\n| --- |%s --- |\n", strings.Join(names, " | "), strings.Repeat(" --- |", len(names)))
	known := map[string]bool{"name": true}
	for _, s := range sources {
		known[s.field] = true
		fmt.Fprintf(&b, "| `%s`: %s |", s.field, s.what)
		for _, name := range names {
			w, err := Named(name)
			must(t, err)
			fmt.Fprintf(&b, " %s |", show(w.Fields()[s.field]))
		}
		fmt.Fprintf(&b, " %s |\n", s.source)
	}
	for field := range (World{}).Fields() {
		if !known[field] {
			t.Errorf("got no source for %s", field)
		}
	}
	return b.String()
}

// show writes a figure, a dash for none.
func show(v any) string {
	switch v := v.(type) {
	case Duration:
		if v != 0 {
			return time.Duration(v).String()
		}
	case int64:
		if v != 0 {
			return fmt.Sprint(v)
		}
	}
	return "–"
}

func TestDocs_NamesAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		w, err := Named(name)
		must(t, err)
		if err := w.check(); err != nil || w.Name != name {
			t.Errorf("%s: got name %q and error %v", name, w.Name, err)
		}
	}
	if _, err := Named("moon"); err == nil || !slices.ContainsFunc(Names(), func(n string) bool { return strings.Contains(err.Error(), n) }) {
		t.Errorf("got %v, want an error that lists the names", err)
	}
}
