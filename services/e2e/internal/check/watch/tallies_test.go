package watch

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/validate"
)

func array(versions ...int64) bson.A {
	var a bson.A
	for _, v := range versions {
		a = append(a, v)
	}
	return a
}

func TestTallies_GatherWhatEachWriteAppended(t *testing.T) {
	t.Parallel()
	in := func(versions ...int64) validate.Tally { return validate.TallyOf(versions) }
	first := func(t *testing.T) change {
		t.Helper()
		return write(t, "insert", full(d{{Key: "events", Value: 2}, {Key: "tail", Value: array(1, 2)}}))
	}
	many := make([]int64, Named) // events after three that nobody sees
	for i := range many {
		many[i] = int64(i) + 6
	}
	tests := []struct {
		name   string
		then   func(t *testing.T) change
		want   validate.Tally
		unseen int64
	}{
		{name: "by their places", want: in(1, 2, 3, 4), then: func(t *testing.T) change {
			t.Helper()
			return write(t, "update", updated(d{{Key: "events", Value: 4}, {Key: "tail.2", Value: 3}, {Key: "tail.3", Value: 4}}))
		}},
		{name: "as the whole array", want: in(1, 2, 3), then: func(t *testing.T) change {
			t.Helper()
			return write(t, "update", updated(d{{Key: "events", Value: 3}, {Key: "tail", Value: array(2, 3)}}))
		}},
		{name: "in another order", want: in(1, 2, 4, 3), then: func(t *testing.T) change {
			t.Helper()
			return write(t, "update", updated(d{{Key: "events", Value: 4}, {Key: "tail", Value: array(1, 2, 4, 3)}}))
		}},
		{name: "more than the array keeps", want: in(1, 2, 9), unseen: 2, then: func(t *testing.T) change {
			t.Helper()
			return write(t, "update", updated(d{{Key: "events", Value: 5}, {Key: "tail", Value: array(9)}}))
		}},
		{name: "more than a document names", want: in(append([]int64{1, 2}, many...)...), unseen: 3, then: func(t *testing.T) change {
			t.Helper()
			return write(t, "update", updated(d{{Key: "events", Value: 5 + Named}, {Key: "tail", Value: array(many...)}}))
		}},
		{name: "what says nothing of a count", want: in(1, 2), then: func(t *testing.T) change {
			t.Helper()
			return write(t, "update", updated(d{{Key: "_relay.halted", Value: true}}))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var told []int64
			tallies := &Tallies{of: map[string]validate.Tally{}, each: func(_ string, n int64) { told = append(told, n) }}
			tallies.add(first(t))
			tallies.add(tt.then(t))
			got := tallies.Tallies()["a"]
			if got.Order != tt.want.Order || got.Sum != tt.want.Sum || got.Unseen != tt.unseen || got.Events != tt.want.Events+tt.unseen {
				t.Errorf("tally: got %+v, want %+v with %d unseen", got, tt.want, tt.unseen)
			}
			if !slices.Contains(told, got.Events) || tallies.Writes() != len(told) {
				t.Errorf("told of %v and %d writes, want the last to be %d", told, tallies.Writes(), got.Events)
			}
		})
	}
}

func TestTallies_ADocumentThatWasPutBackIsNotTakenForSeen(t *testing.T) {
	t.Parallel()
	for name, back := range map[string][]change{
		"an older one": {
			write(t, "replace", full(d{{Key: "events", Value: 1}, {Key: "tail", Value: array(1)}})),
			write(t, "update", updated(d{{Key: "events", Value: 3}, {Key: "tail.1", Value: 2}, {Key: "tail.2", Value: 3}})),
		},
		"another one": {write(t, "delete"), write(t, "insert", full(d{{Key: "events", Value: 3}, {Key: "tail", Value: array(1, 2, 3)}}))},
	} {
		tallies := &Tallies{of: map[string]validate.Tally{}, each: func(string, int64) {}}
		tallies.add(write(t, "insert", full(d{{Key: "events", Value: 2}, {Key: "tail", Value: array(1, 2)}})))
		for _, c := range back {
			tallies.add(c)
		}
		if got := tallies.Tallies()["a"]; got.Events != 3 || got.Unseen == 0 {
			t.Errorf("%s: got %+v, want 3 events, and that not all were seen", name, got)
		}
	}
}

func TestTallies_EventsWithoutVersionsAreKnownByTheirSequence(t *testing.T) {
	t.Parallel()
	tallies := &Tallies{of: map[string]validate.Tally{}, each: func(string, int64) {}}
	tallies.add(write(t, "insert", full(d{{Key: "events", Value: 1}, {Key: "tail", Value: bson.A{"1.a"}}})))
	tallies.add(write(t, "update", updated(d{{Key: "events", Value: 2}, {Key: "tail.1", Value: "1.b"}})))
	want := validate.TallyOf([]int64{validate.Fingerprint("1.a"), validate.Fingerprint("1.b")})
	if got := tallies.Tallies()["a"]; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// numbers are those that a file of the repository gives where a pattern matches.
func numbers(t *testing.T, file, pattern string) (all []int) {
	t.Helper()
	text, err := os.ReadFile("../../../../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.Atoi(one[1])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// A shadow document names more events than a projector applies at once, so that the order of
// all is seen.
func TestNamed_IsMoreThanAProjectorAppliesAtOnce(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"services/e2e/shadow.yaml", "services/e2e/documents_shadow.yaml"} {
		if got := slices.Compact(numbers(t, file, `last: (\d+)`)); !slices.Equal(got, []int{Named}) {
			t.Errorf("%s: got documents that name %v events, want %d", file, got, Named)
		}
	}
	if got := numbers(t, "docs/configuration.md", "`BATCH_SIZE` \\| `(\\d+)` \\| most messages received"); len(got) != 1 || got[0] >= Named {
		t.Errorf("a projector applies %v events at once, want less than %d", got, Named)
	}
}
