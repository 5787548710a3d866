package app_test

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// again stops a publisher and runs another one, until it leads.
func (p *process) again(t *testing.T, c config.Config) *process {
	t.Helper()
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	next := run(t, c)
	next.await(t, "the next publisher to lead", leading)
	return next
}

// lose removes parked changes without a trace, the latest first.
func lose(t *testing.T, servers testserver.Servers, n int) {
	t.Helper()
	latest := options.FindOneAndDelete().SetSort(bson.D{{Key: "position", Value: -1}})
	for range n {
		if err := state(t, servers, "parked_changes").FindOneAndDelete(t.Context(), bson.D{}, latest).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// lostEntries are those of the ledger for parked changes that are gone.
func lostEntries(t *testing.T, servers testserver.Servers) []struct{ Error string } {
	t.Helper()
	cursor, err := state(t, servers, "stream_gaps").Find(t.Context(), bson.D{{Key: "decision", Value: "lost"}})
	if err != nil {
		t.Fatal(err)
	}
	var entries []struct{ Error string }
	if err := cursor.All(t.Context(), &entries); err != nil {
		t.Fatal(err)
	}
	return entries
}

// statusText is what publisher status prints.
func statusText(t *testing.T, c config.Config) string {
	t.Helper()
	var out bytes.Buffer
	if err := runCommand(t, c, &out, "status", "--json"); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// wayBack matches how many are gone, and the command that goes back before them, with
// the flag that it takes while publishers run.
var wayBack = regexp.MustCompile(`(\d of \d changes).* publisher checkpoint set (\S+) --why TEXT, with (--force) while publishers run`)

// TestParked_WhatACopyHadParkedComesBackWithAnother loses documents that a copy could
// not send.
func TestParked_WhatACopyHadParkedComesBackWithAnother(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	source.unmappable(t)
	c := configured(servers, patient, func(c *config.Config) { c.StartAt = "snapshot" })
	p := run(t, c)
	p.await(t, "the document to be parked", func(s status.Status) bool { return leading(s) && s.Copy == nil && s.Parked == 1 && s.InFlight == 0 })
	lose(t, servers, 1)
	got := statusText(t, c)
	if !strings.Contains(got, "with START_AT=snapshot and publisher checkpoint reset --why TEXT, with --force") || strings.Contains(got, "checkpoint set") {
		t.Fatalf("status says %s, want another copy", got)
	}
	if err := runCommand(t, c, io.Discard, "checkpoint", "reset", "--why", "parked changes are gone", "--force"); err != nil {
		t.Fatal(err)
	}
	source.write(t, 5, 5) // so that the leader has something to save
	testserver.Eventually(t, "it to be parked again", func() bool {
		kept, err := lines(t, c, "parked", "list")
		return err == nil && len(kept) == 1
	})
}

// TestParked_ChangesThatAreGoneAreInTheLedger loses the only copies of what was not
// sent, beside all else that the state database keeps.
func TestParked_ChangesThatAreGoneAreInTheLedger(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]int{"some": 2, "all": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			c := configured(servers, patient)
			_, p := park(t, c, servers, 3)
			source := events(t, servers)
			source.write(t, 5, 5)
			p.await(t, "what comes later to be sent", sent(5))
			lose(t, servers, lost)
			says := map[int]string{2: "2 of 3 changes", 3: "3 of 3 changes"}[lost]
			back := wayBack.FindStringSubmatch(statusText(t, c))
			if back == nil || back[1] != says {
				t.Fatalf("status has the way back %q, want that of %q", back, says)
			}
			if found, _ := examined(t, servers, c); !strings.Contains(found, "lacks "+says) {
				t.Errorf("doctor found\n%s, want %q", found, says)
			}
			p = p.again(t, c)
			if n := len(lostEntries(t, servers)); n != 1 {
				t.Fatalf("%d entries of the ledger before the stream goes on, want 1", n)
			}
			shown := p.await(t, "the loss to be shown", func(s status.Status) bool { return s.GapCounts["lost"] == 1 && len(s.Gaps) > 0 })
			gap := shown.Gaps[len(shown.Gaps)-1]
			if !strings.Contains(gap.Error, says) || gap.From == "" || gap.FromTime.IsZero() {
				t.Errorf("the ledger says %+v, want %q and since when", gap, says)
			}
			p = p.again(t, c) // it is noted once
			if n := len(lostEntries(t, servers)); n != 1 {
				t.Errorf("%d entries of the ledger after another term, want 1", n)
			}
			if view, err := say[command.StreamView](t, c, "status", "--json"); err != nil || strings.Contains(strings.Join(view.Warnings, " "), says) {
				t.Errorf("status still warns of what is in the ledger: %q, %v", view.Warnings, err)
			}
			if err := runCommand(t, c, io.Discard, "checkpoint", "set", back[2], "--why", "parked changes are gone", back[3]); err != nil {
				t.Fatal(err)
			}
			source.write(t, 5, 5) // so that the leader has something to save
			testserver.Eventually(t, "all three to be parked again", func() bool {
				kept, err := lines(t, c, "parked", "list")
				return err == nil && len(kept) == 3
			})
			p.await(t, "them to be noted", func(s status.Status) bool { return leading(s) && s.InFlight == 0 })
			p.again(t, c)
			if n := len(lostEntries(t, servers)); n != 1 {
				t.Errorf("%d entries of the ledger after the way back, want 1", n)
			}
		})
	}
}

