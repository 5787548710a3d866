package validate

import (
	"strings"
	"testing"
	"time"

	"changerelay/services/e2e/internal/check/expect"
)

func send(aggregate string, version int64, id string, position uint64, term int64) Send {
	return Send{Event: Event{aggregate, version}, MessageID: id, Position: position, Term: term}
}

func at(s Send, place uint64) Send {
	s.Place = place
	return s
}

func copied(s Send) Send {
	s.Copied = true
	return s
}

// elsewhere is a message that the topic has in another partition, and numbers there.
func elsewhere(s Send) Send {
	s.Number = 1<<48 + 1
	return s
}

func TestMessages_FaultsAreFound(t *testing.T) {
	t.Parallel()
	wrong := send("a", 1, "i", 1, 1)
	wrong.Print[expect.Time]++
	owed := map[Event]expect.Print{{"a", 1}: {}}
	claims := []Checkpoint{{Term: 1}, {Term: 2}}
	there := map[Event]bool{{"a", 1}: true, {"a", 2}: true}
	tests := []struct {
		name   string
		found  Findings
		want   int
		sample string
	}{
		{name: "a message that is as owed", found: Unlike(owed, []Send{send("a", 1, "i", 1, 1)})},
		{name: "a message that nobody owes is not judged", found: Unlike(owed, []Send{send("b", 1, "i", 1, 1)})},
		{name: "a part that differs", found: Unlike(owed, []Send{wrong}), want: 1, sample: "[time]"},
		{name: "a message that is dropped after a while", found: Mortal([]Send{send("a", 1, "i", 1, 1), {TimeToLive: time.Hour}}), want: 1, sample: "after 1h0m0s"},
		{name: "a repeat under its id", found: SeveralIDs([]Send{send("a", 1, "i", 1, 1), send("a", 1, "i", 1, 2), send("a", 2, "k", 1, 1)})},
		{name: "a repeat under another id", found: SeveralIDs([]Send{send("a", 1, "i", 1, 1), send("a", 1, "k", 1, 1)}), want: 1, sample: "a version 1 came as message i and as k"},
		{name: "positions that rise with versions", found: PositionsBack([]Send{at(send("a", 2, "k", 7, 1), 2), at(send("a", 1, "i", 7, 1), 1), at(send("b", 1, "l", 3, 1), 2)})},
		{name: "positions that do not rise", found: PositionsBack([]Send{at(send("a", 1, "i", 7, 1), 1), at(send("a", 2, "k", 7, 1), 1)}), want: 1, sample: "a version 2 stands at 0000000000000007, where version 1 stands"},
		{name: "a message of a copy", found: Copied([]Send{send("a", 1, "i", 7, 1), copied(send("a", 2, "k", 7, 1))}, nil), want: 1, sample: "a version 2, message k"},
		{name: "a copy of what was there", found: Copied([]Send{copied(send("a", 1, "i", 7, 1)), copied(send("a", 2, "k", 7, 1)), send("a", 3, "l", 8, 1), send("a", 1, "i", 9, 1)}, there)},
		{name: "a copy of an old term that is late", found: Copied([]Send{copied(send("a", 1, "i", 7, 1)), send("a", 3, "l", 8, 2), copied(send("a", 2, "k", 7, 1))}, there)},
		{name: "what was there, and is not copied", found: Copied([]Send{copied(send("a", 1, "i", 7, 1)), send("a", 2, "k", 7, 1)}, there), want: 1, sample: "a version 2, message k: it was there before"},
		{name: "a copy behind the stream", found: Copied([]Send{copied(send("a", 1, "i", 7, 1)), send("a", 3, "l", 8, 2), copied(send("a", 2, "k", 9, 2))}, there), want: 1, sample: "a version 2, message k: its operation"},
		{name: "a copy in another partition of the topic than what follows it", found: Copied([]Send{copied(send("a", 1, "i", 7, 1)), send("a", 3, "l", 8, 1), elsewhere(copied(send("b", 1, "k", 7, 1)))}, there)},
		{name: "the position of a copy", found: PositionsBack([]Send{copied(send("a", 1, "i", 7, 1)), copied(send("a", 2, "k", 7, 1))})},
		{name: "a repeat from a copy", found: PositionsBack([]Send{at(send("a", 1, "i", 5, 1), 1), at(send("a", 2, "k", 7, 1), 2), at(send("a", 1, "i", 9, 2), 2)})},
		{name: "a position that goes back", found: PositionsBack([]Send{send("a", 1, "i", 8, 1), send("a", 2, "k", 7, 1)}), want: 1, sample: "a version 2 stands at 0000000000000007"},
		{name: "no position", found: PositionsBack([]Send{send("a", 1, "i", 0, 1)}), want: 1, sample: "no position"},
		{name: "terms that were claimed", found: TermsUnclaimed([]Send{send("a", 1, "i", 1, 1), send("a", 2, "i", 1, 2)}, claims)},
		{name: "a term before the history", found: TermsUnclaimed([]Send{send("a", 1, "i", 1, 1)}, []Checkpoint{{Term: 0}, {Term: 2}})},
		{name: "no term", found: TermsUnclaimed([]Send{send("a", 1, "i", 1, 0)}, claims), want: 1, sample: "in term 0"},
		{name: "a term that was not", found: TermsUnclaimed([]Send{send("a", 1, "i", 1, 3)}, claims), want: 1, sample: "in term 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.found.Count != tt.want || !strings.Contains(strings.Join(tt.found.Samples, "\n"), tt.sample) {
				t.Errorf("got %d %q, want %d with %q", tt.found.Count, tt.found.Samples, tt.want, tt.sample)
			}
		})
	}
}
