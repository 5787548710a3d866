package app_test

import (
	"io"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// parkAnother has one more change parked, beside as many as are listed, and returns its id.
func (p *process) parkAnother(t *testing.T, c config.Config, servers testserver.Servers) string {
	t.Helper()
	before, err := lines(t, c, "parked", "list", "--all")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, line := range before {
		known[line.ID] = true
	}
	events(t, servers).unmappable(t)
	var fresh string
	testserver.Eventually(t, "another to be parked, and counted", func() bool {
		listed, err := lines(t, c, "parked", "list", "--all")
		if err != nil {
			return false
		}
		for _, line := range listed {
			if !known[line.ID] {
				fresh = line.ID
			}
		}
		return fresh != "" && p.status(t).InFlight == 0
	})
	return fresh
}

// copies are the documents of a collection, as a backup has them.
func copies(t *testing.T, of *mongo.Collection) []bson.Raw {
	t.Helper()
	cursor, err := of.Find(t.Context(), bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	var all []bson.Raw
	if err := cursor.All(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestParked_WhatIsPutBackMakesUpForNoOther has an older copy of the collection restored
// over one that has another change, in place of it and with more beside it, with no term
// in between and with one.
func TestParked_WhatIsPutBackMakesUpForNoOther(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		old   int
		again bool
	}{
		"as many, under a leader":                {old: 1},
		"as many, before the next leader begins": {old: 1, again: true},
		"more, under a leader":                   {old: 2},
		"more, before the next leader begins":    {old: 2, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			c := configured(servers)
			_, p := park(t, c, servers, tt.old)
			changes := state(t, servers, "parked_changes")
			dump := copies(t, changes)
			lose(t, servers, tt.old)
			p.await(t, "the loss to be shown", func(s status.Status) bool { return s.GapCounts["lost"] == 1 })
			testserver.Eventually(t, "it to be counted out", func() bool { return noted(t, servers).Count == 0 })
			lost := p.parkAnother(t, c, servers)
			if tt.again {
				if err := p.quit(); err != nil {
					t.Fatal(err)
				}
			}
			wipe(t, changes)
			for _, one := range dump {
				put(t, changes, one)
			}
			if tt.again {
				if got := statusText(t, c); !strings.Contains(got, lost) {
					t.Errorf("status says %s, want that %s is gone", got, lost)
				}
				p = run(t, c)
			}
			p.await(t, "the second loss to be shown", func(s status.Status) bool { return s.GapCounts["lost"] == 2 })
			if got := lostEntries(t, servers); !strings.Contains(got[1].Error, "1 of 1 changes") || !strings.Contains(got[1].Error, lost) {
				t.Errorf("the ledger says %+v, want that %s is gone", got, lost)
			}
			testserver.Eventually(t, "what was put back to be counted", func() bool { return noted(t, servers).Count == int64(tt.old) })
			p.again(t, c)
			if n := len(lostEntries(t, servers)); n != 2 {
				t.Errorf("%d entries of the ledger after another term, want 2", n)
			}
		})
	}
}

// TestParked_WhatWasPurgedMakesUpForNoOther restores a copy from before a purge over a
// change that was parked since.
func TestParked_WhatWasPurgedMakesUpForNoOther(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	ids, p := park(t, c, servers, 1)
	mapped := c
	mapped.FieldType = "kind"
	if _, err := lines(t, mapped, "parked", "replay", ids[0]); err != nil {
		t.Fatal(err)
	}
	changes := state(t, servers, "parked_changes")
	dump := copies(t, changes)
	testserver.Eventually(t, "it to be purged", func() bool {
		left, err := changes.CountDocuments(t.Context(), bson.D{})
		return err == nil && left == 0 || runCommand(t, c, io.Discard, "parked", "purge", "--older-than", "1ms") != nil
	})
	lost := p.parkAnother(t, c, servers)
	wipe(t, changes)
	for _, one := range dump {
		put(t, changes, one)
	}
	p.await(t, "the loss to be shown", func(s status.Status) bool { return s.GapCounts["lost"] == 1 })
	if got := lostEntries(t, servers); !strings.Contains(got[0].Error, lost) {
		t.Errorf("the ledger says %+v, want that %s is gone", got, lost)
	}
}

// swap puts a change of an older copy in place of another one.
func swap(t *testing.T, changes *mongo.Collection, id string) {
	t.Helper()
	another := bson.M{}
	if err := changes.FindOneAndDelete(t.Context(), bson.D{{Key: "_id", Value: id}}).Decode(&another); err != nil {
		t.Fatal(err)
	}
	another["_id"] = "of an older copy"
	if _, err := changes.InsertOne(t.Context(), another); err != nil {
		t.Fatal(err)
	}
}

// TestParked_WhatAnEarlierReleaseHasParkedIsNamedByTheNextTerm has names of none of what
// is parked, or of some of it, and then another change in place of one that is.
func TestParked_WhatAnEarlierReleaseHasParkedIsNamedByTheNextTerm(t *testing.T) {
	t.Parallel()
	for name, names := range map[string]bson.D{
		"that made no names":         {{Key: "$unset", Value: bson.D{{Key: "kept", Value: ""}}}},
		"between two that made them": {{Key: "$pop", Value: bson.D{{Key: "kept.ids", Value: 1}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			c := configured(servers, patient)
			ids, p := park(t, c, servers, 2)
			if err := p.quit(); err != nil {
				t.Fatal(err)
			}
			if _, err := state(t, servers, "resume_tokens").UpdateOne(t.Context(), bson.D{}, names); err != nil {
				t.Fatal(err)
			}
			p = run(t, c)
			p.await(t, "the next to lead", leading)
			swap(t, state(t, servers, "parked_changes"), ids[1])
			p.again(t, c)
			if got := lostEntries(t, servers); len(got) != 1 || !strings.Contains(got[0].Error, "1 of 2 changes") || !strings.Contains(got[0].Error, ids[1]) {
				t.Errorf("the ledger says %+v, want that %s is gone", got, ids[1])
			}
		})
	}
}

// TestParked_APurgeThatIsRefusedTakesNoName has a role that may not remove changes, and
// then another change in place of the one that was to be purged.
func TestParked_APurgeThatIsRefusedTakesNoName(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, patient)
	ids, _ := park(t, c, servers, 2)
	if _, err := lines(t, c, "parked", "discard", ids[0]); err != nil {
		t.Fatal(err)
	}
	testserver.Fault(t, servers, `{"kind":"mongodb.fail","commands":["delete"],"code":13}`)
	testserver.Eventually(t, "the purge to be refused", func() bool {
		return runCommand(t, c, io.Discard, "parked", "purge", "--older-than", "1ms") != nil
	})
	swap(t, state(t, servers, "parked_changes"), ids[0])
	if got := statusText(t, c); !strings.Contains(got, "1 of 2 changes") || !strings.Contains(got, ids[0]) {
		t.Errorf("status says %s, want that %s is gone", got, ids[0])
	}
}
