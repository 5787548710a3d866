package readmodel_test

import (
	"testing"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
)

// Two versions of a projection are built side by side in one database: an event
// that only one of them cannot project halts nothing in the other.
func TestGroup_HaltsOfOneGroupHoldUpNoOther(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	one := readmodel.New(client, readmodel.Config{Database: database})
	other := readmodel.New(client, readmodel.Config{Database: database, Group: "other"})
	ctx := t.Context()
	e := readmodeltest.Event("a", 1)
	if _, err := other.Parking.Halt(ctx, delivery.Halt{Event: *e, Reason: "because"}); err != nil {
		t.Fatal(err)
	}
	if err := other.Parking.Park(ctx, []delivery.Parked{{Event: *e}}); err != nil {
		t.Fatal(err)
	}
	if err := other.AggregateVersions.AdvanceVersion(ctx, "a", 7); err != nil {
		t.Fatal(err)
	}
	if got, err := one.AggregateVersions.LastVersion(ctx, "a"); err != nil || got.Known {
		t.Errorf("the last version in one group: got %+v and %v, want none seen", got, err)
	}
	dying := other.Process("p-1", "p")
	for range 2 {
		if err := dying.Beat(ctx, true); err != nil {
			t.Fatal(err)
		}
		dying = other.Process("p-2", "p")
	}
	calm := one.Process("q-1", "q")
	if err := calm.Beat(ctx, true); err != nil || calm.CrashedLately() {
		t.Errorf("a crash of another group: got %t and %v, want none", calm.CrashedLately(), err)
	}
	if halted, err := one.Halts.Halted(ctx, "a"); err != nil || halted != "" {
		t.Errorf("halted in one group: got %q and %v, want not", halted, err)
	}
	if lifted, err := one.Parked.Lift(ctx, "a"); err != nil || !lifted {
		t.Errorf("lift in one group: got %t and %v, want nothing parked there", lifted, err)
	}
	if halted, err := other.Halts.Halted(ctx, "a"); err != nil || halted == "" {
		t.Errorf("halted in the other: got %q and %v, want still", halted, err)
	}
}
