package app_test

import (
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

var rebuildTopics = []string{
	"rebuild-hand", "rebuild-name", "rebuild-name-b", "rebuild-hand-v2", "verify-grace", "rebuild-unique", "rebuild-validator", "rebuild-unlike",
	"rebuild-lefthole", "rebuild-keysname", "rebuild-outlives", "rebuild-tombstones", "rebuild-sharded", "rebuild-tracked", "rebuild-deadover",
	"rebuild-report", "rebuild-lost", "rebuild-early", "rebuild-documents", "rebuild-known", "rebuild-others", "rebuild-discarded", "rebuild-behind", "rebuild-number", "rebuild-number-b",
	"rebuild-brought",
	"rebuild-lostway", "rebuild-lostfirst", "rebuild-lostlast", "rebuild-lostbegin", "rebuild-leftover", "rebuild-overtaken", "rebuild-putback", "rebuild-nothing", "rebuild-wentback", "rebuild-clock", "rebuild-cancelled",
}

// A version that is built by hand, by projectors of its own group, is none of the numbers
// that a rebuild beside it gives out: its projectors go on.
func TestRebuild_LeavesAVersionBuiltByHandAlone(t *testing.T) {
	r := newRebuilding(t, "rebuild-hand")
	send(t, r.topic, happens("a", 1)...)
	r.awaitSees(t, "orders", "a", "1 1 [1]")
	second := r.cfg
	second.Group, second.Topic, second.InstanceID = "v2", "rebuild-hand-v2", "second"
	projections := load(t, file(t, "second.yaml", strings.ReplaceAll(rebuilt, "version: 1", "version: 2")))
	stop := keep(t, second, projections)
	send(t, second.Topic, happens("a", 1)...)
	r.awaitSees(t, "orders_v2", "a", "1 1 [1]")
	done := r.begin(t)
	until(t, "the publisher is asked", func() bool { return strings.Contains(r.asked(), "/orders_v3 ") })
	send(t, second.Topic, happens("a", 2)...)
	r.awaitSees(t, "orders_v2", "a", "2 3 [1 2]")
	stop()
	keep(t, second, projections)
	send(t, second.Topic, happens("a", 3)...)
	r.awaitSees(t, "orders_v2", "a", "3 6 [1 2 3]")
	r.cancels(t)
	ends(t, done)
}

// A projection of the same name that another group keeps, with documents of its own, is
// another one: a rebuild of either is none of the other's, and neither gives out a number
// whose positions the other has.
func TestRebuild_IsNoneOfAnotherGroupsProjectionOfTheSameName(t *testing.T) {
	r := newRebuilding(t, "rebuild-name")
	send(t, r.topic, happens("a", 1)...)
	r.awaitSees(t, "orders", "a", "1 1 [1]")
	second := r.cfg
	second.Group, second.Topic, second.InstanceID = "b", "rebuild-name-b", "second"
	theirs := strings.NewReplacer("collection: orders", "collection: others", "collection: totals", "collection: sums", "version: 1", "version: 2").Replace(rebuilt)
	projections := load(t, file(t, "second.yaml", theirs))
	stop := keep(t, second, projections)
	send(t, second.Topic, happens("a", 1)...)
	r.awaitSees(t, "others_v2", "a", "1 1 [1]")

	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return strings.Contains(r.asked(), " /orders_v3 ") })
	stop()
	keep(t, second, projections)
	send(t, second.Topic, happens("a", 2)...)
	r.awaitSees(t, "others_v2", "a", "2 3 [1 2]")
	send(t, r.topic, again(3, happens("a", 1))...)
	r.says(t, 3, "done")
	if o := ends(t, done); o.err != nil {
		t.Fatalf("rebuild: got %v after %v", o.err, o.lines)
	}
	send(t, second.Topic, happens("a", 3)...)
	r.awaitSees(t, "others_v2", "a", "3 6 [1 2 3]")
	names, err := r.db.ListCollectionNames(t.Context(), bson.D{{Key: "name", Value: bson.D{{Key: "$regex", Value: "_v"}}}})
	slices.Sort(names)
	if want := "orders_v3 others_v2 sums_v2 totals_v1"; err != nil || strings.Join(names, " ") != want {
		t.Errorf("collections afterwards: got %v and %v, want %s", names, err, want)
	}

	lines, err := runCommand(t, "rebuild", "--projection", "totals", "--why", "a test", "--publisher", r.publisher, "--dry-run")
	if err != nil || lines[len(lines)-1]["to"] != 3.0 {
		t.Errorf("a rebuild of totals, of which the other group has version 2: got %v and %v, want version 3", lines, err)
	}

	onTopic(t, second.Topic, r.db.Name(), theirs)
	t.Setenv("READMODEL_GROUP", second.Group)
	lines, err = runCommand(t, "rebuild", "--projection", "orders", "--why", "a test", "--publisher", r.publisher, "--dry-run")
	if err != nil || lines[len(lines)-1]["to"] != 4.0 {
		t.Errorf("the other group's rebuild of orders, of which this one has given out version 3: got %v and %v, want version 4", lines, err)
	}
}
