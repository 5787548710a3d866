package witness

import (
	"context"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/poll"
	"changerelay/services/e2e/internal/harness/source"
)

// A line of a checkpoint that is gone begins where its stream did. What the stream had
// saved before, nothing excuses: it was sent, or lost.
func TestForgive_TakesNothingThatACheckpointHadPassed(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	now := time.Now().Truncate(time.Second)
	at := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	for i, written := range []int{-150, -100, -50} {
		s.Ledger.Wrote([]orders.Event{event("a", int64(i+1))})
		s.Ledger.batches[i].at = at(written)
	}
	saved := func(seconds int) string {
		return string(contract.StreamPosition(uint32(at(seconds).Unix()), 1, "82"))
	}
	s.checkpoint(t, "p", 1, saved(-100))
	s.checkpoint(t, "p", 1, saved(-120)) // set back
	err := poll.Until(t.Context(), "the checkpoints", func(context.Context) (bool, string) { return len(s.Checkpoints.History()) == 2, "not all" })
	if err != nil {
		t.Fatal(err)
	}
	line := func(stream string, from, to, decided int, more ...bson.E) bson.D {
		return append(bson.D{{Key: "stream", Value: stream}, {Key: "decision", Value: "reset"}, {Key: "fromTime", Value: at(from)}, {Key: "toTime", Value: at(to)}, {Key: "at", Value: at(decided)}}, more...)
	}
	for _, tt := range []struct {
		name  string
		lines []any
		want  [3]pardon // of the events, oldest first
	}{
		{"decided after that", []any{line("stream", -200, 0, 60)}, [3]pardon{due, unsent, unsent}},
		{"decided before that", []any{line("stream", -200, 0, -5)}, [3]pardon{unsent, unsent, unsent}},
		{"another stream's", []any{line("other", -200, 0, 60)}, [3]pardon{unsent, unsent, unsent}},
		{"another line names the first as well", []any{line("stream", -200, 0, 60), line("stream", -160, -140, -135)}, [3]pardon{unsent, unsent, unsent}},
		{"announced, and not known to be done", []any{line("stream", -120, 0, 60, bson.E{Key: "unfinished", Value: true})}, [3]pardon{due, due, due}},
	} {
		if _, err := s.State().Collection(gapsLedger).DeleteMany(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
		insert(t, s.State().Collection(gapsLedger), tt.lines...)
		if _, _, err := s.Forgive(t.Context(), Doings{Moves: atAnyTime()}); err != nil {
			t.Fatal(err)
		}
		for i, want := range tt.want {
			if got := s.forgiven(source.Stored{Event: event("a", int64(i+1))}); got != want {
				t.Errorf("%s: event %d: forgiven %v, want %v", tt.name, i+1, got, want)
			}
		}
	}
}

// A place ahead of its time says nothing of what was not written when it was saved.
func TestForgive_APlaceAheadOfItsTimePassesWhatWasWrittenByThen(t *testing.T) {
	t.Parallel()
	saved := validate.Checkpoint{Stream: "s", Position: "7fffffff00000001.82", At: 100}
	if got, want := passedBy([]validate.Checkpoint{saved}, Gap{Stream: "s", At: time.Unix(200, 0)}), time.Unix(100, 0); !got.Equal(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// atAnyTime are commands that may have made any line of the ledger.
func atAnyTime() (all []Move) {
	for _, decision := range []string{"now", "set", "reset", "accept"} {
		all = append(all, Move{Decision: decision, To: time.Now().Add(time.Hour)})
	}
	return all
}

// A line that says that something is passed over counts where somebody has run the command
// for that, when the line says. The relay must not decide that by itself.
func TestForgive_TakesNothingForALineOfNoCommand(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.write(t, "a", 1)
	now := time.Now().Truncate(time.Millisecond)
	move := func(decision string, from, to time.Duration) []Move {
		return []Move{{Decision: decision, From: now.Add(from), To: now.Add(to)}}
	}
	const ms = time.Millisecond
	for _, tt := range []struct {
		name, line string
		unfinished bool
		moves      []Move
		want       pardon
		ofNobody   int
	}{
		{name: "the command that it is of", line: "reset", moves: move("reset", -ms, ms), want: unsent},
		{name: "a command within the millisecond", line: "set", moves: move("set", ms/2, ms), want: unsent},
		{name: "one of several", line: "accept", moves: append(move("set", 0, ms), move("accept", 0, ms)...), want: unsent},
		{name: "no command", line: "reset", want: due, ofNobody: 1},
		{name: "no command, and announced alone", line: "reset", unfinished: true, want: due, ofNobody: 1},
		{name: "what no command decides", line: "now", moves: move("set", -ms, ms), want: due, ofNobody: 1},
		{name: "another command", line: "reset", moves: move("set", -ms, ms), want: due, ofNobody: 1},
		{name: "a command before", line: "reset", moves: move("reset", -2*ms, -ms), want: due, ofNobody: 1},
		{name: "a command after", line: "reset", moves: move("reset", ms, 2*ms), want: due, ofNobody: 1},
		{name: "none, and nothing is passed over", line: "begin", want: due},
	} {
		if _, err := s.State().Collection(gapsLedger).DeleteMany(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
		line := bson.D{{Key: "stream", Value: "s"}, {Key: "decision", Value: tt.line}, {Key: "at", Value: now}, {Key: "unfinished", Value: tt.unfinished}}
		insert(t, s.State().Collection(gapsLedger), append(line, bson.E{Key: "fromTime", Value: now.Add(-time.Hour)}, bson.E{Key: "toTime", Value: now.Add(time.Hour)}))
		_, ofNobody, err := s.Forgive(t.Context(), Doings{Moves: tt.moves})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.forgiven(source.Stored{Event: event("a", 1)}); got != tt.want || ofNobody.Count != tt.ofNobody {
			t.Errorf("%s: forgiven %v, and lines of nobody %q, want %v and %d", tt.name, got, ofNobody.Samples, tt.want, tt.ofNobody)
		}
	}
}
