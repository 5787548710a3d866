package app_test

import (
	"fmt"
	"strings"
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/sandboxtest"
)

// What a discard has passed on its way is free at once, for whoever comes next.
func TestDeadDiscard_GivesBackWhatItPasses(t *testing.T) {
	const topic = "deadpast"
	_, database := servers.Mongo(t, nil)
	cfg := configured(t, topic, database)
	onTopic(t, topic, database, counting)
	for i := range 5 {
		sandboxtest.Send(t, servers, topic, contract.Message{ID: fmt.Sprint(i), SessionID: "s", Body: []byte("hello")})
		deadLetter(t, topic, "s")
	}
	p := start(t, cfg, parse(t))
	until(t, "the projector runs", func() bool { return strings.Contains(p.logs.String(), "taking sessions") })
	letters, err := runCommand(t, "dlq", "list")
	if err != nil || len(letters) != 5 {
		t.Fatalf("dlq list: got %v and %v, want five", letters, err)
	}
	for left := 5; left > 0; left-- {
		last := letters[left-1]
		if lines, err := runCommand(t, "dlq", "discard", number(last)); err != nil || len(lines) != 1 || lines[0]["message_id"] != last["message_id"] {
			t.Fatalf("the last of %d: got %v and %v, want it removed", left, lines, err)
		}
	}
}
