package app_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// mendKills are the steps of a rebuild of an aggregate at which it is killed.
var mendKills = []struct {
	name  string
	texts []string
	after bool
}{
	{name: "before it is in the ledger", texts: []string{"insert", "projector_ledger"}},
	{name: "in the ledger", texts: []string{"insert", "projector_ledger"}, after: true},
	{name: "before it is recomputed", texts: []string{"update", "recomputed_documents"}},
	{name: "recomputed", texts: []string{"delete", "recomputed_documents"}},
	{name: "before it is replaced", texts: []string{"update", "orders_v1"}},
	{name: "before that is committed", texts: []string{"update", "orders_v1"}, after: true},
	{name: "replaced", texts: []string{"commitTransaction"}, after: true},
}

func mendKillTopics() []string { return numbered("mendkill", len(mendKills)) }

// Wherever the rebuild of an aggregate is killed, readers see the old document or the
// new one, and the same command comes to its end.
func TestRebuildOfAggregates_KilledAtAnyStepAnotherRunFinishesIt(t *testing.T) {
	binary := buildProjector(t)
	for i, s := range mendKills {
		t.Run(s.name, func(t *testing.T) {
			v := newVerifying(t, mendKillTopics()[i])
			v.happen("a", 1, 2)
			v.awaitSequence("orders_v1", "a", 2)
			v.awaitSequence("states", "a", 2)
			v.set("orders_v1", "a", "sum", 99)
			equal := func() {
				// What the run has left that was killed is removed an hour later.
				if lines, err := runCommand(t, "verify", "--publisher", v.publisher); err != nil {
					t.Errorf("verify: got %v and %v, want no difference", lines, err)
				}
			}
			to, err := url.Parse(servers.MongoURI)
			if err != nil {
				t.Fatal(err)
			}
			var first *exec.Cmd
			started := make(chan struct{})
			k := &killer{nth: 1, after: s.after, kill: func() { <-started; _ = first.Process.Signal(syscall.SIGKILL) }}
			for _, text := range s.texts {
				k.texts = append(k.texts, []byte(text))
			}
			args := []string{"rebuild", "--aggregate", "a", "--why", "a test", "--publisher", v.publisher}
			first = exec.CommandContext(t.Context(), binary, args...)
			first.Env = append(os.Environ(), "READMODEL_MONGODB_URI=mongodb://"+k.listen(t, to.Host)+"/?directConnection=true")
			var said strings.Builder
			first.Stdout, first.Stderr = &said, &said
			if err := first.Start(); err != nil {
				t.Fatal(err)
			}
			close(started)
			if err := first.Wait(); err == nil || !k.dead() {
				t.Fatalf("the first run was not killed: %v: %s", err, &said)
			}
			document := v.sees("orders_v1", "a")
			if got := fmt.Sprint(document["events"], document["sum"], document["seen"]); got != "2 99 [1 2]" && got != "2 3 [1 2]" {
				t.Errorf("readers see %s, want the old document or the new one", got)
			}
			if lines, err := runCommand(t, args...); err != nil || lines[len(lines)-1]["step"] != "done" {
				t.Fatalf("the next run: %v: %v", err, lines)
			}
			equal()
			v.has("now", happens("a", 1, 2, 3)...)
			send(t, v.topic, happens("a", 3)...)
			v.awaitSequence("orders_v1", "a", 3)
			v.awaitSequence("states", "a", 3)
			equal()
		})
	}
}
