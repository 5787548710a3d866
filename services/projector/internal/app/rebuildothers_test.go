package app_test

import (
	"os"
	"strings"
	"testing"
)

// stricter is a projection that cannot apply what came before it was there.
const stricter = `
  - name: strict
    collection: strict
    on: {Happened: {set: {last: data.n}}, Failed: {set: {last: data.gone}}}
`

// restart has other projections run from now on.
func (r *rebuilding) restart(t *testing.T, projections string) {
	t.Helper()
	r.stop()
	onTopic(t, r.topic, r.db.Name(), projections)
	r.cfg.Projections = os.Getenv("PROJECTIONS")
	r.projections = load(t, r.cfg.Projections)
	r.stop = keep(t, r.cfg, r.projections)
}

// What is resent for a version is nothing to other projections: one of them that cannot
// apply an old event, since it was added later, holds up neither the rebuild nor the
// aggregate.
func TestRebuild_NoOtherProjectionDecidesAboutWhatIsResent(t *testing.T) {
	r := newRebuilding(t, "rebuild-others")
	const followed = "on: {Happened: {inc: {events: 1, sum: data.n}, push: {seen: data.n}}, Failed: {inc: {events: 1, sum: data.n}, push: {seen: data.n}}}"
	const orders = "projections:\n  - {name: orders, version: 1, collection: orders, " + followed + "}\n"
	r.restart(t, orders)
	old := event("a", 1, "Failed", `{"n":1}`)
	send(t, r.topic, old)
	r.awaitSees(t, "orders", "a", "1 1 [1]")
	r.restart(t, orders+stricter[1:])
	send(t, r.topic, happens("b", 1)...)
	until(t, "the other one works", func() bool { return count(t, r.db, "strict") == 1 })
	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	resent := old
	resent.Resend.ID, resent.Resend.Group = "r1", "/orders_v2"
	send(t, r.topic, resent, again(2, happens("b", 1))[0])
	send(t, r.topic, happens("a", 2)...)
	for _, version := range []string{"orders_v1", "orders_v2"} {
		r.awaitSees(t, version, "a", "2 3 [1 2]")
	}
	r.awaitSees(t, "orders_v2", "b", "1 1 [1]")
	r.nothingHalted(t)
	r.says(t, 2, "done")
	if o := ends(t, done); o.err != nil {
		t.Errorf("rebuild: got %v after %v", o.err, o.lines)
	}
}

// An event that an operator has discarded is passed by when it is resent, as it was when it
// came: neither what is resent behind it nor a live event waits for it.
func TestRebuild_GoesOnOverWhatWasDiscarded(t *testing.T) {
	r := newRebuilding(t, "rebuild-discarded")
	bad := event("a", 2, "Happened", `{"n":"x"}`)
	last := event("b", 2, "Happened", `{"n":"x"}`)
	send(t, r.topic, happens("a", 1)[0], bad, happens("a", 3)[0], happens("b", 1)[0], last)
	for _, halted := range []string{"a", "b"} {
		until(t, "it is halted", func() bool {
			lines, err := runCommand(t, "parked", "list", halted)
			return err == nil && len(lines) > 0
		})
		for _, args := range [][]string{{"parked", "discard", halted, halted + "-2"}, {"parked", "redrive", halted}} {
			if lines, err := runCommand(t, args...); err != nil {
				t.Fatalf("%v: got %v and %v", args, lines, err)
			}
		}
	}
	r.awaitSees(t, "orders", "a", "2 4 [1 3]")
	r.awaitSees(t, "orders", "b", "1 1 [1]")
	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	send(t, r.topic, again(2, append(happens("a", 1), bad, happens("a", 3)[0]))...)
	send(t, r.topic, again(2, append(happens("b", 1), last))...)
	send(t, r.topic, happens("a", 4)...)
	send(t, r.topic, happens("b", 3)...)
	for id, want := range map[string]string{"a": "3 8 [1 3 4]", "b": "2 4 [1 3]"} {
		r.awaitSees(t, "orders_v1", id, want)
		r.awaitSees(t, "orders_v2", id, want)
	}
	r.says(t, 2, "done")
	if o := ends(t, done); o.err != nil {
		t.Errorf("rebuild: got %v after %v", o.err, o.lines)
	}
	r.nothingHalted(t)
}

// Of two groups that rebuild projections of one name for the first time, at the same moment,
// each has a number of its own: positions go by the name and the number.
func TestRebuild_OfTwoGroupsAtOnceEachHasItsNumber(t *testing.T) {
	r := newRebuilding(t, "rebuild-number")
	send(t, r.topic, happens("a", 1)...)
	r.awaitSees(t, "orders", "a", "1 1 [1]")
	second := r.cfg
	second.Group, second.Topic, second.InstanceID = "b", "rebuild-number-b", "second"
	theirs := strings.NewReplacer("collection: orders", "collection: others", "collection: totals", "collection: sums", "name: totals", "name: sums", "version: 1", "version: 2").Replace(rebuilt)
	keep(t, second, load(t, file(t, "second.yaml", theirs)))
	send(t, second.Topic, happens("a", 1)...)
	r.awaitSees(t, "others_v2", "a", "1 1 [1]")

	p := pause(t, []string{"insert", "$rebuild:orders:1"}, r.args()...)
	<-p.reached
	onTopic(t, second.Topic, r.db.Name(), theirs)
	t.Setenv("READMODEL_GROUP", second.Group)
	if _, err := runCommand(t, "setup"); err != nil {
		t.Fatal(err)
	}
	done := r.begin(t)
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	if got := r.asked(); !strings.Contains(got, " b/others_v4 ") {
		t.Errorf("asked: got %s, want version 4 of the other group, since this one has taken 3", got)
	}
	r.cancels(t)
	ends(t, done)
	close(p.goOn)
	until(t, "the publisher is asked again", func() bool { return strings.Contains(r.asked(), " /orders_v3 ") })
	onTopic(t, r.topic, r.db.Name(), rebuilt)
	t.Setenv("READMODEL_GROUP", "")
	r.cancels(t)
	ends(t, p.done)
}
