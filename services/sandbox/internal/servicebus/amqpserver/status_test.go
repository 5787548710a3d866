package amqpserver_test

import (
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func TestStatus_TheSnapshotNamesHoldersAndDeadLetters(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c := ns.client(t)
	sendTo(t, ns.sender(t, c, "changes"), "order-1", "dead", "alive")
	r, err := c.AcceptSessionForSubscription(t.Context(), "changes", "projector", "order-1", nil)
	must(t, err)
	must(t, r.DeadLetterMessage(t.Context(), receive(t, r, 1)[0], &azservicebus.DeadLetterOptions{Reason: new("Foreign")}))
	for _, e := range ns.broker.Snapshot().Entities {
		if e.Path != "changes/Subscriptions/projector" {
			continue
		}
		equal(t, "sessions", len(e.Sessions), 1)
		held := e.Sessions[0]
		if held.ID != "order-1" || !held.Locked || held.LockedUntil.IsZero() || !strings.Contains(held.Holder, " at 127.0.0.1:") {
			t.Errorf("got session %+v, want it held by the client until some time", held)
		}
		equal(t, "dead letters", len(e.DeadLetters), 1)
		equal(t, "reason", e.DeadLetters[0].Reason, "Foreign")
		equal(t, "session", e.DeadLetters[0].SessionID, "order-1")
		return
	}
	t.Error("got no subscription in the snapshot")
}
