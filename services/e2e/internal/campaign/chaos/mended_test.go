package chaos

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/source"
)

// comparing answers a comparison as a projector does whose views lack two orders, and writes
// down what else it is asked for.
const comparing = `case "$1" in
verify)
	for view in mended placed; do for id in a b; do echo "{\"projection\":\"$view\",\"aggregate\":\"$id\",\"difference\":\"lost\"}"; done; done
	echo '{"verified":false,"commands":["projector rebuild --projection mended --aggregate a --aggregate b", "projector rebuild --projection placed --aggregate a --aggregate b"]}'
	exit 1;;
*) echo "$*" >> "$0.asked";;
esac`

// lacking is a campaign whose views have none of two orders.
func lacking(t *testing.T) *campaign {
	t.Helper()
	c := repairingWith(t, "exit 1", comparing, witness.Shadowed.WithKeyed().Repaired())
	names := c.cluster.Names()
	events := []orders.Event{{Aggregate: "a", Version: 1, Type: orders.Placed, Data: orders.Data{"customer": "x"}}, {Aggregate: "b", Version: 1, Type: orders.Placed, Data: orders.Data{"customer": "x"}}}
	for i := range events {
		events[i].Time = time.Now().UTC().Truncate(time.Millisecond)
	}
	if err := source.NewWriter(c.witness.Client, names.SourceDatabase, names.SourceCollection).Insert(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	c.witness.Ledger.Wrote(events)
	return c
}

// asked are the commands that a script has written down.
func (c *campaign) asked(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(c.cluster.Projectors[0].Binary() + ".asked")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// What is mended at the end must have been damaged: nothing else would be left to be seen.
func TestMendDamage_WhatNobodyHasDamagedIsFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		damaged []document
		wrong   int
	}{
		"all damaged":            {[]document{{"mended", "a"}, {"mended", "b"}, {"placed", "a"}, {"placed", "b"}}, 0},
		"damaged in one view":    {[]document{{"mended", "a"}, {"mended", "b"}}, 2},
		"one document undamaged": {[]document{{"mended", "a"}, {"mended", "b"}, {"placed", "a"}}, 1},
		"none damaged":           {nil, 4},
	} {
		c := lacking(t)
		for _, d := range test.damaged {
			c.repairs.touched[d] = true
		}
		if some, err := c.mendDamage(t.Context()); err != nil || !some {
			t.Fatalf("%s: got %t, %v, want something mended", name, some, err)
		}
		if c.repairs.undamaged.Count != test.wrong || c.broken.Count > 0 {
			t.Errorf("%s: got %v, and commands %v, want %d", name, c.repairs.undamaged, c.broken, test.wrong)
		}
		if asked := c.asked(t); len(asked) != 2 || !strings.Contains(asked[0], "--aggregate a --aggregate b") {
			t.Errorf("%s: got commands %q, want both as they are offered", name, asked)
		}
	}
}

// A rebuild that comes to its end replaces documents that nobody has looked at.
func TestMendDamage_LooksBeforeARebuildThatWasKilledIsEnded(t *testing.T) {
	t.Parallel()
	c := lacking(t)
	c.cfg.Plain = false
	for len(c.views()) < len(observable) {
		c.cfg.Seed++
	}
	if err := os.WriteFile(c.cluster.Projectors[0].Binary(), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	_, err := c.mendDamage(t.Context())
	const single = 2 + 2 // both orders, in both views of single ones
	if got := c.repairs.undamaged; err != nil || got.Count <= single {
		t.Errorf("got %v, %v, want what each of the views %q lacks", got, err, c.views())
	}
}

// Beside faults an event may be on its way for long, and must come by itself.
func TestVerifyAndMend_LeavesAloneWhatNobodyHasDamaged(t *testing.T) {
	t.Parallel()
	c := lacking(t)
	c.cfg.Projectors, c.taken = 1, make(map[string]bool)
	c.repairs.touched[document{"mended", "b"}] = true
	if _, _, err := verifyAndMend(t.Context(), c, rand.New(rand.NewPCG(1, 1))); err != nil || c.broken.Count > 0 {
		t.Errorf("got %v, %v, want nothing wrong", err, c.broken)
	}
	if asked := c.asked(t); len(asked) != 1 || !strings.Contains(asked[0], "--projection mended --aggregate b") || strings.Contains(asked[0], "--aggregate a") {
		t.Errorf("got commands %q, want one for what is damaged", asked)
	}
}

// Beside damage nothing halts an aggregate whose events can be applied.
func TestDealWithHalts_AHaltThatNoDamageExplainsIsFound(t *testing.T) {
	t.Parallel()
	c := repairingWith(t, "exit 1", comparing, witness.Shadowed.Repaired())
	c.repairs.touched[document{"placed", "damaged"}] = true
	halt := func(ids ...string) {
		t.Helper()
		for _, id := range ids {
			if _, err := c.witness.ReadModel().Collection(halts).InsertOne(t.Context(), bson.D{{Key: "_id", Value: id}, {Key: "reason", Value: "no reason"}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	halt("damaged")
	if halted, err := c.dealWithHalts(t.Context()); err != nil || !halted || c.repairs.needless.Count != 0 {
		t.Errorf("one that was damaged: got %t, %v, %v, want it redriven, and nothing wrong", halted, err, c.repairs.needless)
	}
	halt("other")
	if halted, err := c.dealWithHalts(t.Context()); err != nil || !halted || c.repairs.needless.Count != 1 {
		t.Errorf("and one that was not: got %t, %v, %v, want one wrong", halted, err, c.repairs.needless)
	}
	if got, want := c.asked(t), []string{"parked redrive damaged", "parked redrive damaged", "parked redrive other"}; !slices.Equal(got, want) {
		t.Errorf("got commands %q, want %q", got, want)
	}
}
