package amqpserver

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/broker"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

const (
	managementNode = "$management"
	// associatedLink is the property in which a client names the link on whose behalf it asks.
	associatedLink = "associated-link-name"
)

// management is an entity's $management node (AMQP 1.0 in Azure Service Bus: request-response-based operations).
type management struct {
	c      *conn
	entity string
}

// operation answers one request. An error becomes a refusal.
type operation func(m *management, ctx context.Context, req *request) (response, error)

var operations = map[string]operation{
	"com.microsoft:renew-lock":                 (*management).renewLock,
	"com.microsoft:peek-message":               (*management).peek,
	"com.microsoft:receive-by-sequence-number": (*management).receiveDeferred,
	"com.microsoft:update-disposition":         (*management).updateDisposition,
	"com.microsoft:schedule-message":           (*management).schedule,
	"com.microsoft:cancel-scheduled-message":   (*management).cancelScheduled,
	"com.microsoft:renew-session-lock":         (*management).renewSessionLock,
	"com.microsoft:get-session-state":          (*management).getSessionState,
	"com.microsoft:set-session-state":          (*management).setSessionState,
	"com.microsoft:get-message-sessions":       (*management).listSessions,
	"com.microsoft:add-rule":                   (*management).addRule,
	"com.microsoft:remove-rule":                (*management).removeRule,
	"com.microsoft:enumerate-rules":            (*management).enumerateRules,
}

func (m *management) accept(ctx context.Context, d *delivery) amqp.State {
	req, bad := readRequest(d.payload)
	if bad != nil {
		return amqp.Rejected{Error: bad}
	}
	m.c.mu.Lock()
	o := m.c.replies.find(d.link, req.replyTo)
	m.c.mu.Unlock()
	if o == nil {
		return amqp.Rejected{Error: noReply(d.link, req.replyTo)}
	}
	encoded := m.answer(ctx, req).encode(req.id, "statusCode", "statusDescription")
	// Clients may look for the answer only once their request is settled.
	d.after = func() {
		if m.c.room() {
			o.respond(encoded)
		}
	}
	return amqp.Accepted{}
}

func (m *management) answer(ctx context.Context, req *request) response {
	run := operations[req.operation]
	if run == nil {
		return refusal(&amqp.Error{
			Condition:   amqp.ConditionNotImplemented,
			Description: fmt.Sprintf("The operation '%s' is not supported.", req.operation),
		})
	}
	answer, err := run(m, ctx, req)
	if err != nil {
		return refusal(asError(err))
	}
	return answer
}

func (m *management) broker() *broker.Broker { return m.c.srv.cfg.Broker }

// receiver returns the broker's receiver behind the associated link, or nil when the request names none that is attached.
func (m *management) receiver(req *request) *outgoing {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	o := m.c.byName[req.properties.String(associatedLink)]
	if o != nil {
		o.link.lastActive = time.Now()
	}
	return o
}

// sessionReceiver returns the receiver that holds the session on behalf of which the request is made. nil without an
// error means that the request names no link, and then whoever holds the session is asked for.
func (m *management) sessionReceiver(req *request) (*broker.Receiver, error) {
	name := req.properties.String(associatedLink)
	if name == "" {
		return nil, nil
	}
	o := m.receiver(req)
	if o == nil || !o.session || o.receiver.SessionID() != req.text("session-id") {
		return nil, &amqp.Error{
			Condition:   entity.ConditionSessionLockLost,
			Description: "The session lock has expired on the MessageSession. Accept a new MessageSession.",
		}
	}
	return o.receiver, nil
}

// argument is the error for a field that is missing or of the wrong type.
func argument(field, want string) error {
	return &amqp.Error{Condition: entity.ConditionArgument, Description: fmt.Sprintf("The field '%s' must be %s.", field, want)}
}

func (r *request) field(name string) any {
	m, _ := r.body.(amqp.Map)
	return m.Get(name)
}

func (r *request) text(name string) string {
	s, _ := amqp.AsString(r.field(name))
	return s
}

// optionalText tells a field that is absent or null from one that is empty.
func (r *request) optionalText(name string) *string {
	if s, ok := amqp.AsString(r.field(name)); ok {
		return &s
	}
	return nil
}

func (r *request) integer(name string) (int64, error) {
	n, ok := amqp.AsInt(r.field(name))
	if !ok {
		return 0, argument(name, "an integer")
	}
	return n, nil
}

// items reads a field that is an array or a list.
func (r *request) items(name string) []any {
	switch v := r.field(name).(type) {
	case amqp.Array:
		return v.Items
	case []any:
		return v
	}
	return nil
}

func (r *request) integers(name string) ([]int64, error) {
	items := r.items(name)
	out := make([]int64, 0, len(items))
	for _, item := range items {
		n, ok := amqp.AsInt(item)
		if !ok {
			return nil, argument(name, "an array of integers")
		}
		out = append(out, n)
	}
	if len(out) == 0 {
		return nil, argument(name, "an array of integers")
	}
	return out, nil
}

func (r *request) tokens(name string) ([]uuid.UUID, error) {
	items := r.items(name)
	out := make([]uuid.UUID, 0, len(items))
	for _, item := range items {
		token, ok := item.(amqp.UUID)
		if !ok {
			return nil, argument(name, "an array of UUIDs")
		}
		out = append(out, uuid.UUID(token))
	}
	if len(out) == 0 {
		return nil, argument(name, "an array of UUIDs")
	}
	return out, nil
}
