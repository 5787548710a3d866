package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/rebuild"
)

// revise has a rebuild's record go on, and waits until the projector works by it.
func (v *verifying) revise(store *readmodel.Store, of *projection.Version, next func(rebuild.Record) rebuild.Record) {
	v.t.Helper()
	was := recordOf(v.t, store, of)
	if err := store.Revise(v.t.Context(), was, next(was)); err != nil {
		v.t.Fatal(err)
	}
	until(v.t, "the projector works by the record", func() bool {
		records, err := store.Rebuilds(v.t.Context())
		if err != nil {
			return false
		}
		others, all, err := store.Elsewhere(v.t.Context(), records.Signature(v.projections))
		return err == nil && all > 0 && len(others) == 0
	})
}

func recordOf(t *testing.T, store *readmodel.Store, of *projection.Version) rebuild.Record {
	t.Helper()
	records, err := store.Rebuilds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return records.Of(of)
}

// Once readers are switched to new documents those are compared and mended, also while the
// old ones are kept; and the old ones while readers see those again.
func TestVerify_ComparesWhatReadersSeeWhileTheOldDocumentsAreKept(t *testing.T) {
	v := newVerifying(t, "verify-grace")
	store := readmodel.New(v.db.Client(), readmodel.Config{Database: v.db.Name()})
	of, _ := projection.VersionOf(v.projections[0])
	v.happen("a", 1, 2)
	v.awaitSequence("orders_v1", "a", 2)
	v.revise(store, &of, func(r rebuild.Record) rebuild.Record {
		return r.Begin(&of, 1, projection.Content(v.projections[0]), "somebody", "a test", time.Now())
	})
	send(t, v.topic, again(2, happens("a", 1, 2))...)
	v.awaitSequence("orders_v2", "a", 2)
	v.set("orders_v2", "a", "sum", 99)
	v.wantEqual()

	shows := func(number int) {
		t.Helper()
		if err := store.SwitchView(t.Context(), of.Other(number)); err != nil {
			t.Fatal(err)
		}
	}
	shows(2)
	if last := v.wantEqual(); last["not_compared"].(map[string]any)["orders"] == nil {
		t.Errorf("the sum: got %v, want the version not compared that is being filled", last)
	}
	shows(1)
	v.revise(store, &of, rebuild.Record.Follow)
	_ = os.Remove(filepath.Join(v.dir, "asked"))
	v.has("now", happens("a", 1, 2, 3)...)
	done := make(chan error, 1)
	go func() {
		_, err := runCommand(t, "verify", "--publisher", v.publisher, "--wait", "5m")
		done <- err
	}()
	until(t, "it is looked at again", func() bool {
		asked, _ := os.ReadFile(filepath.Join(v.dir, "asked"))
		return strings.Contains(string(asked), "--aggregate=a")
	})
	shows(2)
	v.revise(store, &of, func(r rebuild.Record) rebuild.Record { return r.Switch(time.Now()) })
	send(t, v.topic, happens("a", 3)...)
	if err := <-done; err == nil || !strings.Contains(err.Error(), "gone on meanwhile") {
		t.Errorf("while readers were switched: got %v, want that it is to be run again", err)
	}
	v.awaitSequence("orders_v2", "a", 3)
	differences, _, _ := v.found("--publisher", v.publisher)
	wantDifferences(t, differences, map[string]string{"orders a": "altered"})
	if _, err := runCommand(t, "rebuild", "--aggregate", "a", "--why", "a test", "--publisher", v.publisher); err != nil {
		t.Errorf("mend what readers see: %v", err)
	}
	if got := fmt.Sprint(v.sees("orders", "a")["sum"]); got != "6" {
		t.Errorf("readers see the sum %s, want 6", got)
	}
	v.wantEqual("--projection", "orders")

	v.set("orders_v2", "a", "sum", 99)
	shows(1)
	v.wantEqual("--projection", "orders")
	v.wantNothingLeft()
}
