package modes

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"changerelay/services/e2e/internal/check/expect"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/orders"
)

func TestDraw_TakesEveryValueOfEverySetting(t *testing.T) {
	t.Parallel()
	const seeds = 100
	for _, side := range []struct {
		choices []choice
		of      func(Mode) map[string]string
	}{
		{publisher, func(m Mode) map[string]string { return m.Publisher }},
		{later, func(m Mode) map[string]string { return m.Publisher }},
		{projector, func(m Mode) map[string]string { return m.Projector }},
	} {
		for _, c := range side.choices {
			var seen []string
			for seed := range uint64(seeds) {
				seen = append(seen, side.of(Draw(seed))[c.name])
			}
			for _, value := range c.values {
				if !slices.Contains(seen, value) {
					t.Errorf("%s: %d seeds drew no %q", c.name, seeds, value)
				}
			}
		}
	}
}

func TestDraw_AddsReadModelsOrNot(t *testing.T) {
	t.Parallel()
	type added struct{ beside, keyed, inGo bool }
	seen := map[added]int{}
	for seed := range uint64(100) {
		m := Draw(seed)
		seen[added{m.Beside, m.Keyed, m.InGo}]++
	}
	if len(seen) != 8 {
		t.Errorf("got %v, want every mix of a second group, documents of another key and a projection in Go", seen)
	}
}

func TestDraw_IsTheSameForASeed(t *testing.T) {
	t.Parallel()
	if one, again := Draw(3), Draw(3); !reflect.DeepEqual(one, again) {
		t.Errorf("got %v and %v, want the same", one, again)
	}
}

// A run is repeated by its seed, whatever else is drawn since.
func TestDraw_WhatIsDrawnSinceChangesNothingDrawnBefore(t *testing.T) {
	t.Parallel()
	want := "publishers: CHECKPOINT_INTERVAL=2s COMPRESS_ABOVE=1 MAX_IN_FLIGHT=1000 PARTITIONS=2 SENDERS=64; " +
		"projectors: BATCH_SIZE=30 HOLD_MESSAGES=200 MAX_SESSIONS=32 ON_GAP=wait SERVICEBUS_RECEIVER=sdk; a second group"
	m := Draw(4).withEvery()
	m.Keyed, m.InGo = false, false
	for _, c := range later {
		delete(m.Publisher, c.name)
	}
	if got := m.String(); got != want {
		t.Errorf("seed 4: got %q, want %q", got, want)
	}
}

// What is hidden the witness leaves out of what it expects; where whole events are needed
// nothing is.
func TestDraw_HidesFieldsThatTheWitnessHidesAsWell(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for seed := range uint64(300) {
		m := Draw(seed)
		drop, mask := m.Publisher["DROP_FIELDS"], m.Publisher["MASK_FIELDS"]
		seen[drop+" "+mask] = true
		_, judged := m.ReadModels(false)
		hidden := judged.Hidden
		if m.Documents != nil {
			hidden = judged.Documents.Hidden
		}
		if got := strings.Join(hidden.Dropped, ","); got != drop {
			t.Errorf("seed %d: the witness leaves out %q, want %q", seed, got, drop)
		}
		if got := strings.Join(hidden.Masked, ","); got != mask {
			t.Errorf("seed %d: the witness masks %q, want %q", seed, got, mask)
		}
		for _, whole := range []Mode{m.Repaired(), m.OfDocuments(expect.Images{})} {
			if whole.Publisher["DROP_FIELDS"]+whole.Publisher["MASK_FIELDS"] != "" || m.Repairs && drop+mask != "" {
				t.Errorf("seed %d: %v hides fields, want none hidden", seed, whole)
			}
		}
	}
	if len(seen) != 1+len(hidings)+len(documentHidings) {
		t.Errorf("got %d ways to hide fields %v, want all, and none", len(seen), seen)
	}
}

// Where events are copied, or left out by a projection, the services are set so, the load
// has such events, and the witness knows; and nowhere else.
func TestDraw_CopiesAndSkipsWhereTheWitnessKnows(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for seed := range uint64(300) {
		drawn := Draw(seed)
		for _, m := range []Mode{drawn, drawn.Repaired(), drawn.OfDocuments(expect.Images{})} {
			if copies := m.Publisher["START_AT"] == "snapshot"; copies != m.Early {
				t.Errorf("seed %d, %v: copies: %t, and events are there before: %t", seed, m, copies, m.Early)
			}
			_, judged := m.ReadModels(false)
			policy := m.Projector["ON_ERROR"]
			seen[policy]++
			if m.Skips != (policy != "") || strings.TrimPrefix(policy, "evaluate=") != judged.OnError || m.Skips && (m.Halted || m.Projector["HALT_LIMIT"] != "0") {
				t.Errorf("seed %d, %v: skips: %t, judged by %q", seed, m, m.Skips, judged.OnError)
			}
			if (m.Skips || m.Early) && (m.Repairs || m.Documents != nil) {
				t.Errorf("seed %d: got %v, want neither with repairs or documents", seed, m)
			}
		}
		if drawn.Early {
			seen["early"]++
		}
	}
	for _, kind := range append([]string{"early", "", "skip", "deadletter"}, skipping...) {
		if seen[kind] == 0 {
			t.Errorf("got %v, want some of %q", seen, kind)
		}
	}
}

func TestFailing_SomePricesAreNoNumbersWhereThatIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, m := range []Mode{{}, Mode{}.Skipping(skipping[0])} {
		next := m.Failing(1, load.Limited(5000, load.Generated(orders.NewGenerator(1, 50))))
		dear := 0
		for e, more := next(); more; e, more = next() {
			if e.Data.(orders.Data)["price"] == "dear" {
				dear++
			}
		}
		if (dear > 0) != m.Skips || dear > 200 {
			t.Errorf("%v: got %d of 5000, want some: %t", m, dear, m.Skips)
		}
	}
}

func TestDrawForOperators_DrawsEveryMix(t *testing.T) {
	t.Parallel()
	type mix struct {
		documents, keyed bool
		partitions       string
	}
	seen := map[mix]bool{}
	for seed := range uint64(200) {
		m := DrawForOperators(seed)
		seen[mix{m.Documents != nil, m.Keyed, m.Publisher["PARTITIONS"]}] = true
		delete(m.Publisher, "PARTITIONS")
		if len(m.Publisher) > 0 && m.Documents == nil || len(m.Projector) > 0 {
			t.Errorf("seed %d: got %v, want nothing else that is not the default", seed, m)
		}
	}
	if len(seen) != 12 {
		t.Errorf("got %v, want every mix of documents mode, documents of another key and partitions", seen)
	}
}

func TestString_SaysWhatIsNotTheDefault(t *testing.T) {
	t.Parallel()
	m := Mode{Publisher: map[string]string{"B": "2", "A": "1"}, Beside: true, Keyed: true, InGo: true}
	if got, want := m.String(), "publishers: A=1 B=2; projectors: defaults; a second group; documents of another key; a projection in Go"; got != want {
		t.Errorf("text: got %q, want %q", got, want)
	}
}

// Sends of several aggregates go to a topic that takes them.
func TestEntities_ATopicTakesWhatIsSentToIt(t *testing.T) {
	t.Parallel()
	for batching, want := range map[string]string{"": `"EnablePartitioning":true`, "mixed": `"EnablePartitioning":false`} {
		m := Mode{Publisher: map[string]string{"BATCHING": batching}}
		path, err := m.Entities(t.TempDir(), cluster.DefaultNames(), UsualWindow)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("BATCHING=%q: got %s and %v, want %s", batching, text, err, want)
		}
	}
}
