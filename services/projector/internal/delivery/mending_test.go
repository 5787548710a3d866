package delivery_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/session"
)

// withRecords has the handler ask for what was skipped.
func withRecords(_ *delivery.Config, d *delivery.Deps) { d.Records = d.Store.(delivery.Records) }

// repaired is counting with an expression that holds for every event.
var repaired = strings.ReplaceAll(counting, "data.n * 2", "100")

// The first event of an aggregate moves no position where it is skipped: it is applied when
// it comes again to a projector that can, and its record goes. The records of events that
// do not come again stay.
func TestMending_ARecordGoesAsItsEventIsApplied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, under(t, "skip"))
		bad := []session.Message{message(t, "a", 1, "Doubled", `{"n":"x"}`), message(t, "a", 2, "Doubled", `{"n":"x"}`), message(t, "a", 3, "Doubled", `{"n":"x"}`)}
		if verdicts, err := f.Hold("a").Apply(t.Context(), bad); err != nil || len(verdicts) != 3 {
			t.Fatalf("got %v and %v, want them skipped", verdicts, err)
		}
		again := newHandler(parse(t, repaired), f.store, under(t, "skip"), withRecords)
		if verdicts, err := again.Hold("a").Apply(t.Context(), append(bad[:2:2], happened(t, "a", 4)...)); err != nil || len(verdicts) != 3 {
			t.Fatalf("got %v and %v, want them applied", verdicts, err)
		}
		if got := f.fields(t, "orders", "a"); !strings.Contains(got, `{"events":201}`) {
			t.Errorf("document: got %s, want all three in it", got)
		}
		for event, want := range map[string]int{"a-1": 0, "a-2": 0, "a-3": 1} {
			if records := f.store.Skips(event); len(records) != want {
				t.Errorf("%s: got records %v, want %d", event, records, want)
			}
		}
	})
}

// A session knows of the records that it makes itself.
func TestMending_KnowsWhatItHasSkippedItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		policed := &projection.Policed{Projections: parse(t, counting), Default: projection.Policy{projection.Evaluate: projection.Skip}}
		f := newFixture(t, withRecords, func(_ *delivery.Config, d *delivery.Deps) { d.Policed = policed })
		hold, bad := f.Hold("a"), []session.Message{message(t, "a", 1, "Doubled", `{"n":"x"}`)}
		for _, want := range []int{1, 0} {
			if verdicts, err := hold.Apply(t.Context(), bad); err != nil || len(verdicts) != 1 {
				t.Fatalf("got %v and %v, want it dealt with", verdicts, err)
			}
			if records := f.store.Skips("a-1"); len(records) != want {
				t.Errorf("got records %v, want %d", records, want)
			}
			policed.Projections = parse(t, repaired)
		}
	})
}

// A redrive of what is parked ends records, too.
func TestMending_ARecordGoesAsItsEventIsRedriven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bad := []session.Message{message(t, "a", 1, "Doubled", `{"n":"x"}`)}
		f := newFixture(t, under(t, "skip"))
		halts := newHandler(parse(t, counting), f.store)
		for _, h := range []*delivery.Handler{f.Handler, halts} {
			if verdicts, err := h.Hold("a").Apply(t.Context(), bad); err != nil || len(verdicts) != 1 {
				t.Fatalf("got %v and %v, want it dealt with", verdicts, err)
			}
		}
		done, err := delivery.Redrive(t.Context(), parse(t, repaired), f.store, f.store, delivery.Gaps{}, "a")
		if records := f.store.Skips("a-1"); err != nil || done.Applied != 1 || !done.Lifted || len(records) != 0 {
			t.Errorf("got %+v, %v and records %v, want it applied and none", done, err, records)
		}
	})
}

// What cannot be looked up is not applied.
func TestMending_NothingIsAppliedBeforeTheRecordsAreKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		away := errors.New("away")
		unknown := newHandler(parse(t, counting), f.store, func(_ *delivery.Config, d *delivery.Deps) { d.Records = noRecords{away} })
		if verdicts, err := unknown.Hold("a").Apply(t.Context(), happened(t, "a", 1)); !errors.Is(err, away) || len(verdicts) != 0 {
			t.Errorf("got %v and %v, want no verdict", verdicts, err)
		}
		if got := f.fields(t, "orders", "a"); got != "" {
			t.Errorf("document: got %s, want none", got)
		}
	})
}

// noRecords are records that cannot be read.
type noRecords struct{ err error }

func (n noRecords) LastSkipped(context.Context, string) (contract.Sequence, error) { return "", n.err }

func (n noRecords) SkippedBy(context.Context, *contract.Event) ([]string, error) { return nil, n.err }
