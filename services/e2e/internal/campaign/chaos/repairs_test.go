package chaos

import (
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/cluster/clustertest"
	"changerelay/services/e2e/internal/harness/orders"
)

// repairing is a campaign whose publisher answers every command by a shell script.
func repairing(t *testing.T, publisher string) *campaign {
	t.Helper()
	return repairingWith(t, publisher, "exit 1", witness.Orders)
}

// repairingWith is repairing with a projector that does so as well, and a read model.
func repairingWith(t *testing.T, publisher, projector string, projection witness.Projection) *campaign {
	t.Helper()
	servers, names := clustertest.Sandbox(t), cluster.DefaultNames()
	w, err := witness.Open(t.Context(), servers, names, projection)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(context.Background()) })
	dir := t.TempDir()
	script := func(name, text string) string {
		binary := filepath.Join(dir, name)
		if err := os.WriteFile(binary, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
		return binary
	}
	c := &campaign{
		cfg: Config{Repairs: "yes", Plain: true}, out: io.Discard, witness: w, done: make(map[string]int),
		repairs: &repairs{
			cancels: make(map[string]bool), damaged: make(map[document]string), touched: make(map[document]bool), begun: make(map[string]bool), rebuilt: make(map[string]int),
		},
		cluster: cluster.New(cluster.Config{
			Binaries: cluster.Binaries{Publisher: script("publisher", publisher), Projector: script("projector", projector)}, Dir: dir, Backend: &servers, Names: names,
			Publishers: 1, Projectors: 1,
		}),
	}
	if err := c.cluster.LayOut(); err != nil {
		t.Fatal(err)
	}
	return c
}

// leaving is a draw by which the leader is left alone.
func leaving() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }

func TestResendSome_OneThatIsRefusedIsNotDone(t *testing.T) {
	t.Parallel()
	c := repairing(t, `echo '{"id":"r","state":"running"}'; exit 1`)
	if _, _, err := resendSome(t.Context(), c, leaving()); !errors.Is(err, errNobody) || len(c.repairs.resends) != 0 {
		t.Errorf("got %v, and %d resends, want none", err, len(c.repairs.resends))
	}
	c = repairing(t, `echo '{"id":"r","state":"running"}'`)
	if _, _, err := resendSome(t.Context(), c, leaving()); err != nil || len(c.repairs.resends) != 1 {
		t.Errorf("one that is not refused: got %v, and %d resends, want one", err, len(c.repairs.resends))
	}
}

// The command ends the latest resend, whoever began it, and may not come to say which.
func TestResendSome_NotesWhichResendsItMayHaveCancelled(t *testing.T) {
	t.Parallel()
	c := repairing(t, `case "$2" in
cancel) echo '{"id":"other","state":"cancelled"}'; exit 1;;
*) echo '{"id":"r","state":"running"}';;
esac`)
	_, end, err := resendSome(t.Context(), c, rand.New(rand.NewPCG(9, 1)))
	if err != nil || len(c.repairs.cancels) != 0 {
		t.Fatalf("got %v, and %v cancelled, want none yet", err, c.repairs.cancels)
	}
	if err := end(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := map[string]bool{"r": true, "other": true}; !maps.Equal(c.repairs.cancels, want) {
		t.Errorf("got %v, want %v", c.repairs.cancels, want)
	}
}

func TestEndResends_OneIsJudgedHoweverManyCannotBe(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status        string
		asked         []resend
		cancels       string
		total, judged int
		wrong         int
	}{
		"none":                          {"", nil, "", 1, 1, 0},
		"a judged one":                  {"done", []resend{{id: "r", selects: everything}}, "", 1, 1, 0},
		"an unsaid one":                 {"done", []resend{{id: "r"}}, "", 2, 1, 0},
		"a cancelled one":               {"cancelled", []resend{{id: "r", selects: everything}}, "r", 2, 1, 0},
		"one that cancelled itself":     {"cancelled", []resend{{id: "r", selects: everything}}, "", 2, 1, 1},
		"one cancelled beside another":  {"cancelled", []resend{{id: "r", selects: everything}}, "s", 2, 1, 1},
		"an unsaid one cancels itself":  {"cancelled", []resend{{id: "r"}}, "", 2, 1, 1},
		"one done that was to be ended": {"done", []resend{{id: "r", selects: everything}}, "r", 1, 1, 0},
	} {
		c := repairing(t, `case "$2" in
status) echo '{"id":"r","state":"`+test.status+`"}'; [ ! -e "$0.asked" ] || echo '{"id":"end","state":"done"}';;
*) touch "$0.asked"; echo '{"id":"end","state":"running"}';;
esac`)
		c.repairs.resends, c.repairs.cancels[test.cancels] = test.asked, true
		if err := c.endResends(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(c.repairs.resends) != test.total || c.repairs.judged != test.judged || c.broken.Count != test.wrong {
			t.Errorf("%s: got %d resends, %d judged and %v, want %d, %d and %d wrong", name, len(c.repairs.resends), c.repairs.judged, c.broken, test.total, test.judged, test.wrong)
		}
	}
}

// Nothing moves while nobody leads, and then not all that was written is there to be compared.
func TestMendAll_WaitsForWhatIsNotSentYet(t *testing.T) {
	t.Parallel()
	c := repairing(t, `echo '{"id":"r","state":"done"}'`)
	c.repairs.resends = []resend{{id: "r", selects: everything}}
	c.witness.Ledger.Wrote([]orders.Event{{Aggregate: "a", Version: 1}})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := c.mendAll(ctx); err == nil || !strings.Contains(err.Error(), "0 of 1 events in the read model") {
		t.Errorf("with an event that is not sent: got %v, want it waited for", err)
	}
}
