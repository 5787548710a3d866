package amqpserver

import (
	"context"
	"time"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

// sessionsMost bounds the ids of one page of sessions.
const sessionsMost = 1000

func (m *management) renewSessionLock(_ context.Context, req *request) (response, error) {
	receiver, err := m.sessionReceiver(req)
	if err != nil {
		return response{}, err
	}
	var until time.Time
	if receiver != nil {
		until, err = receiver.RenewSessionLock()
	} else {
		until, err = m.broker().RenewSessionLock(m.entity, req.text("session-id"))
	}
	if err != nil {
		return response{}, m.sessionLost(req, err)
	}
	return ok(amqp.Map{{Key: "expiration", Value: until}}), nil
}

// sessionLost detaches the link that holds the session when err says that it is lost, and returns err.
func (m *management) sessionLost(req *request, err error) error {
	if !isCondition(err, entity.ConditionSessionLockLost) {
		return err
	}
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	if o := m.c.byName[req.properties.String(associatedLink)]; o != nil && o.session {
		o.link.detachWith(asError(err))
	}
	return err
}

func (m *management) getSessionState(_ context.Context, req *request) (response, error) {
	receiver, err := m.sessionReceiver(req)
	if err != nil {
		return response{}, err
	}
	var state []byte
	if receiver != nil {
		state, err = receiver.SessionState()
	} else {
		state, err = m.broker().GetSessionState(m.entity, req.text("session-id"))
	}
	if err != nil {
		return response{}, m.sessionLost(req, err)
	}
	var value any
	if state != nil {
		value = state
	}
	return ok(amqp.Map{{Key: "session-state", Value: value}}), nil
}

func (m *management) setSessionState(_ context.Context, req *request) (response, error) {
	var state []byte
	switch v := req.field("session-state").(type) {
	case nil:
	case []byte:
		state = append([]byte{}, v...)
	default:
		return response{}, argument("session-state", "binary or null")
	}
	receiver, err := m.sessionReceiver(req)
	if err != nil {
		return response{}, err
	}
	if receiver != nil {
		err = receiver.SetSessionState(state)
	} else {
		err = m.broker().SetSessionState(m.entity, req.text("session-id"), state)
	}
	if err != nil {
		return response{}, m.sessionLost(req, err)
	}
	return ok(nil), nil
}

// everySession is the year from which on a last-updated-time means all sessions with messages or a state: clients send
// .NET's DateTime.MaxValue.
const everySession = 9999

func (m *management) listSessions(_ context.Context, req *request) (response, error) {
	since, isTime := req.field("last-updated-time").(time.Time)
	if !isTime {
		return response{}, argument("last-updated-time", "a timestamp")
	}
	if since.Year() >= everySession {
		since = time.Time{}
	}
	skip, err := req.integer("skip")
	if err != nil {
		return response{}, err
	}
	top, err := req.integer("top")
	if err != nil {
		return response{}, err
	}
	ids, err := m.broker().ListSessions(m.entity, since, int(max(skip, 0)), int(min(max(top, 0), sessionsMost)))
	if err != nil {
		return response{}, err
	}
	if len(ids) == 0 {
		return noContent(), nil
	}
	return ok(amqp.Map{
		{Key: "skip", Value: int32(min(skip, 1<<31-1))},
		{Key: "sessions-ids", Value: ids},
	}), nil
}
