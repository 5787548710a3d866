package cluster

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestPrepare_WhatIsPrintedHoldsInOtherDirectories asks by paths of where the tool was called.
func TestPrepare_WhatIsPrintedHoldsInOtherDirectories(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for _, name := range []string{"sandbox", "publisher", "projector"} {
		if err := os.WriteFile(filepath.Join(bin, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	given, err := filepath.Rel(here, bin)
	if err != nil {
		t.Fatal(err)
	}
	place, err := Prepare(t.Context(), "up", Wish{Dir: filepath.Join(given, "run"), Bin: given})
	if err != nil || place.Dir != filepath.Join(bin, "run") || place.Binaries.Publisher != filepath.Join(bin, "publisher") {
		t.Errorf("Prepare = %+v, %v, want it below %s", place, err, bin)
	}
}

func TestNewDir_TwoRunsOfOneSecondHaveTheirOwn(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), ".run")
	for _, want := range []string{"chaos-1", "chaos-1-2", "chaos-1-3"} {
		if got, err := newDir(parent, "chaos-1"); err != nil || got != filepath.Join(parent, want) {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}

func TestRunName_TwoRunsOfOneSecondHaveTheirOwn(t *testing.T) {
	t.Parallel()
	began := time.Now()
	if one, other := RunName(began), RunName(began); one == other {
		t.Errorf("got %s twice", one)
	}
}
