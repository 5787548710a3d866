package app_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// aside is what the checkpoint says of parked changes.
type aside struct {
	Count  int64
	Coming []bson.Raw
}

func noted(t *testing.T, servers testserver.Servers) aside {
	t.Helper()
	var kept struct{ Parked aside }
	if err := bson.Unmarshal(only(t, state(t, servers, "resume_tokens")), &kept); err != nil {
		t.Fatal(err)
	}
	return kept.Parked
}

// TestParked_OneThatWasNotCountedMakesUpForNoneThatIsLost loses a change beside another
// that was parked, and not counted: by a publisher that died behind it, or by one of an
// earlier release.
func TestParked_OneThatWasNotCountedMakesUpForNoneThatIsLost(t *testing.T) {
	t.Parallel()
	for name, died := range map[string]func(id string) (note, change bson.D){
		"a publisher that died": func(id string) (note, change bson.D) {
			return bson.D{{Key: "parked.count", Value: int64(2)}, {Key: "parked.coming", Value: bson.A{bson.D{{Key: "id", Value: id}}}}}, bson.D{{Key: "reason", Value: "x"}}
		},
		"an earlier release, after a publisher that died": func(id string) (note, change bson.D) {
			return bson.D{{Key: "parked.count", Value: int64(2)}, {Key: "parked.coming", Value: bson.A{bson.D{{Key: "id", Value: id}}}}}, bson.D{{Key: "partition", Value: nil}}
		},
		"an earlier release": func(string) (note, change bson.D) {
			return bson.D{{Key: "parked.count", Value: int64(2)}}, bson.D{{Key: "partition", Value: nil}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			c := configured(servers, patient)
			ids, p := park(t, c, servers, 3)
			if err := p.quit(); err != nil {
				t.Fatal(err)
			}
			note, change := died(ids[0])
			for collection, update := range map[string]bson.D{"resume_tokens": note, "parked_changes": change} {
				which := bson.D{}
				if collection == "parked_changes" {
					which = bson.D{{Key: "_id", Value: ids[0]}}
				}
				if _, err := state(t, servers, collection).UpdateOne(t.Context(), which, bson.D{{Key: "$set", Value: update}}); err != nil {
					t.Fatal(err)
				}
			}
			lose(t, servers, 1)
			if found, _ := examined(t, servers, c); !strings.Contains(found, "lacks 1 of 2 changes") {
				t.Errorf("doctor found\n%s, want the one that is lost", found)
			}
			p = run(t, c)
			p.await(t, "the next to lead", leading)
			if got := lostEntries(t, servers); len(got) != 1 || !strings.Contains(got[0].Error, "1 of 2 changes") {
				t.Errorf("the ledger says %+v, want 1 of 2", got)
			}
			if got := noted(t, servers); got.Count != 2 || len(got.Coming) != 0 {
				t.Errorf("the checkpoint says %+v, want the two that are there counted", got)
			}
			p.again(t, c)
			if got := lostEntries(t, servers); len(got) != 1 {
				t.Errorf("the ledger says %+v after another term, want one entry", got)
			}
		})
	}
}

// TestParked_AChangeIsNamedBeforeItIsParked has a publisher that cannot write changes
// down until it is stopped.
func TestParked_AChangeIsNamedBeforeItIsParked(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, patient)
	changes := state(t, servers, "parked_changes")
	if err := changes.Database().CreateView(t.Context(), changes.Name(), "nothing", bson.A{}); err != nil {
		t.Fatal(err)
	}
	p := run(t, c)
	p.await(t, "the publisher to lead", leading)
	events(t, servers).unmappable(t)
	testserver.Eventually(t, "the change to be named", func() bool {
		now := noted(t, servers)
		return now.Count == 0 && len(now.Coming) == 1
	})
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	if err := changes.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	p = run(t, c)
	p.await(t, "the change to be parked", func(s status.Status) bool { return s.Parked == 1 && s.InFlight == 0 })
	if got := noted(t, servers); got.Count != 1 || len(got.Coming) != 0 {
		t.Errorf("the checkpoint says %+v, want one that is there", got)
	}
	p.again(t, c)
	if got := lostEntries(t, servers); len(got) != 0 {
		t.Errorf("the ledger says %+v, want no loss", got)
	}
}

