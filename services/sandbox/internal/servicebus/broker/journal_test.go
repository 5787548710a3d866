package broker

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"changerelay/services/sandbox/internal/journal"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

// reborn stops a broker and starts one from its journal.
func reborn(t *testing.T, b *Broker, stop func(), j *memoryJournal) (*Broker, func()) {
	t.Helper()
	stop()
	again, err := New(Config{})
	must(t, err)
	must(t, j.replay(again.Restore))
	again.Keep(j)
	return again, run(t, again)
}

// full makes a namespace that has something of everything.
func full(t *testing.T, b *Broker) {
	t.Helper()
	label := "x"
	_, err := b.CreateTopic("changes", entity.TopicProperties{EnablePartitioning: true, RequiresDuplicateDetection: true, UserMetadata: "m"})
	must(t, err)
	_, err = b.CreateSubscription("changes", "sub", entity.SubscriptionProperties{RequiresSession: true, LockDuration: lockDuration},
		entity.Rule{Name: "all"}, entity.Rule{Name: "none", Filter: entity.FalseFilter{}},
		entity.Rule{Name: "sql", Filter: entity.SQLFilter{Expression: "a = @int", Parameters: everyRuleValue}},
		entity.Rule{Name: "correlation", Filter: entity.CorrelationFilter{Subject: &label, Properties: map[string]any{"p": 2.5}}})
	must(t, err)
	_, err = b.CreateSubscription("changes", "observer", entity.SubscriptionProperties{})
	must(t, err)
	makeQueue(t, b, "queue", entity.QueueProperties{MaxDeliveryCount: 5, DefaultMessageTimeToLive: 24 * time.Hour})
	makeQueue(t, b, "gone", entity.QueueProperties{})
	send(t, b, "gone", msg("gone", ""))
	must(t, b.DeleteQueue("gone"))
	_, err = b.CreateSubscription("changes", "gone", entity.SubscriptionProperties{})
	must(t, err)
	must(t, b.DeleteSubscription("changes", "gone"))

	sendIDs(t, b, "changes", "a", "a0", "a1", "a2", "a3")
	r := openSession(t, b, sub, "a")
	must(t, r.SetSessionState([]byte("state")))
	ds := receive(t, r, 4)
	must(t, r.Settle(ds[0].LockToken, entity.Complete{}))
	must(t, r.Settle(ds[1].LockToken, entity.Abandon{Properties: everyValue}))
	must(t, r.Settle(ds[2].LockToken, entity.Defer{Properties: map[string]any{"k": "v"}}))
	must(t, r.Settle(ds[3].LockToken, entity.DeadLetter{Reason: "r", Description: "d"}))

	m := &entity.Message{
		MessageID: "m", PartitionKey: "k", Subject: "s", To: "t", ReplyTo: "r", ReplyToSessionID: "rs", CorrelationID: "c",
		ContentType: "ct", TimeToLive: time.Hour, Payload: []byte("payload"),
	}
	send(t, b, "queue", m)
	later := *m
	later.MessageID, later.Properties, later.ScheduledEnqueueTime = "later", everyValue, time.Now().Add(time.Hour)
	_, err = b.Schedule(t.Context(), "changes", []*entity.Message{&later})
	must(t, err)
}

var everyValue = map[string]any{
	"nil": nil, "bool": true, "int8": int8(-1), "int16": int16(-2), "int32": int32(-3), "int64": int64(math.MinInt64),
	"uint8": uint8(1), "uint16": uint16(2), "uint32": uint32(3), "uint64": uint64(math.MaxUint64),
	"float32": float32(1.5), "float64": math.Inf(-1), "string": "ü", "bytes": []byte{0, 1},
	"time": time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), "uuid": uuid.UUID{1, 2, 3},
}

var everyRuleValue = map[string]any{
	"@bool": true, "@byte": int8(-1), "@short": int16(-2), "@int": int32(-3), "@long": int64(-4),
	"@least": int64(math.MinInt32), "@most": int64(math.MaxInt32), "@beyond": int64(math.MaxInt32 + 1), "@below": int64(math.MinInt32 - 1),
	"@float64": 2.5, "@string": "ü", "@time": time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
}

