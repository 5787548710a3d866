package cluster

import (
	"os"
	"path/filepath"
	"testing"
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