// TestParked_WhatIsDoneWithChangesInOrderIsNoLoss replays, discards, purges and goes
// back, with a term after each.
func TestParked_WhatIsDoneWithChangesInOrderIsNoLoss(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, patient)
	ids, p := park(t, c, servers, 3)
	mapped := c
	mapped.FieldType = "kind"
	for _, args := range [][]string{{"replay", ids[0]}, {"discard", ids[1]}} {
		if _, err := lines(t, mapped, append([]string{"parked"}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	p = p.again(t, c)
	testserver.Eventually(t, "two to be purged", func() bool {
		left, err := lines(t, c, "parked", "list", "--all")
		return err == nil && len(left) == 1 || runCommand(t, c, io.Discard, "parked", "purge", "--older-than", "1ms") != nil
	})
	p = p.again(t, c)
	if got := statusText(t, c); strings.Contains(got, "gone from parked_changes") {
		t.Errorf("status after a purge says %s", got)
	}
	lose(t, servers, 1)
	p.again(t, c)
	if got := lostEntries(t, servers); len(got) != 1 || !strings.Contains(got[0].Error, "1 of 1 changes") {
		t.Errorf("the ledger says %+v, want the one that was lost, and nothing of a purge", got)
	}
}

// TestParked_WhatWasNotNotedIsFromTheNextTermOn has a publisher that died between a
// change and its note, one of an earlier release that made none, and a purge that died.
func TestParked_WhatWasNotNotedIsFromTheNextTermOn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ checkpoint, change bson.D }{
		"a change behind the last note": {checkpoint: bson.D{{Key: "$set", Value: bson.D{{Key: "parked.count", Value: 2}}}}},
		"an earlier release":            {bson.D{{Key: "$unset", Value: bson.D{{Key: "parked", Value: ""}}}}, bson.D{{Key: "$unset", Value: bson.D{{Key: "partition", Value: ""}}}}},
		"a purge that ended long ago": {checkpoint: bson.D{{Key: "$set", Value: bson.D{
			{Key: "purged", Value: int64(1)}, {Key: "purgedAt", Value: time.Now().Add(-time.Hour)},
		}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			c := configured(servers, patient)
			_, p := park(t, c, servers, 3)
			if err := p.quit(); err != nil {
				t.Fatal(err)
			}
			for collection, update := range map[string]bson.D{"resume_tokens": tt.checkpoint, "parked_changes": tt.change} {
				if update == nil {
					continue
				}
				if _, err := state(t, servers, collection).UpdateMany(t.Context(), bson.D{}, update); err != nil {
					t.Fatal(err)
				}
			}
			p = run(t, c)
			p.await(t, "the next to lead", leading)
			if got := lostEntries(t, servers); len(got) != 0 {
				t.Errorf("the ledger says %+v, want no loss", got)
			}
			lose(t, servers, 1)
			p.again(t, c)
			if got := lostEntries(t, servers); len(got) != 1 || !strings.Contains(got[0].Error, "1 of 3 changes") {
				t.Errorf("the ledger says %+v, want 1 of 3", got)
			}
		})
	}
}

// TestParked_AnOlderCopyOfTheCollectionIsSeen puts one back that has as many changes
// that were not dealt with as there are now.
func TestParked_AnOlderCopyOfTheCollectionIsSeen(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, patient)
	ids, p := park(t, c, servers, 1)
	copied := only(t, state(t, servers, "parked_changes"))
	if _, err := lines(t, c, "parked", "discard", ids[0]); err != nil {
		t.Fatal(err)
	}
	events(t, servers).unmappable(t)
	testserver.Eventually(t, "another to be parked", func() bool {
		listed, err := lines(t, c, "parked", "list")
		return err == nil && len(listed) == 1 && listed[0].ID != ids[0] && p.status(t).InFlight == 0
	})
	wipe(t, state(t, servers, "parked_changes"))
	put(t, state(t, servers, "parked_changes"), copied)
	p.again(t, c)
	if got := lostEntries(t, servers); len(got) != 1 || !strings.Contains(got[0].Error, "1 of 2 changes") {
		t.Errorf("the ledger says %+v, want 1 of 2", got)
	}
}