// TestParked_AChangeThatWasNamedAndThenSentIsForgotten has a publisher stop before it has
// parked a change, which the next one sends; what was parked beside it is missed still.
func TestParked_AChangeThatWasNamedAndThenSentIsForgotten(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, patient)
	_, p := park(t, c, servers, 1)
	changes := state(t, servers, "parked_changes")
	copied := only(t, changes)
	if err := changes.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := changes.Database().CreateView(t.Context(), changes.Name(), "nothing", bson.A{}); err != nil {
		t.Fatal(err)
	}
	if _, err := events(t, servers).InsertOne(t.Context(), bson.D{{Key: "aggregateId", Value: "order-2"}, {Key: "version", Value: 1}, {Key: "kind", Value: "OrderPlaced"}}); err != nil {
		t.Fatal(err)
	}
	testserver.Eventually(t, "the change to be named", func() bool { return len(noted(t, servers).Coming) == 1 })
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	if err := changes.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(t, changes, copied)
	mapped := c
	mapped.FieldType = "kind"
	p = run(t, mapped)
	p.await(t, "it to be sent", sent(1))
	if got := noted(t, servers); got.Count != 1 || len(got.Coming) != 1 {
		t.Errorf("the checkpoint says %+v while the term lasts, want one there, and one that may come yet", got)
	}
	p = p.again(t, mapped)
	if got := noted(t, servers); got.Count != 1 || len(got.Coming) != 0 {
		t.Errorf("the checkpoint says %+v, want one that is there, and none coming", got)
	}
	lose(t, servers, 1)
	p.again(t, mapped)
	if got := lostEntries(t, servers); len(got) != 1 || !strings.Contains(got[0].Error, "1 of 1 changes") {
		t.Errorf("the ledger says %+v, want the one that is lost", got)
	}
}

// TestParked_ALossUnderALeaderIsInTheLedger loses changes one after another, with no
// term, and no command, in between.
func TestParked_ALossUnderALeaderIsInTheLedger(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	_, p := park(t, c, servers, 3)
	for lost := range int64(2) {
		lose(t, servers, 1)
		p.await(t, "the loss to be shown", func(s status.Status) bool { return s.GapCounts["lost"] == lost+1 })
		testserver.Eventually(t, "it to be counted out", func() bool { return noted(t, servers).Count == 2-lost })
	}
	p.again(t, c)
	if got := lostEntries(t, servers); len(got) != 2 {
		t.Errorf("the ledger says %+v after another term, want two entries", got)
	}
}

// TestParked_WhatIsPutBackUnderALeaderIsMissedAgain restores what was lost, and loses it
// once more, with no term in between.
func TestParked_WhatIsPutBackUnderALeaderIsMissedAgain(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	_, p := park(t, c, servers, 1)
	changes := state(t, servers, "parked_changes")
	copied := only(t, changes)
	for lost := range int64(2) {
		lose(t, servers, 1)
		p.await(t, "the loss to be shown", func(s status.Status) bool { return s.GapCounts["lost"] == lost+1 })
		testserver.Eventually(t, "it to be counted out", func() bool { return noted(t, servers).Count == 0 })
		put(t, changes, copied)
		testserver.Eventually(t, "it to be counted again", func() bool { return noted(t, servers).Count == 1 })
	}
}

