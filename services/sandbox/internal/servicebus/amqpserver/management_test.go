package amqpserver_test

import (
	"testing"

	goamqp "github.com/Azure/go-amqp"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// requester asks a $management node over the official AMQP library, for operations that the SDK has no call for.
type requester struct {
	t        *testing.T
	sender   *goamqp.Sender
	receiver *goamqp.Receiver
}

func newRequester(t *testing.T, ns *namespace, address string) *requester {
	t.Helper()
	conn, err := goamqp.Dial(t.Context(), "amqp://"+ns.addr, nil)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	session, err := conn.NewSession(t.Context(), nil)
	must(t, err)
	sender, err := session.NewSender(t.Context(), address, nil)
	must(t, err)
	receiver, err := session.NewReceiver(t.Context(), address, &goamqp.ReceiverOptions{
		TargetAddress: "answers", RequestedSenderSettleMode: goamqp.SenderSettleModeSettled.Ptr(),
	})
	must(t, err)
	return &requester{t: t, sender: sender, receiver: receiver}
}

// ask returns status and body of the answer.
func (r *requester) ask(operation string, body any) (int32, map[string]any) {
	r.t.Helper()
	return r.askFor("", operation, body)
}

// askFor asks on behalf of a link.
func (r *requester) askFor(link, operation string, body any) (int32, map[string]any) {
	r.t.Helper()
	properties := map[string]any{"operation": operation}
	if link != "" {
		properties["associated-link-name"] = link
	}
	must(r.t, r.sender.Send(r.t.Context(), &goamqp.Message{
		Properties:            &goamqp.MessageProperties{MessageID: "1", ReplyTo: new("answers")},
		ApplicationProperties: properties,
		Value:                 body,
	}, nil))
	m, err := r.receiver.Receive(r.t.Context(), nil)
	must(r.t, err)
	equal(r.t, "correlation id", m.Properties.CorrelationID, any("1"))
	values, _ := m.Value.(map[string]any)
	status, _ := m.ApplicationProperties["statusCode"].(int32)
	return status, values
}

func TestManagement_RulesAreAddedListedAndRemoved(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	r := newRequester(t, ns, "changes/Subscriptions/observer/$management")
	add := func(name string, description map[string]any) int32 {
		status, _ := r.ask("com.microsoft:add-rule", map[string]any{"rule-name": name, "rule-description": description})
		return status
	}
	equal(t, "status of a SQL rule", add("sql", map[string]any{"sql-filter": map[string]any{"expression": "a = 1"}}), 200)
	equal(t, "status of a correlation rule", add("label", map[string]any{
		"correlation-filter": map[string]any{"label": "OrderPlaced", "properties": map[string]any{"x": int64(1)}},
	}), 200)
	equal(t, "status of a rule that exists", add("sql", map[string]any{"sql-filter": map[string]any{"expression": "1=1"}}), 409)
	equal(t, "status of a rule without filter", add("none", map[string]any{}), 400)
	equal(t, "status of a rule with an action", add("action", map[string]any{
		"sql-filter": map[string]any{"expression": "1=1"}, "sql-rule-action": map[string]any{"expression": "SET a = 1"},
	}), 501)

	page := map[string]any{"top": int32(100), "skip": int32(0)}
	status, body := r.ask("com.microsoft:enumerate-rules", page)
	equal(t, "status of the list", status, 200)
	equal(t, "rules", len(body["rules"].([]any)), 3)

	status, _ = r.ask("com.microsoft:remove-rule", map[string]any{"rule-name": "sql"})
	equal(t, "status of the removal", status, 200)
	rules, err := ns.broker.Rules("changes", "observer")
	must(t, err)
	equal(t, "rules left", len(rules), 2)
	status, _ = r.ask("com.microsoft:enumerate-rules", map[string]any{"top": int32(1), "skip": int32(5)})
	equal(t, "status behind the end", status, 204)
}

func TestManagement_BadRequestsAreRefusedWithTheirStatus(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		operation string
		body      any
		want      int32
	}{
		"an unknown operation":       {"com.microsoft:dance", map[string]any{}, 501},
		"no operation":               {"", map[string]any{}, 501},
		"a body that is no map":      {"com.microsoft:renew-lock", "text", 400},
		"tokens of the wrong type":   {"com.microsoft:renew-lock", map[string]any{"lock-tokens": []any{"x"}}, 400},
		"a lock that is not held":    {"com.microsoft:renew-lock", map[string]any{"lock-tokens": []goamqp.UUID{{1}}}, 410},
		"an unknown outcome":         {"com.microsoft:update-disposition", map[string]any{"lock-tokens": []goamqp.UUID{{1}}, "disposition-status": "eaten"}, 400},
		"a peek without a start":     {"com.microsoft:peek-message", map[string]any{"message-count": int32(1)}, 400},
		"a schedule of nothing":      {"com.microsoft:schedule-message", map[string]any{}, 400},
		"a schedule of garbage":      {"com.microsoft:schedule-message", map[string]any{"messages": []any{map[string]any{"message": []byte("x")}}}, 400},
		"a cancel of nothing":        {"com.microsoft:cancel-scheduled-message", map[string]any{}, 400},
		"a session state of text":    {"com.microsoft:set-session-state", map[string]any{"session-id": "a", "session-state": "x"}, 400},
		"sessions without a time":    {"com.microsoft:get-message-sessions", map[string]any{}, 400},
		"rules of a queue":           {"com.microsoft:enumerate-rules", map[string]any{}, 403},
		"deferred without numbers":   {"com.microsoft:receive-by-sequence-number", map[string]any{}, 400},
		"deferred that is not there": {"com.microsoft:receive-by-sequence-number", map[string]any{"sequence-numbers": []int64{9}}, 404},
	}
	ns := startNamespace(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, _ := newRequester(t, ns, "plain/$management").ask(test.operation, test.body)
			equal(t, "status", status, test.want)
		})
	}
}

func TestManagement_AnUnknownEntityIsNotFoundByItsManagement(t *testing.T) {
	t.Parallel()
	r := newRequester(t, startNamespace(t), "nowhere/$management")
	status, _ := r.ask("com.microsoft:peek-message", map[string]any{"from-sequence-number": int64(0), "message-count": int32(1)})
	equal(t, "status", status, 404)
}

func TestManagement_ASessionIsPeekedAloneWhenItIsNamed(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	for _, id := range []string{"a", "b"} {
		must(t, ns.broker.Send(t.Context(), "sessions", []*entity.Message{{SessionID: &id, Payload: text(id)}}))
	}
	r := newRequester(t, ns, "sessions/$management")
	status, body := r.ask("com.microsoft:peek-message", map[string]any{
		"from-sequence-number": int64(0), "message-count": int32(10), "session-id": "b",
	})
	equal(t, "status", status, 200)
	equal(t, "messages", len(body["messages"].([]any)), 1)
}

func TestManagement_ASessionLockIsRenewedForItsHolderOnly(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	held, err := ns.client(t).AcceptSessionForQueue(t.Context(), "sessions", "a", nil)
	must(t, err)
	r := newRequester(t, ns, "sessions/$management")
	status, _ := r.ask("com.microsoft:renew-session-lock", map[string]any{"session-id": "nobody"})
	equal(t, "status for a session that is not held", status, 410)
	must(t, held.RenewSessionLock(t.Context(), nil))
}
