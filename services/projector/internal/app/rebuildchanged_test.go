package app_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/command"
	"changerelay/services/projector/internal/projection"
)

// rolled rolls out the test's projections with a change.
func (r *rebuilding) rolled(t *testing.T, was, is string) {
	t.Helper()
	text, err := os.ReadFile(os.Getenv("PROJECTIONS"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PROJECTIONS", file(t, "changed.yaml", strings.Replace(string(text), was, is, 1)))
	r.projections = load(t, os.Getenv("PROJECTIONS"))
	r.stop()
	r.stop = keep(t, r.cfg, r.projections)
	until(t, "the projector is rolled out", func() bool {
		n, err := r.db.Collection("projector_processes").CountDocuments(t.Context(), bson.D{{Key: "projections.content", Value: projection.Content(r.projections[0])}})
		return err == nil && n == 1
	})
}

// A projection that changes while its documents are built anew would make some of them
// say the one and others the other: the rebuild does not come to its end, and says how to
// begin again.
func TestRebuild_OfAProjectionThatHasChangedIsBegunAgain(t *testing.T) {
	r := newRebuilding(t, "rebuild-changed")
	send(t, r.topic, happens("a", 1, 2)...)
	r.awaitSees(t, "orders", "a", "2 3 [1 2]")
	done := r.begin(t)
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	send(t, r.topic, again(2, happens("a", 1))...)
	r.awaitSees(t, "orders_v2", "a", "1 1 [1]")
	r.rolled(t, "sum: data.n", "sum: data.n * 10")
	refusedBeforeIt(t, ends(t, done))
	send(t, r.topic, again(2, happens("a", 2))...)
	r.says(t, 2, "done")
	refused := func(state string) {
		t.Helper()
		for _, more := range [][]string{nil, {"--dry-run"}} {
			lines, _ := runCommand(t, r.args(more...)...)
			if len(lines) == 0 || lines[len(lines)-1]["step"] != state || !strings.Contains(fmt.Sprint(lines[len(lines)-1]["refused"]), "has changed since the rebuild began") {
				t.Errorf("once the projection has changed, %v: got %v, want it refused", more, lines)
			}
		}
	}
	refused("filling")
	// Also where the old one is back: some of the documents are of the other.
	r.rolled(t, "sum: data.n * 10", "sum: data.n")
	refused("filling")
	r.rolled(t, "sum: data.n", "sum: data.n * 10")
	r.cancels(t)

	done = r.begin(t, "--grace", "1h")
	until(t, "the publisher is asked again", func() bool { return strings.Contains(r.asked(), "/orders_v3 ") })
	send(t, r.topic, again(3, happens("a", 1, 2))...)
	r.says(t, 3, "done")
	r.switched(t)
	r.readers(t, "orders_v1 orders_v3: 2 30 [1 2]")

	// It changes again within the grace, when nothing is wrong with what readers see but
	// what it was built by.
	r.rolled(t, "sum: data.n * 10", "sum: data.n * 100")
	refusedBeforeIt(t, ends(t, done))
	refused("following")
	if o := ends(t, r.begin(t, "--grace", "0s", "--force")); o.err != nil {
		t.Errorf("with --force: got %v after %v", o.err, o.lines)
	}
	r.readers(t, "orders_v3: 2 30 [1 2]")
	lines, err := runCommand(t, "ledger")
	if err != nil || len(lines) != 1 || !strings.Contains(fmt.Sprint(lines[0]), "has changed since the rebuild began") {
		t.Errorf("ledger: got %v and %v, want what was decided with --force", lines, err)
	}
}

// In a wrong environment a rebuild that goes on is refused without a wait: no projector
// that begins anew makes it the right one.
func TestRebuild_InAWrongEnvironmentIsRefusedAtOnce(t *testing.T) {
	r := newRebuilding(t, "rebuild-wrong")
	if _, err := runCommand(t, "rebuild", "--projection", "orders", "--why", "a test"); err == nil {
		t.Error("without the publisher it came to its end")
	}
	right := map[string]string{}
	for name, wrong := range map[string]string{
		"SERVICEBUS_SUBSCRIPTION": "another", "READMODEL_GROUP": "others",
		"PROJECTIONS": file(t, "other.yaml", strings.Replace(rebuilt, "inc: {events: 1, sum: data.n}", "inc: {events: 2}", 1)),
	} {
		right[name] = os.Getenv(name)
		t.Setenv(name, wrong)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		said := &logs{}
		_, err := command.Program("test").Do(ctx, r.args(), said, said)
		cancel()
		if err == nil || !strings.Contains(err.Error(), "refused, nothing is changed") {
			t.Errorf("with another %s: got %v after %s, want it refused", name, err, said)
		}
		t.Setenv(name, right[name])
	}
}
