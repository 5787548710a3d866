package app_test

import (
	"strings"
	"testing"
)

var rebuildTopics = []string{"rebuild-hand", "rebuild-hand-v2", "verify-grace", "rebuild-unique", "rebuild-validator", "rebuild-unlike"}

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
