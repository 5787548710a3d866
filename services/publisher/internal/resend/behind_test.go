package resend_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/resend"
)

// release has the stream go on.
func (w *world) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = -1
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

// A chunk whose events the stream has not handed on waits for them, says so, and goes on
// by itself. Of a transaction, whose events have one time, the last one counts.
func TestBehind_AChunkWaitsForTheStream(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ before, shown int }{
		"none of a transaction is shown":     {1, 1},
		"some of it is":                      {1, 2},
		"some of it was when the term began": {2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.log = []event{{"a", 1, 1}, {"a", 2, 2}, {"a", 3, 2}}
				w.now, w.noted, w.streams, w.held, w.looking = 2, 2, tt.before, tt.shown, true
				shown := append(past(w, tt.before), w.run(t, 1, never)...)
				if p := w.part(); len(shown) != tt.shown || p.Awaits.Increment != 3 || p.Read != 0 {
					t.Fatalf("handed on is %v, and the part %+v, want nothing resent, and what it waits for", shown, p)
				}
				w.commit("b")
				w.release()
				all := w.run(t, 2, never)
				if ahead := overtaken(slices.Concat(shown, all)); ahead != "" {
					t.Errorf("%s is resent before it came, of %v", ahead, all)
				}
				if p := w.part(); !p.Done || !p.Awaits.IsZero() || p.Sent < 4 {
					t.Errorf("the part is %+v, want it done", p)
				}
			})
		})
	}
}

// quiet is whether the log has nothing behind a token that was committed before a time.
func (w *world) quiet(_ context.Context, token []byte, before checkpoint.ClusterTime) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	shown := 0 // of the log, up to the token
	for i, e := range w.log {
		if noted, err := strconv.Atoi(string(token)); err == nil && e.At <= uint32(noted) || string(token) == string(e.change().Token) {
			shown = i + 1
		}
	}
	return !slices.ContainsFunc(w.log[shown:], func(e event) bool { return e.At < before.Increment }), nil
}

// A stream that has nothing to hand on says so rarely. It is asked for: a resend does not
// wait for it with each chunk.
func TestBehind_AStreamThatHasNothingHoldsUpNoChunk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.log = []event{{"a", 1, 1}, {"a", 2, 2}, {"b", 1, 3}, {"c", 1, 4}}
		w.now, w.streams, w.held, w.looking = 9, 4, 4, true // others were written since
		w.run(t, 1, never)
		if p := w.part(); !p.Done || p.Sent != 4 || !p.Awaits.IsZero() {
			t.Errorf("the part is %+v, want it done", p)
		}
	})
}

// past is what streams have handed on before.
func past(w *world, shown int) []handed {
	var all []handed
	for _, e := range w.log[:shown] {
		all = append(all, handed{event: e})
	}
	return all
}

// One that is cancelled, paused, taken over or followed by another while it waits sends
// nothing any more.
func TestBehind_OneThatIsNotToGoOnWhileItWaitsSendsNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		decide func(*resend.Record)
		sends  string
	}{
		"cancelled":       {func(r *resend.Record) { r.State = resend.Cancelled }, ""},
		"of another term": {func(r *resend.Record) { r.Parts[0].Term = 9 }, ""},
		"another begins":  {func(r *resend.Record) { r.ID = "s" }, "s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.commit("a")
				w.held = 0
				go func() {
					time.Sleep(4 * time.Second) //nolint:forbidigo // in a bubble
					w.mu.Lock()
					tt.decide(&w.record)
					w.mu.Unlock()
					time.Sleep(2 * time.Second) //nolint:forbidigo // in a bubble
					w.release()
				}()
				sends := ""
				for _, h := range w.run(t, 1, never) {
					sends += h.of
				}
				if sends != tt.sends {
					t.Errorf("sent are chunks of %q, want %q", sends, tt.sends)
				}
			})
		})
	}
}

// A stream that is far behind has nothing to be kept that the chunk has.
func TestBehind_WhatAChunkHasIsNotKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.log = slices.Repeat([]event{{"other", 1, 1}}, 20_001)
		for i := range w.log {
			w.log[i].At = uint32(i + 1)
		}
		w.now = uint32(len(w.log))
		w.commit("a")
		w.chunk = 30_000
		reads := 0
		w.reading = func() { reads++ }
		w.run(t, 1, never)
		if p := w.part(); !p.Done || reads > 4 {
			t.Errorf("the part is %+v after %d halves of chunks, want it read once", p, reads)
		}
	})
}
