package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
)

// crashNotes keeps notes for a row of processes, each the successor of one that died.
type crashNotes struct {
	mu      sync.Mutex
	process int                               // guarded by mu
	notes   map[string]map[int]delivery.Death // guarded by mu: by aggregate and process
}

func newCrashNotes() *crashNotes { return &crashNotes{notes: map[string]map[int]delivery.Death{}} }

func (c *crashNotes) CrashedLately() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process > 0
}

func (c *crashNotes) Deaths(_ context.Context, aggregate string) ([]delivery.Death, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var deaths []delivery.Death
	for process, death := range c.notes[aggregate] {
		if process < c.process && len(death.Messages) > 0 {
			deaths = append(deaths, death)
		}
	}
	return deaths, nil
}

func (c *crashNotes) Note(_ context.Context, aggregate string, messages []string, alone bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.notes[aggregate] == nil {
		c.notes[aggregate] = map[int]delivery.Death{}
	}
	c.notes[aggregate][c.process] = delivery.Death{Messages: messages, Alone: alone}
	return nil
}

func (c *crashNotes) Clear(_ context.Context, aggregate string, done []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for process, death := range c.notes[aggregate] {
		death.Messages = slices.DeleteFunc(slices.Clone(death.Messages), func(id string) bool { return slices.Contains(done, id) })
		c.notes[aggregate][process] = death
	}
	delete(c.notes[aggregate], c.process)
	return nil
}

// deadly kills the process at an event.
type deadly struct {
	projection.Projections
	id string
}

func (d deadly) Decide(c *projection.Change) ([]projection.Write, error) {
	if c.ID == d.id {
		panic("the process dies")
	}
	return d.Projections.Decide(c)
}

// A message that kills its process comes again as if it were new: the broker
// counts nothing. It is found within a few deaths wherever it stands in its
// batch, and parked; no other is with it but what follows it.
func TestGuard_AMessageThatKillsItsProcessIsParkedWhereverItStands(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		batch, place int64
		limit        int
	}{{1, 1, 3}, {2, 1, 3}, {2, 2, 3}, {3, 2, 3}, {3, 3, 1}, {100, 1, 3}, {100, 2, 3}, {100, 50, 3}, {100, 67, 1}, {100, 100, 3}} {
		t.Run(fmt.Sprintf("at %d of %d with a limit of %d", tt.place, tt.batch, tt.limit), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, c := readmodeltest.NewFake(), newCrashNotes()
				decider := deadly{parse(t, counting), fmt.Sprintf("b-%d", tt.place)}
				var versions, parked []int64
				for n := range tt.batch {
					versions = append(versions, n+1)
				}
				parked = versions[tt.place-1:]
				// life applies all messages until the process dies, and tells whether it did.
				life := func() (died bool) {
					defer func() { died = recover() != nil }()
					h := newHandler(decider, store, withCrashNotes(c, tt.limit))
					for _, aggregate := range []string{"a", "b", "c"} {
						messages := happened(t, aggregate, versions...)
						verdicts, err := h.Hold(aggregate).Apply(t.Context(), messages)
						if err != nil || len(verdicts) != len(messages) {
							t.Errorf("%s: got %d verdicts and %v, want %d", aggregate, len(verdicts), err, len(messages))
						}
					}
					return false
				}
				deaths := 0
				for life() {
					if deaths++; deaths > 20 {
						t.Fatal("the message is never parked")
					}
					c.mu.Lock()
					c.process++
					c.mu.Unlock()
				}
				// The first death makes the others take notes, and counts for nothing.
				if most := 1 + max(tt.limit, 2); deaths > most {
					t.Errorf("deaths: got %d, want no more than %d", deaths, most)
				}
				f := fixture{store: store}
				if got := f.parked(t, "b"); !slices.Equal(got, parked) {
					t.Errorf("parked of b: got %v, want %v", got, parked)
				}
				for aggregate, applied := range map[string]int64{"a": tt.batch, "b": tt.place - 1, "c": tt.batch} {
					if got := f.fields(t, "totals", aggregate); got != sumOf(applied) {
						t.Errorf("%s: got %s, want %s", aggregate, got, sumOf(applied))
					}
				}
			})
		})
	}
}

// sumOf is the totals document after n events.
func sumOf(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(`{"sum":%d}`, n*(n+1)/2)
}

// slow blocks while it decides, and knows how many do so at once.
type slow struct {
	projection.Projections
	mu            sync.Mutex
	now, together int
}

func (s *slow) Decide(c *projection.Change) ([]projection.Write, error) {
	s.mu.Lock()
	s.now++
	s.together = max(s.together, s.now)
	s.mu.Unlock()
	time.Sleep(time.Second)
	s.mu.Lock()
	s.now--
	s.mu.Unlock()
	return s.Projections.Decide(c)
}

