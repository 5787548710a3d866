package leasetest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"changerelay/services/publisher/internal/lease"
)

// Holders of the suite: two tenures of one process, another process of the same
// instance, and another instance.
var (
	first   = lease.Holder{ID: "a", Incarnation: "1", Tenure: 1}
	again   = lease.Holder{ID: "a", Incarnation: "1", Tenure: 2}
	reborn  = lease.Holder{ID: "a", Incarnation: "2", Tenure: 1}
	another = lease.Holder{ID: "b", Incarnation: "1", Tenure: 1}
)

const (
	long  = time.Hour
	short = 50 * time.Millisecond
)

// Conform runs the suite. open returns a store of a record that does not exist.
func Conform(t *testing.T, open func(t *testing.T) lease.Store) {
	t.Helper()
	for name, check := range map[string]func(*testing.T, lease.Store){
		"a record that never was reads as free":                   neverWas,
		"a free lease is taken":                                   takeFree,
		"what is led is kept":                                     keepSubject,
		"a live lease of another stays as it is":                  takeLive,
		"a lease that is over is taken":                           takeOver,
		"taking one's own lease again begins another tenure":      takeOwn,
		"a take that comes late changes nothing":                  takeLate,
		"a live lease of one's own id is taken only on request":   takeOwnID,
		"a live lease of another id is not taken even on request": takeOtherID,
		"of many that take a free lease one gets it":              takeTogether,
		"renewing extends":                                        renewHeld,
		"renewing another's lease changes nothing":                renewOther,
		"renewing a record that is not there creates none":        renewMissing,
		"a released lease is free":                                releaseHeld,
		"releasing another's lease changes nothing":               releaseOther,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, open(t))
		})
	}
}

// ConformWatcher checks that a watcher tells of every change.
func ConformWatcher(t *testing.T, store interface {
	lease.Store
	lease.Watcher
},
) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var calls atomic.Int64
	var watching sync.WaitGroup
	watching.Go(func() {
		if err := store.Watch(ctx, func() { calls.Add(1) }); ctx.Err() == nil {
			t.Errorf("Watch returned %v before its context ended", err)
		}
	})
	defer watching.Wait()
	defer cancel()
	awaitMore := func(what string, before int64) {
		t.Helper()
		eventually(t, what, func() bool { return calls.Load() > before })
	}
	awaitMore("the watch to begin", 0)
	before := calls.Load()
	take(t, store, first, long)
	awaitMore("word of the take", before)
	before = calls.Load()
	if released, err := store.Release(t.Context(), first); err != nil || !released {
		t.Fatalf("Release = %v, %v, want true", released, err)
	}
	awaitMore("word of the release", before)
}

func neverWas(t *testing.T, s lease.Store) {
	wantFree(t, s)
}

func keepSubject(t *testing.T, s lease.Store) {
	if _, err := s.Take(t.Context(), lease.Claim{Holder: first, TTL: long, Subject: "$orders"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Renew(t.Context(), first, long); err != nil {
		t.Fatal(err)
	}
	if record, err := s.Read(t.Context()); err != nil || record.Subject != "$orders" {
		t.Errorf("Read = %+v, %v, want the subject kept", record, err)
	}
}

func takeFree(t *testing.T, s lease.Store) {
	record := take(t, s, first, long)
	if record.Holder != first {
		t.Fatalf("taken by %v, want %v", record.Holder, first)
	}
	record = read(t, s)
	if record.Holder != first || !record.Live() || record.Remaining > long {
		t.Errorf("record = %+v, want live, held by %v, at most %s left", record, first, long)
	}
	if got := record.ExpiresAt.Sub(record.HeartbeatAt); got != long {
		t.Errorf("expires %s after the heartbeat, want %s", got, long)
	}
}

func takeLive(t *testing.T, s lease.Store) {
	take(t, s, first, long)
	before := read(t, s)
	if got := take(t, s, another, long); got.Holder != first {
		t.Errorf("the record names %v after a vain take, want %v", got.Holder, first)
	}
	wantSame(t, s, before)
}

func takeOver(t *testing.T, s lease.Store) {
	take(t, s, first, short)
	eventually(t, "the lease to be over", func() bool { return !read(t, s).Live() })
	take(t, s, another, long)
	wantHeld(t, s, another)
}

func takeOwn(t *testing.T, s lease.Store) {
	take(t, s, first, short)
	take(t, s, again, long)
	wantHeld(t, s, again)
	if got := read(t, s).Remaining; got <= short {
		t.Errorf("%s left after taking again, want about %s", got, long)
	}
}

func takeLate(t *testing.T, s lease.Store) {
	take(t, s, again, long)
	before := read(t, s)
	for _, holder := range []lease.Holder{first, again} {
		take(t, s, holder, 2*long)
	}
	wantSame(t, s, before)
}

func takeOwnID(t *testing.T, s lease.Store) {
	take(t, s, first, long)
	take(t, s, reborn, long)
	wantHeld(t, s, first)
	if _, err := s.Take(t.Context(), lease.Claim{Holder: reborn, TTL: long, OverOwnID: true}); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, s, reborn)
}

func takeOtherID(t *testing.T, s lease.Store) {
	take(t, s, first, long)
	if _, err := s.Take(t.Context(), lease.Claim{Holder: another, TTL: long, OverOwnID: true}); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, s, first)
}