// TestParked_APurgeThatDiedHidesNoLossOnceItIsOver has a purge that counted a change out
// long ago, and never removed it, under a leader.
func TestParked_APurgeThatDiedHidesNoLossOnceItIsOver(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	_, p := park(t, c, servers, 2)
	died := bson.D{{Key: "$set", Value: bson.D{{Key: "purged", Value: int64(1)}, {Key: "purgedAt", Value: time.Now().Add(-time.Hour)}}}}
	if _, err := state(t, servers, "resume_tokens").UpdateMany(t.Context(), bson.D{}, died); err != nil {
		t.Fatal(err)
	}
	testserver.Eventually(t, "both to be counted again", func() bool { return noted(t, servers).Count == 3 })
	lose(t, servers, 1)
	p.await(t, "the loss to be shown", func(s status.Status) bool { return s.GapCounts["lost"] == 1 })
	if got := lostEntries(t, servers); len(got) != 1 || !strings.Contains(got[0].Error, "1 of 2 changes") {
		t.Errorf("the ledger says %+v, want 1 of 2", got)
	}
}

// TestParked_ALossOfARetiredPartitionIsInTheLedger loses, under a leader, what a
// partition had parked that is none of its stream any more.
func TestParked_ALossOfARetiredPartitionIsInTheLedger(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	_, p := park(t, c, servers, 1)
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	c.Partitions = 2
	if err := runCommand(t, c, io.Discard, "repartition"); err != nil {
		t.Fatal(err)
	}
	p = run(t, c)
	p.awaitOverview(t, "both partitions to be led", leads(2))
	lose(t, servers, 1)
	testserver.Eventually(t, "the loss to be entered", func() bool { return len(lostEntries(t, servers)) == 1 })
}

// TestParked_ACheckpointFromBeforeAPurgeTellsOfNoLoss has the checkpoint alone restored.
func TestParked_ACheckpointFromBeforeAPurgeTellsOfNoLoss(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, patient)
	ids, p := park(t, c, servers, 3)
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	before := only(t, state(t, servers, "resume_tokens"))
	if _, err := lines(t, c, append([]string{"parked", "discard"}, ids[:2]...)...); err != nil {
		t.Fatal(err)
	}
	testserver.Eventually(t, "two to be purged", func() bool {
		purged := runCommand(t, c, io.Discard, "parked", "purge", "--older-than", "1ms")
		left, err := lines(t, c, "parked", "list", "--all")
		return purged == nil && err == nil && len(left) == 1
	})
	put(t, state(t, servers, "resume_tokens"), before)
	p = run(t, c)
	p.await(t, "the next to lead", leading)
	if got := lostEntries(t, servers); len(got) != 0 {
		t.Errorf("the ledger says %+v, want no loss", got)
	}
	lose(t, servers, 1)
	p.again(t, c)
	if got := lostEntries(t, servers); len(got) != 1 || !strings.Contains(got[0].Error, "1 of 1 changes") {
		t.Errorf("the ledger says %+v, want 1 of 1", got)
	}
}

// TestParked_OfAPartitionWhoseCheckpointIsGoneIsCountedByTheFirst loses the checkpoint of
// one of two partitions, which became one, and then what it had parked.
func TestParked_OfAPartitionWhoseCheckpointIsGoneIsCountedByTheFirst(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, split(2), patient)
	p := run(t, c)
	p.awaitOverview(t, "both partitions to be led", leads(2))
	events(t, servers).unmappable(t)
	checkpoints := state(t, servers, "resume_tokens")
	testserver.Eventually(t, "the change to be parked, and noted", func() bool {
		n, err := checkpoints.CountDocuments(t.Context(), bson.D{{Key: "parked.count", Value: int64(1)}})
		return err == nil && n == 1
	})
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	c.Partitions = 1
	if err := runCommand(t, c, io.Discard, "repartition"); err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoints.DeleteMany(t.Context(), bson.D{{Key: "retired", Value: true}}); err != nil {
		t.Fatal(err)
	}
	p = run(t, c)
	p.await(t, "the next publisher to lead", leading)
	if got := noted(t, servers); got.Count != 1 || len(got.Coming) != 0 {
		t.Errorf("the checkpoint says %+v, want the change counted", got)
	}
	lose(t, servers, 1)
	p.again(t, c)
	if got := lostEntries(t, servers); len(got) != 1 || !strings.Contains(got[0].Error, "1 of 1 changes") {
		t.Errorf("the ledger says %+v, want 1 of 1", got)
	}
}