// What could not be stored is as suspect as before, and what is noted of it stays.
func TestGuard_AFailureThatPassesClearsNobody(t *testing.T) {
	t.Parallel()
	store, c := readmodeltest.NewFake(), newCrashNotes()
	if err := c.Note(t.Context(), "a", []string{"a-1", "a-2"}, false); err != nil {
		t.Fatal(err)
	}
	c.process = 1
	store.Fail = func(operation string) error {
		if operation == "write" {
			return errDown
		}
		return nil
	}
	h := newHandler(parse(t, counting), store, withCrashNotes(c, 3))
	if verdicts, err := h.Hold("a").Apply(t.Context(), happened(t, "a", 1, 2)); !errors.Is(err, errDown) || len(verdicts) != 0 {
		t.Fatalf("got %v and %v, want the failure", verdicts, err)
	}
	if got, err := c.Deaths(t.Context(), "a"); err != nil || len(got) != 1 || !slices.Equal(got[0].Messages, []string{"a-1", "a-2"}) {
		t.Errorf("deaths: got %v and %v, want both messages still", got, err)
	}
}

// Processes that are killed for something else have all that they are trying in hand. That
// blames none of it, nor what is left of a batch once the others of it are dealt with; and
// one process that tried a message alone may have been killed for something else as well.
func TestGuard_ProcessesKilledForSomethingElseBlameNoMessage(t *testing.T) {
	t.Parallel()
	both, second, first := delivery.Death{Messages: []string{"a-1", "a-2"}}, delivery.Death{Messages: []string{"a-2"}}, delivery.Death{Messages: []string{"a-1"}}
	alone := delivery.Death{Messages: []string{"a-1"}, Alone: true}
	for name, tt := range map[string]struct {
		deaths []delivery.Death
		parked int
	}{
		"in a batch":                     {[]delivery.Death{both, both, both}, 0},
		"the last of a session":          {[]delivery.Death{second, second, second}, 0},
		"the only one of its session":    {[]delivery.Death{first, first, first}, 0},
		"once alone":                     {[]delivery.Death{both, both, alone}, 0},
		"alone, and in too few":          {[]delivery.Death{alone, alone}, 0},
		"again and again, alone":         {[]delivery.Death{both, alone, alone}, 2},
		"alone each time that was noted": {[]delivery.Death{alone, alone, alone}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, c := readmodeltest.NewFake(), newCrashNotes()
			for _, death := range tt.deaths {
				if err := c.Note(t.Context(), "a", death.Messages, death.Alone); err != nil {
					t.Fatal(err)
				}
				c.process++
			}
			h := newHandler(parse(t, counting), store, withCrashNotes(c, 3))
			if verdicts, err := h.Hold("a").Apply(t.Context(), happened(t, "a", 1, 2)); err != nil || len(verdicts) != 2 {
				t.Fatalf("got %v and %v, want two verdicts", verdicts, err)
			}
			f := fixture{store: store}
			if got := f.parked(t, "a"); len(got) != tt.parked {
				t.Errorf("parked: got %v, want %d", got, tt.parked)
			}
		})
	}
}

// With two suspects side by side the next death would not tell which it was.
func TestGuard_SuspectsGoOneAfterTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, c, decider := readmodeltest.NewFake(), newCrashNotes(), &slow{Projections: parse(t, counting)}
		for _, aggregate := range []string{"a", "b", "c"} {
			if err := c.Note(t.Context(), aggregate, []string{aggregate + "-1", aggregate + "-2"}, false); err != nil {
				t.Fatal(err)
			}
		}
		c.process = 1
		h := newHandler(decider, store, withCrashNotes(c, 3))
		var holds sync.WaitGroup
		for _, aggregate := range []string{"a", "b", "c"} {
			messages := happened(t, aggregate, 1, 2)
			holds.Go(func() {
				if verdicts, err := h.Hold(aggregate).Apply(t.Context(), messages); err != nil || len(verdicts) != 2 {
					t.Errorf("%s: got %v and %v, want two verdicts", aggregate, verdicts, err)
				}
			})
		}
		holds.Wait()
		if decider.together != 1 {
			t.Errorf("got %d suspects side by side, want one at a time", decider.together)
		}
		// One whose lock ends while it waits for its turn does nothing.
		c.notes = map[string]map[int]delivery.Death{"d": {0: {Messages: []string{"d-1"}}}, "e": {0: {Messages: []string{"e-1"}}}}
		first, second := happened(t, "d", 1), happened(t, "e", 1)
		holds.Go(func() { _, _ = h.Hold("d").Apply(t.Context(), first) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if verdicts, err := h.Hold("e").Apply(ctx, second); !errors.Is(err, context.DeadlineExceeded) || len(verdicts) != 0 {
			t.Errorf("without its lock: got %v and %v, want nothing done", verdicts, err)
		}
		holds.Wait()
	})
}