// view is everything that can be seen of a namespace.
func view(t *testing.T, b *Broker) map[string]string {
	t.Helper()
	seen := map[string]string{"queues": text(b.Queues()), "topics": text(b.Topics())}
	subs, err := b.Subscriptions("changes")
	must(t, err)
	seen["subscriptions"] = text(subs)
	for _, s := range subs {
		rules, err := b.Rules("changes", s.Name)
		must(t, err)
		seen["rules of "+s.Name] = text(rules)
	}
	for _, path := range []string{sub, "changes/Subscriptions/observer", "queue"} {
		for _, part := range []string{"", "/$DeadLetterQueue"} {
			ds, err := b.Peek(path+part, 0, 100, nil)
			must(t, err)
			seen[path+part] = text(ds)
		}
	}
	ids, err := b.ListSessions(sub, time.Unix(0, 0), 0, 10)
	must(t, err)
	seen["states"] = text(ids)
	return seen
}

// text writes a value with all it points to, and times as instants.
func text(v any) string {
	var b strings.Builder
	writeValue(&b, reflect.ValueOf(v))
	return b.String()
}

func writeValue(b *strings.Builder, v reflect.Value) {
	if v.IsValid() && v.CanInterface() {
		if at, ok := reflect.TypeAssert[time.Time](v); ok {
			fmt.Fprintf(b, "%d ", at.UnixNano())
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			b.WriteString("nil ")
			return
		}
		writeValue(b, v.Elem())
	case reflect.Struct:
		fmt.Fprintf(b, "\n%s{", v.Type())
		for i := range v.NumField() {
			fmt.Fprintf(b, "%s:", v.Type().Field(i).Name)
			writeValue(b, v.Field(i))
		}
		b.WriteString("}")
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) })
		for _, k := range keys {
			fmt.Fprintf(b, "%s=%s ", k, v.MapIndex(k).Elem().String())
			writeValue(b, v.MapIndex(k))
		}
	case reflect.Slice:
		for i := range v.Len() {
			writeValue(b, v.Index(i))
		}
	default:
		fmt.Fprintf(b, "%v ", v)
	}
}

func TestJournal_ARestoredNamespaceIsTheSame(t *testing.T) {
	for _, compacted := range []bool{false, true} {
		t.Run(fmt.Sprintf("compacted is %t", compacted), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, stop := start(t, Config{})
				j := &memoryJournal{}
				b.Keep(j)
				full(t, b)
				if compacted {
					must(t, b.compact())
				}
				want := view(t, b)
				b, stop = reborn(t, b, stop, j)
				defer func() { stop() }()
				got := view(t, b)
				for part := range want {
					if got[part] != want[part] {
						t.Errorf("%s:\n got %s\nwant %s", part, got[part], want[part])
					}
				}
				_, stop = goesOn(t, b, stop, j)
			})
		})
	}
}

// goesOn checks that a restored namespace goes on where it was.
func goesOn(t *testing.T, b *Broker, stop func(), j *memoryJournal) (*Broker, func()) {
	t.Helper()
	sendIDs(t, b, "changes", "a", "a0") // a duplicate
	r := openSession(t, b, sub, "a")
	state, err := r.SessionState()
	must(t, err)
	if string(state) != "state" {
		t.Errorf("session state: got %q, want state", state)
	}
	wantIDs(t, receive(t, r, 10), "a1")
	before, err := b.Peek("changes/Subscriptions/observer", 0, 100, nil)
	must(t, err)
	sendIDs(t, b, "changes", "a", "a4")
	after, err := b.Peek("changes/Subscriptions/observer", 0, 100, nil)
	must(t, err)
	last, next := before[len(before)-1], after[len(after)-1]
	if len(after) != len(before)+1 || next.SequenceNumber != last.SequenceNumber+1 || next.EnqueuedSequenceNumber != last.EnqueuedSequenceNumber+1 {
		t.Errorf("numbers after %d and %d: got %d and %d, want the next ones", last.SequenceNumber, last.EnqueuedSequenceNumber, next.SequenceNumber, next.EnqueuedSequenceNumber)
	}
	b, stop = reborn(t, b, stop, j)
	time.Sleep(time.Hour) // the scheduled message becomes due, the queue's expires
	synctest.Wait()
	counts := map[string]int64{}
	for _, e := range b.Snapshot().Entities {
		counts[e.Path] = e.Counts.Active
	}
	if want := map[string]int64{"queue": 0, "changes": 0, sub: 2, "changes/Subscriptions/observer": 6}; !reflect.DeepEqual(counts, want) {
		t.Errorf("active after an hour: got %v, want %v", counts, want)
	}
	return b, stop
}

func TestJournal_WhatWasRemovedStaysRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, stop := start(t, Config{})
		j := &memoryJournal{}
		b.Keep(j)
		makeQueue(t, b, "q", entity.QueueProperties{RequiresSession: true, RequiresDuplicateDetection: true})
		sendIDs(t, b, "q", "s", "m0", "m1")
		r := openNext(t, b, "q")
		settleAll(t, r, entity.Complete{}, receive(t, r, 10)...)
		must(t, r.SetSessionState([]byte("x")))
		must(t, r.SetSessionState(nil))
		r.Close()
		must(t, b.compact())
		b, stop = reborn(t, b, stop, j)
		defer func() { stop() }()
		s := b.inlets["q"].outlets[""].store
		if len(s.sessions) != 0 || s.bySeq.Len() != 0 {
			t.Errorf("restored: got %d sessions and %d messages, want none", len(s.sessions), s.bySeq.Len())
		}
		sendIDs(t, b, "q", "s", "m2")
		if d := receive(t, openNext(t, b, "q"), 1)[0]; d.SequenceNumber != 3 {
			t.Errorf("sequence number: got %d, want 3", d.SequenceNumber)
		}
	})
}

// A message without a session is dead-lettered as it arrives, with a number of
// its subscription.
func TestJournal_NumbersOfDeadLettersAreNotGivenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, stop := start(t, Config{})
		j := &memoryJournal{}
		b.Keep(j)
		makeTopic(t, b, entity.TopicProperties{}, entity.SubscriptionProperties{RequiresSession: true})
		send(t, b, "changes", msg("m1", ""))
		b, stop = reborn(t, b, stop, j)
		send(t, b, "changes", msg("m2", ""))
		b, stop = reborn(t, b, stop, j)
		defer func() { stop() }()
		ds, err := b.Peek(sub+"/$DeadLetterQueue", 0, 10, nil)
		must(t, err)
		wantIDs(t, ds, "m1 m2")
		if first, second := ds[0].SequenceNumber, ds[1].SequenceNumber; first != 1 || second != 2 {
			t.Errorf("sequence numbers: got %d and %d, want 1 and 2", first, second)
		}
	})
}

// A message that was sent again after its window is in the journal twice.
func TestJournal_ARepeatIsKnownForAWholeWindowAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, stop := start(t, Config{})
		j := &memoryJournal{}
		b.Keep(j)
		const window = time.Minute
		makeQueue(t, b, "q", entity.QueueProperties{RequiresDuplicateDetection: true, DuplicateDetectionHistoryTimeWindow: window})
		want := func(messages int) {
			t.Helper()
			send(t, b, "q", msg("m", ""))
			ds, err := b.Peek("q", 0, 10, nil)
			must(t, err)
			if len(ds) != messages {
				t.Errorf("messages: got %d, want %d", len(ds), messages)
			}
		}
		want(1)
		time.Sleep(2 * window)
		want(2)
		b, stop = reborn(t, b, stop, j)
		defer func() { stop() }()
		want(2)
		time.Sleep(window - time.Second)
		want(2)
		time.Sleep(time.Second)
		want(3)
	})
}

func TestJournal_TheTimeBetweenTwoRunsIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, stop := start(t, Config{})
		j := &memoryJournal{}
		b.Keep(j)
		const idle = 5 * time.Minute
		makeQueue(t, b, "q", entity.QueueProperties{AutoDeleteOnIdle: idle})
		makeTopic(t, b, entity.TopicProperties{}, entity.SubscriptionProperties{AutoDeleteOnIdle: idle})
		_, err := b.CreateTopic("topic", entity.TopicProperties{AutoDeleteOnIdle: idle})
		must(t, err)
		stop()
		time.Sleep(time.Hour)
		b, stop = reborn(t, b, func() {}, j)
		time.Sleep(4 * time.Minute)
		if got, want := entities(b), "q changes changes/Subscriptions/sub topic"; got != want {
			t.Errorf("4 minutes after the restart: got %q, want %q", got, want)
		}
		time.Sleep(2 * time.Minute)
		if got, want := entities(b), "changes"; got != want {
			t.Errorf("6 minutes after the restart: got %q, want %q", got, want)
		}
		b, stop = reborn(t, b, stop, j)
		defer stop()
		if got, want := entities(b), "changes"; got != want {
			t.Errorf("after another restart: got %q, want %q", got, want)
		}
	})
}

func entities(b *Broker) string {
	var paths []string
	for _, e := range b.Snapshot().Entities {
		paths = append(paths, e.Path)
	}
	return strings.Join(paths, " ")
}

func TestJournal_ABadRecordIsAnError(t *testing.T) {
	t.Parallel()
	w := &encoder{}
	w.begin(opRemove)
	w.Uint(7)
	w.Int(1)
	for name, record := range map[string][]byte{
		"an unknown operation":    {255},
		"an operation cut short":  {byte(opQueue), 5, 'q'},
		"a message that is gone":  w.Buf,
		"a length beyond the end": {byte(opDropInlet), 200, 1},
	} {
		b, err := New(Config{})
		must(t, err)
		if err := b.Restore(record); err == nil {
			t.Errorf("Restore of %s: got no error", name)
		}
	}
}

