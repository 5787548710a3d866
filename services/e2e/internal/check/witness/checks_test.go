package witness

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/check/watch"
)

// failing judges, and returns the checks that fail, by their names.
func (s *stage) failing(t *testing.T) map[string]report.Check {
	t.Helper()
	v, err := s.Judge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	failing := make(map[string]report.Check)
	for _, f := range v.Violations {
		if c := v.Check(f); !c.Passed {
			failing[f.Name] = c
		}
	}
	return failing
}

func TestVerdict_AHistoryWithoutAnEntryShowsNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	failing := s.failing(t)
	for _, name := range []string{OutOfOrder, OverlappingTerms, TermsUnclaimed, TermsShared, CheckpointsWentBack, DocumentsWentBack, WorkedOnAtOnce, LeasesOverlapping} {
		if _, fails := failing[name]; !fails {
			t.Errorf("%s: passes, want it to fail where nothing was ever seen", name)
		}
		delete(failing, name)
	}
	for name := range failing {
		t.Errorf("%s: fails, want it to pass where there is nothing", name)
	}
	s.checkpoint(t, "p", 1, "a")
	s.settle(t)
	for name, c := range s.failing(t) {
		t.Errorf("%s: fails with %q, want all to pass once each history has an entry", name, c.Samples)
	}
}

// An order that nobody saw is none that was right.
func TestJudge_TellsOfWhatTheOrderWasNotSeen(t *testing.T) {
	t.Parallel()
	s := newStageOf(t, Shadowed)
	s.write(t, "a", 1)
	s.write(t, "a", 2)
	insert(t, s.ReadModel().Collection("shadow"), bson.D{{Key: "_id", Value: "a"}, {Key: "events", Value: int64(2)}, {Key: "sum", Value: int64(3)}, {Key: "tail", Value: bson.A{int64(2)}}})
	tail, sum := bson.A{}, int64(0)
	for n := int64(1); n <= watch.Named+1; n++ {
		s.write(t, "many", n)
		tail, sum = append(tail, n), sum+n
	}
	tail[1], tail[2] = tail[2], tail[1] // behind a first one that is not named any more
	insert(t, s.ReadModel().Collection("shadow"), bson.D{{Key: "_id", Value: "many"}, {Key: "events", Value: int64(len(tail))}, {Key: "sum", Value: sum}, {Key: "tail", Value: tail[1:]}})
	v, err := s.Judge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f := v.Violation(OrderUnseen); f.Count != 2 {
		t.Errorf("orders that nobody saw: got %d %q, want those of a and many", f.Count, f.Samples)
	}
}
