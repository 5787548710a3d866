package app_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// A dead letter whose removal is not known to have failed is in the ledger: there may
// be no other trace of it.
func TestDeadDiscard_OneWhoseRemovalHasNoAnswerIsCounted(t *testing.T) {
	for topic, all := range map[string]bool{"deadanswer-all": true, "deadanswer-one": false} {
		t.Run(topic, func(t *testing.T) {
			_, database := servers.Mongo(t, nil)
			send(t, topic, happened("a", 1, 1)...)
			deadLetter(t, topic, "a")
			ranOnce(t, topic, database)
			letters, err := runCommand(t, "dlq", "list")
			if err != nil || len(letters) != 1 {
				t.Fatalf("got %v and %v, want the dead letter", letters, err)
			}
			which := "--all"
			if !all {
				which = number(letters[0])
			}
			const disposition = "com.microsoft:update-disposition"
			at := regexp.MustCompile(`sb://([^;/]+)`).FindStringSubmatch(servers.ServiceBus)[1]
			k := &killer{texts: [][]byte{[]byte(disposition)}, nth: 1, after: true, kill: func() {}}
			t.Setenv("SERVICEBUS_CONNECTION_STRING", strings.Replace(servers.ServiceBus, at, k.listen(t, at), 1))
			lines, err := runCommand(t, "dlq", "discard", which)
			if err == nil || !strings.Contains(err.Error(), "may be removed") || len(lines) != 1 || !k.dead() {
				t.Errorf("got %v and %v, want the one printed, and that it may be removed", lines, err)
			}
			last := ledger(t)[0]
			if last["count"] != 1.0 || !strings.Contains(fmt.Sprint(last["about"]), "a-1") || !strings.Contains(fmt.Sprint(last["error"]), "may be removed") {
				t.Errorf("the ledger: got %v, want the one that may be removed", last)
			}
		})
	}
}
