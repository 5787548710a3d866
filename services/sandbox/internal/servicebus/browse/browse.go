package browse

import (
	"context"
	"errors"
	"net/http"

	"changerelay/services/sandbox/internal/servicebus/amqpserver"
	"changerelay/services/sandbox/internal/servicebus/broker"
	"changerelay/services/sandbox/internal/servicebus/entity"
	"changerelay/services/sandbox/internal/servicebus/sas"
	"changerelay/services/sandbox/internal/statuspage"
)

// Namespace is a namespace as the page sees it. nil Keys let everybody in.
type Namespace struct {
	Broker *broker.Broker
	Keys   sas.Keys
}

// Peek returns messages of a queue, a subscription or a dead-letter queue.
func (n Namespace) Peek(_ context.Context, who statuspage.Login, g statuspage.Glance) ([]statuspage.Message, error) {
	if err := n.allow(who, sas.Listen); err != nil {
		return nil, err
	}
	found, err := n.Broker.Look(g.Entity, g.From, g.Limit, g.Session)
	if err != nil {
		return nil, refusal(err)
	}
	messages := make([]statuspage.Message, 0, len(found))
	for _, d := range found {
		m, err := messageOf(d)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// Send puts a message into a queue or a topic.
func (n Namespace) Send(ctx context.Context, who statuspage.Login, path string, d statuspage.Draft) error {
	if err := n.allow(who, sas.Send); err != nil {
		return err
	}
	m, err := amqpserver.Sent(encode(d))
	if err != nil {
		return err
	}
	return refusal(n.Broker.Send(ctx, path, []*entity.Message{m}))
}

// Sessions lists sessions by id.
func (n Namespace) Sessions(_ context.Context, who statuspage.Login, l statuspage.SessionList) ([]statuspage.Session, error) {
	if err := n.allow(who, sas.Listen); err != nil {
		return nil, err
	}
	found, err := n.Broker.LookSessions(l.Entity, l.After, l.Limit, l.Held)
	if err != nil {
		return nil, refusal(err)
	}
	sessions := make([]statuspage.Session, 0, len(found))
	for _, s := range found {
		sessions = append(sessions, statuspage.Session(s))
	}
	return sessions, nil
}

// Authenticate tells why who is no key with the right to manage.
func (n Namespace) Authenticate(who statuspage.Login) error { return n.allow(who, sas.Manage) }

func (n Namespace) allow(who statuspage.Login, right sas.Rights) error {
	if n.Keys == nil {
		return nil
	}
	key, found := n.Keys[who.Name]
	switch {
	case !sas.Equal(key.Secret, who.Secret) || !found:
		return statuspage.Refuse(http.StatusUnauthorized,
			"this takes the name and the secret of a shared access key, as user and password of basic authentication")
	case key.Rights&right == 0:
		return statuspage.Refuse(http.StatusForbidden, "the key %q has no right %s", who.Name, right)
	}
	return nil
}

// refusal gives a broker's refusal the status that says whose turn it is.
func refusal(err error) error {
	e, ok := errors.AsType[*entity.Error](err)
	if !ok {
		return err
	}
	status := http.StatusBadRequest
	switch e.Condition {
	case entity.ConditionNotFound:
		status = http.StatusNotFound
	case entity.ConditionServerBusy:
		status = http.StatusServiceUnavailable
	case entity.ConditionMessageSizeExceeded:
		status = http.StatusRequestEntityTooLarge
	}
	return statuspage.Refuse(status, "%s", e.Error())
}