// TestParked_OfAnotherNumberOfPartitionsIsMissedOnce loses what one of two partitions
// had parked before they became one.
func TestParked_OfAnotherNumberOfPartitionsIsMissedOnce(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, split(2), patient)
	p := run(t, c)
	p.awaitOverview(t, "both partitions to be led", leads(2))
	source := events(t, servers)
	source.unmappable(t)
	testserver.Eventually(t, "the change to be parked, and noted", func() bool {
		n, err := state(t, servers, "resume_tokens").CountDocuments(t.Context(), bson.D{{Key: "parked.count", Value: int64(1)}})
		return err == nil && n == 1
	})
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	c.Partitions = 1
	if err := runCommand(t, c, io.Discard, "repartition"); err != nil {
		t.Fatal(err)
	}
	copied := only(t, state(t, servers, "parked_changes"))
	lose(t, servers, 1)
	p = run(t, c)
	p.await(t, "the next publisher to lead", leading)
	if n := len(lostEntries(t, servers)); n != 1 {
		t.Fatalf("%d entries of the ledger before the stream goes on, want 1", n)
	}
	p = p.again(t, c)
	if n := len(lostEntries(t, servers)); n != 1 {
		t.Errorf("%d entries of the ledger after another term, want 1", n)
	}
	put(t, state(t, servers, "parked_changes"), copied)
	p = p.again(t, c)
	source.write(t, 5, 5)
	p.await(t, "what comes later to be sent", sent(5))
	lose(t, servers, 1)
	p.again(t, c)
	if n := len(lostEntries(t, servers)); n != 2 {
		t.Errorf("%d entries of the ledger after a second loss, want 2", n)
	}
}

// TestParked_TheWayBackIsThatOfItsPartition loses what one of two partitions had parked,
// while the other waits for an operator.
func TestParked_TheWayBackIsThatOfItsPartition(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, split(2), patient)
	p := run(t, c)
	p.awaitOverview(t, "both partitions to be led", leads(2))
	source := events(t, servers)
	source.unmappable(t)
	parked := bson.D{{Key: "parked.count", Value: int64(1)}}
	testserver.Eventually(t, "the change to be parked, and noted", func() bool {
		n, err := state(t, servers, "resume_tokens").CountDocuments(t.Context(), parked)
		return err == nil && n == 1
	})
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	found, err := state(t, servers, "resume_tokens").FindOne(t.Context(), parked).Raw()
	if err != nil {
		t.Fatal(err)
	}
	name := found.Lookup("_id").StringValue()
	_, err = state(t, servers, "streams").UpdateOne(t.Context(), bson.D{{Key: "_id", Value: bson.D{{Key: "$ne", Value: name}}}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "halt", Value: "too many changes are parked"}}}})
	if err != nil {
		t.Fatal(err)
	}
	lose(t, servers, 1)
	back := regexp.MustCompile(`publisher (checkpoint set \S+) --why TEXT (--partition \d)`).FindStringSubmatch(statusText(t, c))
	if back == nil {
		t.Fatalf("status says %s, want the way back of the partition", statusText(t, c))
	}
	args := append(strings.Fields(back[1]+" "+back[2]), "--why", "parked changes are gone")
	if moved, err := say[command.MoveView](t, c, args...); err != nil || moved.After.Stream != name {
		t.Fatalf("%q moved %+v, %v, want %s", args, moved, err, name)
	}
	run(t, c)
	testserver.Eventually(t, "it to be parked again", func() bool {
		kept, err := lines(t, c, "parked", "list")
		return err == nil && len(kept) == 1
	})
}

// TestParked_APurgeThatIsRefusedHidesNoLoss has a role that may not remove changes, and
// an operator who tries again.
func TestParked_APurgeThatIsRefusedHidesNoLoss(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, patient)
	ids, _ := park(t, c, servers, 3)
	if _, err := lines(t, c, append([]string{"parked", "discard"}, ids[:2]...)...); err != nil {
		t.Fatal(err)
	}
	allow := testserver.Fault(t, servers, `{"kind":"mongodb.fail","commands":["delete"],"code":13}`)
	for range 3 {
		testserver.Eventually(t, "the purge to be refused", func() bool {
			return runCommand(t, c, io.Discard, "parked", "purge", "--older-than", "1ms") != nil
		})
	}
	allow()
	lose(t, servers, 1)
	if got := statusText(t, c); !strings.Contains(got, "1 of 3 changes") {
		t.Errorf("status says %s, want what is gone", got)
	}
}
