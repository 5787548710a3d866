package amqpserver_test

import (
	"testing"
	"time"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

// attachSession attaches handle 1 to session "a" of queue "sessions", which has one message, and receives it.
func attachSession(t *testing.T, ns *namespace) *wire {
	t.Helper()
	id := "a"
	must(t, ns.broker.Send(t.Context(), "sessions", []*entity.Message{{SessionID: &id, Payload: text("x")}}))
	w := openWire(t, ns)
	w.send(0, sessionAttach())
	expect[*amqp.Attach](w)
	w.credit(1)
	expect[*amqp.Transfer](w)
	return w
}

func TestLost_SettlingInALostSessionIsRejectedAndEndsTheLink(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := attachSession(t, ns)
	_, err := ns.broker.LoseSessionLocks("sessions", "a")
	must(t, err)
	w.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, First: 0, State: amqp.Accepted{}})
	rejected, ok := expect[*amqp.Disposition](w).State.(amqp.Rejected)
	if !ok || rejected.Error.Condition != entity.ConditionSessionLockLost {
		t.Errorf("got %#v, want a rejection with %s", rejected, entity.ConditionSessionLockLost)
	}
	equal(t, "condition", expect[*amqp.Detach](w).Error.Condition, entity.ConditionSessionLockLost)
}

func TestLost_ALostSessionIsToldToALinkThatAsksForNothing(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := attachSession(t, ns)
	_, err := ns.broker.LoseSessionLocks("sessions", "a")
	must(t, err)
	ns.server.SweepAt(time.Now())
	equal(t, "condition", expect[*amqp.Detach](w).Error.Condition, entity.ConditionSessionLockLost)
}

func TestLost_AReceiverThatTheBrokerEndsIsDetached(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := openWire(t, ns)
	w.attachReceiver(amqp.ReceiverSecond)
	w.credit(1)
	eventually(t, "a receiver that is detached", func() bool {
		n, err := ns.broker.DetachReceivers("plain")
		must(t, err)
		return n == 1
	})
	equal(t, "condition", expect[*amqp.Detach](w).Error.Condition, entity.ConditionDetachForced)
}

func TestLost_RequestsForALinkThatIsGoneHaveLostTheirSession(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	_, err := ns.client(t).AcceptSessionForQueue(t.Context(), "sessions", "a", nil)
	must(t, err)
	r := newRequester(t, ns, "sessions/$management")
	for _, operation := range []string{"com.microsoft:renew-session-lock", "com.microsoft:get-session-state", "com.microsoft:set-session-state"} {
		status, _ := r.askFor("a link that is gone", operation, map[string]any{"session-id": "a"})
		equal(t, "status of "+operation, status, 410)
		status, _ = r.ask(operation, map[string]any{"session-id": "a"})
		equal(t, "status of "+operation+" without a link", status, 200)
	}
}
