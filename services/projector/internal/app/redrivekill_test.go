package app_test

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"changerelay/services/projector/internal/sandboxtest"
)

// redriveKills are the steps of a redrive of several aggregates, side by side, at which it
// is killed.
var redriveKills = []struct {
	name  string
	texts []string
	nth   int
	after bool
}{
	{name: "before anything is applied", texts: []string{"update", "orders", "seen"}, nth: 1},
	{name: "one is applied", texts: []string{"update", "orders", "seen"}, nth: 1, after: true},
	{name: "some are applied", texts: []string{"update", "orders", "seen"}, nth: 4},
	{name: "one is taken away", texts: []string{"commitTransaction"}, nth: 1, after: true},
	{name: "some are taken away", texts: []string{"commitTransaction"}, nth: 4, after: true},
	{name: "before the last is lifted", texts: []string{"commitTransaction"}, nth: 9},
}

func redriveKillTopics() []string { return numbered("redrivekill", len(redriveKills)) }

// Wherever a redrive of all is killed, nothing is lost, doubled or out of order, what
// comes meanwhile is parked or applied behind it, and another run finishes all aggregates
// and says how many there were.
func TestRedrive_KilledAtAnyStepAnotherRunFinishesAll(t *testing.T) {
	binary := buildProjector(t)
	for i := range redriveKills {
		t.Run(redriveKills[i].name, func(t *testing.T) {
			t.Parallel()
			killRedrive(t, binary, i)
		})
	}
}

func killRedrive(t *testing.T, binary string, step int) {
	s, topic := redriveKills[step], redriveKillTopics()[step]
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	cfg := configured(t, topic, database)
	broken := strings.ReplaceAll(counting, "inc: {events: data.n * 2}", "push: {seen: data.n * 2}")
	mended := file(t, "mended.yaml", strings.ReplaceAll(broken, "data.n * 2", "event.version"))
	p := start(t, cfg, load(t, file(t, "broken.yaml", broken)))
	aggregates := []string{"a", "b", "c"}
	for _, aggregate := range aggregates {
		send(t, topic, event(aggregate, 1, "Doubled", `{"n":"x"}`), event(aggregate, 2, "Happened", `{}`))
	}
	until(t, "all are parked", func() bool { return p.Status().Parked == 6 })
	run := func(mongoURI string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), binary, "parked", "redrive", "--all", "--other-projections")
		cmd.Env = append(os.Environ(), "SERVICEBUS_CONNECTION_STRING="+servers.ServiceBus, "SERVICEBUS_TOPIC="+topic, "SERVICEBUS_SUBSCRIPTION=projector",
			"READMODEL_MONGODB_URI="+mongoURI, "READMODEL_DATABASE="+database, "PROJECTIONS="+mended)
		return cmd
	}
	var first *exec.Cmd
	started := make(chan struct{})
	k := &killer{nth: s.nth, after: s.after, kill: func() { <-started; _ = first.Process.Signal(syscall.SIGKILL) }}
	for _, text := range s.texts {
		k.texts = append(k.texts, []byte(text))
	}
	to, err := url.Parse(servers.MongoURI)
	if err != nil {
		t.Fatal(err)
	}
	first = run("mongodb://" + k.listen(t, to.Host) + "/?directConnection=true")
	var said bytes.Buffer
	first.Stdout, first.Stderr = &said, &said
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	close(started)
	if err := first.Wait(); err == nil || !k.dead() {
		t.Fatalf("the first run was not killed: %v: %s", err, &said)
	}
	for _, aggregate := range aggregates {
		send(t, topic, event(aggregate, 3, "Happened", `{}`))
	}
	output, err := run(servers.MongoURI).CombinedOutput()
	if err != nil {
		t.Fatalf("the next run: %v: %s", err, output)
	}
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	var summary struct {
		Step               string
		Aggregates, Lifted int
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &summary); err != nil || summary.Step != "done" || summary.Aggregates != len(lines)-1 || summary.Lifted != summary.Aggregates {
		t.Errorf("the next run ends with %s (%v), want the sum of the %d aggregates before it", lines[len(lines)-1], err, len(lines)-1)
	}
	until(t, "everything is applied in order", func() bool {
		documents := sandboxtest.Documents(t, db, "orders")
		return !slices.ContainsFunc(aggregates, func(aggregate string) bool { return !slices.Equal(seen(documents[aggregate]), []int64{1, 2, 3}) })
	})
	if n := counted(t, db, "parked_messages") + counted(t, db, "halted_aggregates"); n != 0 {
		t.Errorf("%d messages and halts are left, want none", n)
	}
}
