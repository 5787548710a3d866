package validate

import (
	"slices"
	"testing"
	"time"
)

func atSecond(s float64) time.Time { return noon.Add(time.Duration(s * float64(time.Second))) }

func trouble(node string, from, to float64) Trouble {
	return Trouble{Node: node, From: atSecond(from), To: atSecond(to)}
}

// An old term's message behind a new one's needs a cause, and one of its own leader's, in
// the time that can have one.
func TestCauses_AMessageOfAnOldTermThatIsLateNeedsOne(t *testing.T) {
	t.Parallel()
	// Term 1 of p is followed by term 2 of q at 20 s, and sends once more at 21 s.
	var sends []Send
	for _, s := range []Send{sent(1, 10_000), sent(2, 20_000), sent(1, 21_000), sent(2, 22_000)} {
		sends = append(sends, of(s, "s"))
	}
	history := []Checkpoint{{Stream: "s", Owner: "p", Term: 1}, {Stream: "s", Owner: "q", Term: 2}}
	tests := []struct {
		name     string
		troubles []Trouble
		caused   int
	}{
		{name: "no fault at all"},
		{name: "its leader was frozen over the end of its term", troubles: []Trouble{trouble("p", 16, 20.9)}, caused: 1},
		{name: "its leader was in trouble when its lease was still asked for", troubles: []Trouble{trouble("p", 12, 17.5)}, caused: 1},
		{name: "its leader's trouble was over before", troubles: []Trouble{trouble("p", 12, 16.5)}},
		{name: "its leader's trouble began after the message", troubles: []Trouble{trouble("p", 21.5, 25)}},
		{name: "another was frozen", troubles: []Trouble{trouble("q", 16, 21)}},
		{name: "all suffered", troubles: []Trouble{trouble("", 16, 21)}, caused: 1},
		{name: "only the first fault is too old", troubles: []Trouble{trouble("p", 1, 2), trouble("p", 19, 19)}, caused: 1},
		{name: "its leader's trouble began after the takeover", troubles: []Trouble{trouble("p", 20.5, 30)}},
		{name: "it arrives as soon as what held it up is over", troubles: []Trouble{trouble("p", 16, 18)}, caused: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			caused, uncaused := LateSends(sends, history, tt.troubles, 3*time.Second, 2*time.Second)
			if caused.Count != tt.caused || uncaused.Count != 1-tt.caused {
				t.Errorf("got %d with a cause %q and %d without %q, want %d and %d", caused.Count, caused.Samples, uncaused.Count, uncaused.Samples, tt.caused, 1-tt.caused)
			}
		})
	}
}

// Trouble at a takeover excuses nothing of what the old term sends from then on.
func TestCauses_TroubleThatIsOverExplainsNoMoreMessages(t *testing.T) {
	t.Parallel()
	history := []Checkpoint{{Stream: "s", Owner: "p", Term: 1}, {Stream: "s", Owner: "q", Term: 2}}
	tests := []struct {
		name    string
		trouble Trouble
		second  int
		caused  int
	}{
		{name: "soon after the takeover", trouble: trouble("p", 19, 20), second: 22, caused: 1},
		{name: "minutes after the takeover", trouble: trouble("p", 19, 20), second: 140},
		{name: "soon after a long trouble", trouble: trouble("p", 19, 138), second: 140, caused: 1},
		{name: "long after a long trouble", trouble: trouble("p", 19, 130), second: 140},
		{name: "in trouble of its own since", trouble: trouble("p", 139, 141), second: 140},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var sends []Send
			for _, s := range []Send{sent(1, 10_000), sent(2, 20_000), sent(1, tt.second*1000)} {
				sends = append(sends, of(s, "s"))
			}
			caused, uncaused := LateSends(sends, history, []Trouble{tt.trouble}, 3*time.Second, 2*time.Second)
			if caused.Count != tt.caused || uncaused.Count != 1-tt.caused {
				t.Errorf("got %d with a cause and %d without %q, want %d and %d", caused.Count, uncaused.Count, uncaused.Samples, tt.caused, 1-tt.caused)
			}
		})
	}
}

