package long

import (
	"io"
	"strings"
	"testing"
	"time"

	"changerelay/services/e2e/internal/check/report"
)

func TestLegs_EveryKindOfCampaignComesInEachRound(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for n := range uint64(shares) {
		l := legs(Config{Seed: 7, Duration: time.Hour, Rate: 1}, n)
		if seen[l.name]++; l.seed != 7+n {
			t.Errorf("leg %d: got seed %d, want %d", n, l.seed, 7+n)
		}
	}
	for _, name := range []string{"faults", "operators' mistakes", "what is set aside, and groups", "crash points", "upgrades"} {
		if seen[name] == 0 {
			t.Errorf("got %v, want %s among them", seen, name)
		}
	}
}

func TestSummary_SaysWhatFailedAndWhatWasNotDone(t *testing.T) {
	t.Parallel()
	r := &report.Report{Faults: make([]report.Fault, 3), Setup: []report.Fact{{Name: "settings", Text: "defaults"}}, Figures: []report.Figure{
		{Name: "events written", Value: 2000}, {Name: kindPrefix + "election", Value: 3},
	}, Checks: []report.Check{report.AtMost("lost", 1, 0, report.Count)}}
	text := summary(Config{Seed: 4}, time.Unix(0, 0), time.Hour, []done{{leg{name: "faults", seed: 4}, r}})
	for _, want := range []string{"| faults | 3, of 1 kinds |", "| faults | 4 | defaults | 3 | 2,000 | lost |", "| election | 3 |", "Not done:\n\n- SIGKILL of the leader", "operator: repartition"} {
		if !strings.Contains(text, want) {
			t.Errorf("got %s, want it to say %q", text, want)
		}
	}
}

func TestParse_EveryWrongFlagIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Parse([]string{"--duration", "1ms", "--rate", "0", "more"}, io.Discard)
	for _, want := range []string{"--duration is 1ms", "--rate is 0", `no argument "more"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
}