func FuzzRestore(f *testing.F) {
	b, err := New(Config{})
	if err != nil {
		f.Fatal(err)
	}
	j := &memoryJournal{}
	b.Keep(j)
	if _, err := b.CreateTopic("changes", entity.TopicProperties{RequiresDuplicateDetection: true}); err != nil {
		f.Fatal(err)
	}
	if _, err := b.CreateSubscription("changes", "sub", entity.SubscriptionProperties{RequiresSession: true}); err != nil {
		f.Fatal(err)
	}
	if err := b.Send(f.Context(), "changes", []*entity.Message{msg("m", "s"), msg("n", "")}); err != nil {
		f.Fatal(err)
	}
	var all []byte
	for _, r := range j.records {
		f.Add(r)
		all = append(all, r...)
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, record []byte) {
		b, err := New(Config{})
		must(t, err)
		if err := b.Restore(record); err == nil {
			checkBooks(t, b)
		}
	})
}

// Acknowledged work is in the files at every moment, as a killed process
// leaves them.
func TestJournal_AKillLosesNothingThatWasAcknowledged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, stop, j := open(t, dir, 64<<10) // compacts often
	_, err := b.CreateQueue("q", entity.QueueProperties{RequiresSession: true})
	must(t, err)
	const senders, each, cuts = 4, 250, 5
	var acked sync.Map // id → true once sent, false once completed
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			session := fmt.Sprint("s", s)
			r := openSession(t, b, "q", session)
			for i := range each {
				id := fmt.Sprint(session, "-", i)
				if err := b.Send(t.Context(), "q", []*entity.Message{msg(id, session)}); err != nil {
					t.Error(err)
					return
				}
				acked.Store(id, true)
				if i%2 == 0 {
					continue
				}
				ds, err := r.Receive(t.Context(), 1)
				if err != nil {
					t.Error(err)
					return
				}
				acked.Delete(ds[0].MessageID) // neither is sure until the answer
				if err := r.Settle(ds[0].LockToken, entity.Complete{}); err != nil {
					t.Error(err)
					return
				}
				acked.Store(ds[0].MessageID, false)
			}
		})
	}
	for range cuts {
		checkKilled(t, dir, &acked)
	}
	wg.Wait()
	checkKilled(t, dir, &acked)
	stop()
	must(t, j.Close())
	if snapshots, err := filepath.Glob(filepath.Join(dir, "snapshot-*")); err != nil || len(snapshots) != 1 {
		t.Errorf("snapshots: got %q, %v, want one", snapshots, err)
	}
}

// open starts a broker on a directory.
func open(t *testing.T, dir string, floor int64) (*Broker, func(), *journal.Journal) {
	t.Helper()
	b, err := New(Config{})
	must(t, err)
	b.log.floor, b.log.limit = floor, floor
	j, _, err := journal.Open(dir, b.Restore)
	must(t, err)
	b.Keep(j)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	return b, func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: got error %v, want none", err)
		}
	}, j
}

// checkKilled copies the files as they are and looks at what a broker makes of
// them.
func checkKilled(t *testing.T, dir string, acked *sync.Map) {
	t.Helper()
	known := map[string]bool{}
	acked.Range(func(id, present any) bool {
		known[id.(string)] = present.(bool)
		return true
	})
	copied, ok := snapshotOf(t, dir)
	if !ok {
		return
	}
	b, err := New(Config{})
	must(t, err)
	j, _, err := journal.Open(copied, b.Restore)
	must(t, err)
	defer j.Close()
	there := map[string]bool{}
	ds, err := b.Peek("q", 0, math.MaxInt, nil)
	must(t, err)
	for _, d := range ds {
		there[d.MessageID] = true
	}
	for id, present := range known {
		if !present && there[id] {
			t.Errorf("message %s: completed and there again", id)
		}
		if present && !there[id] {
			if now, ok := acked.Load(id); ok && now.(bool) {
				t.Errorf("message %s: acknowledged and lost", id)
			}
		}
	}
}

// snapshotOf copies a directory in which files come and go. It is false when
// one went while it was copied.
func snapshotOf(t *testing.T, dir string) (string, bool) {
	t.Helper()
	to := t.TempDir()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if os.IsNotExist(err) {
			return "", false
		}
		must(t, err)
		if strings.HasSuffix(e.Name(), ".tmp") {
			continue
		}
		must(t, os.WriteFile(filepath.Join(to, e.Name()), content, 0o600))
	}
	return to, true
}