// Each partition counts its terms by itself: the same number has another leader, and ends
// at another time.
func TestCauses_TermsArePartitionsOwn(t *testing.T) {
	t.Parallel()
	first := func(term int64, second int) Send { return of(sent(term, second*1000), "s-0of2") }
	second := func(term int64, second int) Send { return of(sent(term, second*1000), "s-1of2") }
	history := []Checkpoint{
		{Stream: "s-0of2", Owner: "p", Term: 1},
		{Stream: "s-1of2", Owner: "q", Term: 1},
		{Stream: "s-0of2", Owner: "q", Term: 2},
		{Stream: "s-1of2", Owner: "p", Term: 2},
	}
	apart := []Send{first(1, 1), first(2, 10), second(1, 20), second(2, 30)}
	if caused, uncaused := LateSends(apart, history, nil, time.Second, time.Second); caused.Count+uncaused.Count != 0 {
		t.Errorf("two partitions in order: got %q and %q, want nothing", caused.Samples, uncaused.Samples)
	}
	late := slices.Concat(apart, []Send{second(1, 31)})
	if _, uncaused := LateSends(late, history, []Trouble{trouble("p", 0, 40)}, time.Second, time.Second); uncaused.Count != 1 {
		t.Errorf("a late message while the leader of another partition's term was in trouble: got %d without a cause, want 1", uncaused.Count)
	}
	if caused, _ := LateSends(late, history, []Trouble{trouble("q", 0, 40)}, time.Second, time.Second); caused.Count != 1 {
		t.Errorf("a late message while its leader was in trouble: got %d with a cause, want 1", caused.Count)
	}
}

// A hold that writes after another has taken its session needs a cause as well.
func TestCauses_AWriteOfAHoldThatIsOverNeedsOne(t *testing.T) {
	t.Parallel()
	at := func(second int64, hold string) Apply {
		return Apply{Document: "a", Version: second, Hold: hold, At: noon.Unix() + second}
	}
	// The first hold of p-1 is followed by q-1's at 20 s, and writes once more.
	tests := []struct {
		name   string
		held   Trouble
		more   []Trouble
		again  int64
		caused int
	}{
		{name: "long before", held: trouble("p-1", 10, 14), again: 22},
		{name: "while it had something in hand", held: trouble("p-1", 10, 16), again: 22, caused: 1},
		{name: "in the second of the takeover", held: trouble("p-1", 20.5, 21), again: 22, caused: 1},
		{name: "only after the takeover", held: trouble("p-1", 21.5, 30), again: 22},
		{name: "after the write", held: trouble("p-1", 23.5, 30), again: 22},
		{name: "of the other one", held: trouble("q-1", 10, 30), again: 22},
		{name: "of all", held: trouble("", 18, 18), again: 22, caused: 1},
		{name: "what was in hand is written by then", held: trouble("p-1", 18, 18), again: 27},
		{name: "minutes before the write", held: trouble("", 18, 18), again: 140},
		{name: "over just before the write", held: trouble("p-1", 18, 138), again: 140, caused: 1},
		{name: "held up by more trouble since", held: trouble("p-1", 18, 21), more: []Trouble{trouble("p-1", 23, 40), trouble("", 41, 60)}, again: 62, caused: 1},
		{name: "out of trouble for too long between", held: trouble("p-1", 18, 21), more: []Trouble{trouble("p-1", 25, 40), trouble("", 43, 60)}, again: 62},
		{name: "in trouble that is over at once all the time", held: trouble("p-1", 18, 21), more: []Trouble{trouble("", 23, 23), trouble("", 25, 25), trouble("", 27, 27)}, again: 28},
		{name: "held up by the trouble of another", held: trouble("p-1", 18, 21), more: []Trouble{trouble("q-1", 23, 60)}, again: 62},
		{name: "long over before the write", held: trouble("p-1", 18, 130), again: 140},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			applies := []Apply{at(10, "p-1-RANDOM/1"), at(20, "q-1-RANDOM/1"), at(tt.again, "p-1-RANDOM/1"), at(tt.again+2, "q-1-RANDOM/1")}
			caused, uncaused := LateWrites(applies, append(tt.more, tt.held), 5*time.Second)
			if caused.Count != tt.caused || uncaused.Count != 1-tt.caused {
				t.Errorf("got %d with a cause %q and %d without %q, want %d and %d", caused.Count, caused.Samples, uncaused.Count, uncaused.Samples, tt.caused, 1-tt.caused)
			}
		})
	}
}