func takeTogether(t *testing.T, s lease.Store) {
	const contenders = 8
	var won atomic.Int64
	var group sync.WaitGroup
	for i := range contenders {
		group.Go(func() {
			holder := lease.Holder{ID: string(rune('a' + i)), Incarnation: "1", Tenure: 1}
			record, err := s.Take(t.Context(), lease.Claim{Holder: holder, TTL: long})
			if err != nil {
				t.Errorf("take as %v: %v", holder, err)
			}
			if record.Holder == holder {
				won.Add(1)
			}
		})
	}
	group.Wait()
	if won.Load() != 1 {
		t.Errorf("%d of %d contenders got the lease, want 1", won.Load(), contenders)
	}
}

func renewHeld(t *testing.T, s lease.Store) {
	take(t, s, first, short)
	record, err := s.Renew(t.Context(), first, long)
	if err != nil || record.Holder != first || !record.Live() {
		t.Fatalf("Renew = %+v, %v, want a live record of %v", record, err, first)
	}
	if got := read(t, s).Remaining; got <= short {
		t.Errorf("%s left after renewing, want about %s", got, long)
	}
}

func renewOther(t *testing.T, s lease.Store) {
	take(t, s, first, long)
	before := read(t, s)
	for _, holder := range []lease.Holder{again, reborn, another} {
		if record, err := s.Renew(t.Context(), holder, 2*long); err != nil || record != (lease.Record{}) {
			t.Errorf("Renew as %v = %+v, %v, want the zero record", holder, record, err)
		}
	}
	wantSame(t, s, before)
}

func renewMissing(t *testing.T, s lease.Store) {
	if record, err := s.Renew(t.Context(), first, long); err != nil || record != (lease.Record{}) {
		t.Errorf("Renew = %+v, %v, want the zero record", record, err)
	}
	wantFree(t, s)
}

func releaseHeld(t *testing.T, s lease.Store) {
	take(t, s, first, long)
	if released, err := s.Release(t.Context(), first); err != nil || !released {
		t.Fatalf("Release = %v, %v, want true", released, err)
	}
	wantFree(t, s)
	if record, err := s.Renew(t.Context(), first, long); err != nil || record != (lease.Record{}) {
		t.Errorf("Renew after the release = %+v, %v, want the zero record", record, err)
	}
	take(t, s, another, long)
	wantHeld(t, s, another)
}

func releaseOther(t *testing.T, s lease.Store) {
	take(t, s, first, long)
	before := read(t, s)
	for _, holder := range []lease.Holder{again, reborn, another} {
		if released, err := s.Release(t.Context(), holder); err != nil || released {
			t.Errorf("Release as %v = %v, %v, want false", holder, released, err)
		}
	}
	wantSame(t, s, before)
}

func take(t *testing.T, s lease.Store, holder lease.Holder, ttl time.Duration) lease.Record {
	t.Helper()
	record, err := s.Take(t.Context(), lease.Claim{Holder: holder, TTL: ttl})
	if err != nil {
		t.Fatalf("take as %v: %v", holder, err)
	}
	return record
}

func read(t *testing.T, s lease.Store) lease.Record {
	t.Helper()
	record, err := s.Read(t.Context())
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return record
}

func wantFree(t *testing.T, s lease.Store) {
	t.Helper()
	if record := read(t, s); record.Live() || record.Holder != (lease.Holder{}) {
		t.Errorf("record = %+v, want a free lease", record)
	}
}

func wantHeld(t *testing.T, s lease.Store, holder lease.Holder) {
	t.Helper()
	if record := read(t, s); record.Holder != holder || !record.Live() {
		t.Errorf("record = %+v, want live, held by %v", record, holder)
	}
}

func wantSame(t *testing.T, s lease.Store, before lease.Record) {
	t.Helper()
	after := read(t, s)
	if after.Holder != before.Holder || !after.ExpiresAt.Equal(before.ExpiresAt) || !after.HeartbeatAt.Equal(before.HeartbeatAt) {
		t.Errorf("record = %+v, want it unchanged: %+v", after, before)
	}
}

// eventually waits for what until the test's end.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx := t.Context()
	if deadline, set := t.Deadline(); set {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-time.Second))
		defer cancel()
	}
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
