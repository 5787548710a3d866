package main

import "testing"

func TestPaceCollector_LeavesItToWhoSetsIt(t *testing.T) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Setenv("GOGC", "")
		t.Setenv("GOMEMLIMIT", "")
		if len(paceCollector()) != headroom {
			t.Errorf("without %s: got no pace of our own", name)
		}
		t.Setenv(name, "100")
		if paceCollector() != nil {
			t.Errorf("with %s: got a pace of our own", name)
		}
	}
}
