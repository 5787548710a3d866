package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/command"
	"changerelay/services/projector/internal/sandboxtest"
)

// ranOnce has a projector started and stopped, and the commands' environment be its own.
func ranOnce(t *testing.T, topic, database string) {
	t.Helper()
	p := start(t, configured(t, topic, database), parse(t))
	until(t, "the projector runs", func() bool { return strings.Contains(p.logs.String(), "taking sessions") })
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	onTopic(t, topic, database, counting)
}

// What is dead-lettered after the ledger has counted the others stays.
func TestDeadDiscard_RemovesWhatItHasCountedAlone(t *testing.T) {
	const topic = "deadlate"
	_, database := servers.Mongo(t, nil)
	send(t, topic, happened("a", 1, 3)...)
	deadLetter(t, topic, "a")
	deadLetter(t, topic, "a")
	receiver, err := servers.Client(t).AcceptSessionForSubscription(t.Context(), topic, "projector", "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = receiver.Close(t.Context()) }()
	ranOnce(t, topic, database)
	late, err := receiver.ReceiveMessages(t.Context(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(servers.MongoURI)
	if err != nil {
		t.Fatal(err)
	}
	k := &killer{texts: [][]byte{[]byte("insert"), []byte("projector_ledger")}, nth: 1, lives: true, kill: func() {
		if err := receiver.DeadLetterMessage(t.Context(), late[0], &azservicebus.DeadLetterOptions{}); err != nil {
			t.Error(err)
		}
	}}
	t.Setenv("READMODEL_MONGODB_URI", "mongodb://"+k.listen(t, to.Host)+"/?directConnection=true")
	lines, err := runCommand(t, "dlq", "discard", "--all")
	if err != nil || len(lines) != 2 || !k.dead() {
		t.Errorf("got %v and %v, want the two that were there", lines, err)
	}
	decided(t, 1, "dlq discard", "a-1", "a-2")
	if left, err := runCommand(t, "dlq", "list"); err != nil || len(left) != 1 || left[0]["message_id"] != "a-3" {
		t.Errorf("afterwards: got %v and %v, want the one that came later", left, err)
	}
}

// full is an output that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// What cannot be printed is not removed, and not counted.
func TestDeadDiscard_RemovesNothingThatItCannotPrint(t *testing.T) {
	const topic = "deadfull"
	_, database := servers.Mongo(t, nil)
	send(t, topic, happened("a", 1, 1)...)
	deadLetter(t, topic, "a")
	ranOnce(t, topic, database)
	letters, err := runCommand(t, "dlq", "list")
	if err != nil || len(letters) != 1 {
		t.Fatalf("got %v and %v, want the dead letter", letters, err)
	}
	for _, which := range []string{"--all", number(letters[0])} {
		if _, err := command.Program("test").Do(t.Context(), []string{"dlq", "discard", which}, full{}, io.Discard); err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("%s: got %v, want that nothing can be printed", which, err)
		}
	}
	if letters, err := runCommand(t, "dlq", "list"); err != nil || len(letters) != 1 {
		t.Errorf("afterwards: got %v and %v, want the dead letter there", letters, err)
	}
	for _, line := range ledger(t) {
		if line["count"] != 0.0 || !strings.Contains(fmt.Sprint(line["error"]), "no space left") {
			t.Errorf("the ledger: got %v, want that none was removed, and why", line)
		}
	}
}

// One that the client cannot read is not in the way of those before it, which are dealt with
// by their numbers.
func TestDeadDiscard_OneThatCannotBeReadIsNotInTheWayOfThoseBeforeIt(t *testing.T) {
	const topic = "deadodd"
	_, database := servers.Mongo(t, nil)
	send(t, topic, happened("a", 1, 1)...)
	deadLetter(t, topic, "a")
	odd, err := contract.Encode(event("a", 2, "Happened", `{}`), contract.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	odd.Properties["DeadLetterReason"] = int64(1) // at which the client panics
	sandboxtest.Send(t, servers, topic, odd)
	sandboxtest.DeadLetterAsItIs(t, servers, topic, "projector", "a")
	ranOnce(t, topic, database)
	listed, err := runCommand(t, "dlq", "list")
	if err == nil || len(listed) != 1 {
		t.Fatalf("got %v and %v, want the one before it, and an error", listed, err)
	}
	number := fmt.Sprintf("%.0f", listed[0]["sequence_number"])
	for _, args := range [][]string{{"show", number}, {"discard", number, "--dry-run"}, {"discard", number}} {
		if lines, err := runCommand(t, append([]string{"dlq"}, args...)...); err != nil || len(lines) != 1 || lines[0]["message_id"] != "a-1" {
			t.Errorf("%v: got %v and %v, want a-1", args, lines, err)
		}
	}
	if left, err := runCommand(t, "dlq", "list"); err == nil || len(left) != 0 {
		t.Errorf("afterwards: got %v and %v, want the one that cannot be read alone", left, err)
	}
}

// What is printed to be run is printed as it is: JSON has no need to escape what HTML would.
func TestDeadRedrive_PrintsWhatIsToBeRunAsItIs(t *testing.T) {
	const topic = "deadshown"
	_, database := servers.Mongo(t, nil)
	send(t, topic, happened("a<&>b", 1, 1)...)
	deadLetter(t, topic, "a<&>b")
	ranOnce(t, topic, database)
	var printed, stderr bytes.Buffer
	if _, err := command.Program("test").Do(t.Context(), []string{"dlq", "list"}, &printed, &stderr); err != nil || !strings.Contains(printed.String(), `"session_id":"a<&>b"`) {
		t.Errorf("list: got %q and %v, want the session as it is called", &printed, err)
	}
	printed.Reset()
	if _, err := command.Program("test").Do(t.Context(), []string{"dlq", "redrive", "--all", "--dry-run"}, &printed, &stderr); err != nil || !strings.Contains(printed.String(), "a<&>b") {
		t.Errorf("redrive: got %q and %v, want the aggregate as it is called", &printed, err)
	}
}

// There is no other copy of what is removed: however the command ends, it has printed
// that.
func TestDeadDiscard_KilledAtARemovalItHasPrintedWhatIsGone(t *testing.T) {
	binary := buildProjector(t)
	for topic, after := range map[string]bool{"deaddiscard-before": false, "deaddiscard-after": true} {
		t.Run(topic, func(t *testing.T) {
			_, database := servers.Mongo(t, nil)
			send(t, topic, happened("a", 1, 2)...)
			deadLetter(t, topic, "a")
			deadLetter(t, topic, "a")
			ranOnce(t, topic, database)
			const disposition = "com.microsoft:update-disposition"
			at := regexp.MustCompile(`sb://([^;/]+)`).FindStringSubmatch(servers.ServiceBus)[1]
			k := &killer{texts: [][]byte{[]byte(disposition)}, nth: 1, after: after}
			var discard *exec.Cmd
			started := make(chan struct{})
			k.kill = func() { <-started; _ = discard.Process.Signal(syscall.SIGKILL) }
			discard = exec.CommandContext(t.Context(), binary, "dlq", "discard", "--all")
			discard.Env = append(os.Environ(), "SERVICEBUS_CONNECTION_STRING="+strings.Replace(servers.ServiceBus, at, k.listen(t, at), 1))
			var printed bytes.Buffer
			discard.Stdout = &printed
			if err := discard.Start(); err != nil {
				t.Fatal(err)
			}
			close(started)
			if err := discard.Wait(); err == nil || !k.dead() {
				t.Fatalf("it was not killed: %v: %s", err, &printed)
			}
			gone := map[string]bool{"a-1": true, "a-2": true}
			letters, err := runCommand(t, "dlq", "list")
			if err != nil || len(letters) == 2 && after {
				t.Fatalf("got %v and %v, want one removed", letters, err)
			}
			for _, letter := range letters {
				delete(gone, letter["message_id"].(string))
			}
			for lines := json.NewDecoder(&printed); lines.More(); {
				var line struct {
					ID      string `json:"message_id"`
					Message any    `json:"message"`
				}
				if err := lines.Decode(&line); err != nil || line.Message == nil {
					t.Fatalf("got %+v and %v, want it whole", line, err)
				}
				delete(gone, line.ID)
			}
			if len(gone) > 0 {
				t.Errorf("%v is gone and was not printed: %s", gone, &printed)
			}
			if lines := ledger(t); len(lines) != 1 || lines[0]["closed_at"] != nil || lines[0]["count"] != 2.0 {
				t.Errorf("the ledger: got %v, want a line of both that is not closed", lines)
			}
		})
	}
}
