package chaos

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
)

// deciding is a campaign whose programs answer every command by a shell script.
func deciding(t *testing.T, script string) *campaign {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "program")
	if err := os.WriteFile(binary, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	c := &campaign{
		out: io.Discard, leftOut: make(map[string]witness.LeftOut),
		cluster: cluster.New(cluster.Config{
			Binaries: cluster.Binaries{Publisher: binary, Projector: binary}, Dir: dir, Publishers: 1, Projectors: 1,
			Backend: &cluster.Endpoints{}, Names: cluster.DefaultNames(),
		}),
	}
	if err := c.cluster.LayOut(); err != nil {
		t.Fatal(err)
	}
	return c
}

// A ledger may say of each command about a checkpoint what it has decided, as one that fails
// may have, and of no other.
func TestDecide_NotesWhenCommandsAboutCheckpointsRan(t *testing.T) {
	t.Parallel()
	c := deciding(t, `[ "$2" != reset ]`)
	before := time.Now()
	for _, args := range [][]string{{"checkpoint", "set", "T"}, {"repartition"}, {"checkpoint", "reset"}, {"parked", "replay", "--all"}} {
		what, _, err := command(publisher, nil, func() []string { return args })(t.Context(), c, leaving())
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	got := c.doings().Moves
	if len(got) != 2 || got[0].Decision != "set" || got[1].Decision != "reset" {
		t.Fatalf("got %v, want one that sets and one that resets", got)
	}
	if got[0].From.Before(before) || got[0].To.Before(got[0].From) || got[1].From.Before(got[0].To) || got[1].To.After(time.Now()) {
		t.Errorf("got %v, want the times of one after the other", got)
	}
}

// What one group's operator discards another group has all the same.
func TestDiscard_IsNotedOfTheGroupThatHasParkedIt(t *testing.T) {
	t.Parallel()
	c := deciding(t, `[ "$3" = -- ] && echo "{\"event_id\":\"$5\",\"version\":7}"`)
	other, err := c.cluster.Twin(c.cluster.Projectors[0], beside, readModelGroup+"="+beside)
	if err != nil {
		t.Fatal(err)
	}
	c.discard(t.Context(), other, &odd{aggregate: "a"}, "--5-SI8yYI") // no flag
	this := validate.Event{Aggregate: "a", Version: 7}
	if _, own := c.doings().LeftOut[ownGroup][this]; own || c.given() != 1 {
		t.Errorf("got %v, want nothing given up by the first group", c.doings().LeftOut)
	}
	c.discard(t.Context(), c.cluster.Projectors[0], &odd{aggregate: "a"}, "e")
	_, of := c.doings().LeftOut[beside][this]
	if _, own := c.doings().LeftOut[ownGroup][this]; !own || !of || c.given() != 2 {
		t.Errorf("got %v, want it given up by both", c.doings().LeftOut)
	}
}

// How an event was given up first is not forgotten when it is given up again.
func TestGiveUp_KeepsHowAnEventWasGivenUp(t *testing.T) {
	t.Parallel()
	c := deciding(t, "exit 1")
	o := &odd{aggregate: "a"}
	c.giveUpChange(o, "first")
	c.giveUp(ownGroup, o.aggregate, wrongVersion, witness.Leaving{Deleted: true})
	c.giveUpChange(o, "second")
	c.giveUp(ownGroup, o.aggregate, wrongVersion, witness.Leaving{})
	got := c.doings().LeftOut[ownGroup][validate.Event{Aggregate: "a", Version: wrongVersion}]
	if !got.Deleted || !slices.Equal(got.Changes, []string{"first", "second"}) {
		t.Errorf("got %v, want it deleted, and both changes", got)
	}
}
