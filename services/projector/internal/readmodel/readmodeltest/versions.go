package readmodeltest

import (
	"context"
	"testing"

	"changerelay/pkg/contract"
)

// LastVersion implements delivery.Versions.
func (f *Fake) LastVersion(_ context.Context, aggregate string) (contract.Version, error) {
	if err := f.fail("last version"); err != nil {
		return contract.Version{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.versions[aggregate], nil
}

// AdvanceVersion implements delivery.Versions.
func (f *Fake) AdvanceVersion(_ context.Context, aggregate string, version int64) error {
	if err := f.fail("advance version"); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if last := f.versions[aggregate]; !last.Known || version > last.Number {
		f.versions[aggregate] = contract.VersionOf(version)
	}
	return nil
}

// ForgetVersion implements delivery.Versions.
func (f *Fake) ForgetVersion(_ context.Context, aggregate string) error {
	if err := f.fail("forget version"); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.versions, aggregate)
	return nil
}

func versionsSuite(t *testing.T, fresh func(t *testing.T) ReadModel) {
	m := fresh(t)
	ctx := t.Context()
	check := func(when, aggregate string, want contract.Version) {
		t.Helper()
		if got, err := m.LastVersion(ctx, aggregate); err != nil || got != want {
			t.Errorf("%s: got %v and %v, want %v", when, got, err, want)
		}
	}
	check("before the first event", "a", contract.Version{})
	for _, version := range []int64{3, 7, 5} {
		if err := m.AdvanceVersion(ctx, "a", version); err != nil {
			t.Fatal(err)
		}
	}
	check("after 3, 7 and 5", "a", contract.VersionOf(7))
	check("of another", "b", contract.Version{})
	for range 2 {
		if err := m.ForgetVersion(ctx, "a"); err != nil {
			t.Fatal(err)
		}
	}
	check("forgotten", "a", contract.Version{})
	if err := m.AdvanceVersion(ctx, "a", 0); err != nil {
		t.Fatal(err)
	}
	check("from version 0 on", "a", contract.VersionOf(0))
}
