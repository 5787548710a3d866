package delivery_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
)

// care keeps notes for a row of processes, each the successor of one that died.
type care struct {
	mu      sync.Mutex
	process int                         // guarded by mu
	notes   map[string]map[string][]int // guarded by mu: processes, by aggregate and message
}

func (c *care) Careful() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process > 0
}

func (c *care) Suspects(_ context.Context, aggregate string) (map[string]int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	suspects := map[string]int{}
	for message, processes := range c.notes[aggregate] {
		for _, process := range processes {
			if process < c.process {
				suspects[message]++
			}
		}
	}
	return suspects, nil
}

func (c *care) Note(_ context.Context, aggregate, messageID string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.notes[aggregate] == nil {
		c.notes[aggregate] = map[string][]int{}
	}
	if !slices.Contains(c.notes[aggregate][messageID], c.process) {
		c.notes[aggregate][messageID] = append(c.notes[aggregate][messageID], c.process)
	}
	return nil
}

func (c *care) Clear(_ context.Context, aggregate, messageID string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes[aggregate][messageID] = nil
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
// counts nothing. It is parked after a few deaths, and no other with it.
func TestAMessageThatKillsItsProcessIsParkedAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		c := &care{notes: map[string]map[string][]int{}}
		decider := deadly{parse(t, counting), "b-2"}
		// life applies all messages until the process dies, and tells whether it did.
		life := func() (died bool) {
			defer func() { died = recover() != nil }()
			h := delivery.New(decider, store, store, delivery.NewHalts(store), &observer{}, zerolog.Nop()).WithCare(c, 3)
			for _, aggregate := range []string{"a", "b", "c"} {
				messages := happened(t, aggregate, 1, 2, 3)
				verdicts, err := h.Hold(aggregate).Apply(t.Context(), messages)
				if err != nil || len(verdicts) != len(messages) {
					t.Errorf("%s: got %v and %v, want three verdicts", aggregate, verdicts, err)
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
		// One before anybody is careful, one of a whole batch, and the limit.
		if deaths > 5 {
			t.Errorf("deaths: got %d, want no more than 5", deaths)
		}
		f := fixture{store: store}
		if got := f.parked(t, "b"); !slices.Equal(got, []int64{2, 3}) {
			t.Errorf("parked of b: got %v, want 2 and 3", got)
		}
		for aggregate, want := range map[string]string{
			"a": `{"events":3}{"last":3}{"seen":[1,2,3]}`, "b": `{"events":1}{"last":1}{"seen":[1]}`, "c": `{"events":3}{"last":3}{"seen":[1,2,3]}`,
		} {
			if got := f.fields(t, "orders", aggregate); got != want {
				t.Errorf("%s: got %s, want %s", aggregate, got, want)
			}
		}
	})
}
