package app_test

import (
	"bytes"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// rebuildKills are the steps of a rebuild at which it is killed.
var rebuildKills = []struct {
	name  string
	texts []string
	nth   int
	after bool
}{
	{name: "before there are indexes", texts: []string{"createIndexes", "orders_v2"}, nth: 1},
	{name: "before it is noted", texts: []string{"update", "$rebuild:orders:1"}, nth: 1},
	{name: "begun", texts: []string{"update", "$rebuild:orders:1"}, nth: 1, after: true},
	{name: "before it follows", texts: []string{"update", "$rebuild:orders:1"}, nth: 2},
	{name: "following", texts: []string{"update", "$rebuild:orders:1"}, nth: 2, after: true},
	{name: "before readers are switched", texts: []string{"collMod"}, nth: 1},
	{name: "readers are switched", texts: []string{"collMod"}, nth: 1, after: true},
	{name: "before the switch is noted", texts: []string{"update", "$rebuild:orders:1"}, nth: 3},
	{name: "before it is settled", texts: []string{"update", "$rebuild:orders:1"}, nth: 4},
	{name: "settled", texts: []string{"update", "$rebuild:orders:1"}, nth: 4, after: true},
	{name: "before the old documents are dropped", texts: []string{"drop\x00", "orders_v1"}, nth: 1},
	{name: "the old documents are dropped", texts: []string{"drop\x00", "orders_v1"}, nth: 1, after: true},
	{name: "before it is done", texts: []string{"update", "$rebuild:orders:1"}, nth: 5},
}

func rebuildKillTopics() []string { return numbered("rebuildkill", len(rebuildKills)) }

// Wherever a rebuild is killed, readers see all of the old documents or all of the new
// ones, and the same command comes to its end.
func TestRebuild_KilledAtAnyStepAnotherRunFinishesIt(t *testing.T) {
	binary := buildProjector(t)
	for i := range rebuildKills {
		t.Run(rebuildKills[i].name, func(t *testing.T) {
			t.Parallel()
			killRebuild(t, binary, i)
		})
	}
}

func killRebuild(t *testing.T, binary string, step int) {
	s, topic := rebuildKills[step], rebuildKillTopics()[step]
	client, database := servers.Mongo(t, nil)
	dir := t.TempDir()
	r := &rebuilding{db: client.Database(database), topic: topic, dir: dir, publisher: filepath.Join(dir, "publisher")}
	r.script(t)
	r.cfg = configured(t, topic, database)
	r.cfg.Projections = file(t, "projections.yaml", rebuilt)
	run := func(mongoURI string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Env = append(os.Environ(), "SERVICEBUS_CONNECTION_STRING="+servers.ServiceBus, "SERVICEBUS_TOPIC="+topic, "SERVICEBUS_SUBSCRIPTION=projector",
			"READMODEL_MONGODB_URI="+mongoURI, "READMODEL_DATABASE="+database, "PROJECTIONS="+r.cfg.Projections)
		return cmd
	}
	if output, err := run(servers.MongoURI, "setup").CombinedOutput(); err != nil {
		t.Fatalf("setup: %v: %s", err, output)
	}
	keep(t, r.cfg, load(t, r.cfg.Projections))
	send(t, topic, happens("a", 1, 2)...)
	r.awaitSees(t, "orders", "a", "2 3 [1 2]")
	if _, err := r.db.Collection("orders_v1").UpdateByID(t.Context(), "a", bson.D{{Key: "$set", Value: bson.D{{Key: "sum", Value: 99}}}}); err != nil {
		t.Fatal(err)
	}
	const old, mended = "2 99 [1 2]", "2 3 [1 2]"

	to, err := url.Parse(servers.MongoURI)
	if err != nil {
		t.Fatal(err)
	}
	k := &killer{nth: s.nth, after: s.after}
	for _, text := range s.texts {
		k.texts = append(k.texts, []byte(text))
	}
	args := []string{"rebuild", "--projection", "orders", "--why", "a test", "--grace", "0s", "--publisher", r.publisher}
	var first *exec.Cmd
	started := make(chan struct{})
	k.kill = func() { <-started; _ = first.Process.Signal(syscall.SIGKILL) }
	first = run("mongodb://"+k.listen(t, to.Host)+"/?directConnection=true", args...)
	ended := func(cmd *exec.Cmd) (string, error) {
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if cmd == first {
			close(started)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		var err error
		until(t, "the command ends", func() bool {
			if asked := strings.Count(r.asked(), "resend --all"); asked == 1 && !r.said() {
				send(t, topic, again(2, happens("a", 1, 2))...)
				r.says(t, 2, "done")
			}
			if got := r.sees(t, "orders", "a"); got != old && got != mended {
				t.Errorf("readers see %s, want %s or %s", got, old, mended)
			}
			select {
			case err = <-done:
				return true
			default:
				return false
			}
		})
		return said.String(), err
	}
	if said, err := ended(first); err == nil || !k.dead() {
		t.Fatalf("the first run was not killed: %v: %s", err, said)
	}
	if said, err := ended(run(servers.MongoURI, args...)); err != nil || !strings.Contains(said, `"step":"done"`) {
		t.Fatalf("the next run: %v: %s", err, said)
	}
	if got := r.sees(t, "orders", "a"); got != mended {
		t.Errorf("afterwards: got %s, want %s", got, mended)
	}
	if got := r.collections(t); got != "orders_v2" {
		t.Errorf("collections afterwards: got %s, want orders_v2 alone", got)
	}
	if asked := strings.Count(r.asked(), "resend --all"); asked != 1 {
		t.Errorf("the publisher was asked %d times, want once", asked)
	}
	send(t, topic, happens("a", 3)...)
	r.awaitSees(t, "orders", "a", "3 6 [1 2 3]")
}
