// Package busfaults describes the Service Bus side's faults to whoever starts
// them by name. The mechanisms are those of the broker and the AMQP server.
package busfaults

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"changerelay/services/sandbox/internal/faults"
	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/amqpserver"
	"changerelay/services/sandbox/internal/servicebus/broker"
)

// forever is how long a fault lasts that is ended by its End.
const forever = time.Duration(math.MaxInt64 / 2)

// entity is a queue, a topic or a subscription ("topic/Subscriptions/name").
type entity struct {
	Path string `json:"path"`
}

// reason is the AMQP error that a peer is told.
type reason struct {
	Condition   string `json:"condition"`
	Description string `json:"description"`
}

func (r reason) or(condition, description string) (cond, desc string) {
	return cmp.Or(r.Condition, condition), cmp.Or(r.Description, description)
}

// Kinds are the faults of a broker and the server in front of it.
func Kinds(b *broker.Broker, s *amqpserver.Server) []faults.Kind {
	return []faults.Kind{
		faults.NewKind("servicebus.cut",
			"Resets every connection, as a failing network does.",
			`{"kind":"servicebus.cut"}`,
			func(struct{}) (faults.Effect, error) { return faults.Effect{Affected: s.Cut()}, nil }),
		faults.NewKind("servicebus.close",
			"Closes every connection with an AMQP error.",
			`{"kind":"servicebus.close","condition":"amqp:connection:forced","description":"maintenance"}`,
			func(r reason) (faults.Effect, error) {
				return faults.Effect{Affected: s.CloseConnections(r.or(amqp.ConditionConnectionForced, "The connection was closed on demand."))}, nil
			}),
		detach(s),
		loseSessionLocks(b),
		throttle(b),
		redeliver(b),
		delay(b, s),
	}
}

func detach(s *amqpserver.Server) faults.Kind {
	type fields struct {
		entity
		reason
	}
	return faults.NewKind("servicebus.detach",
		"Detaches the links to an entity, or all of them, with an AMQP error.",
		`{"kind":"servicebus.detach","path":"changes/Subscriptions/projector","condition":"amqp:link:detach-forced"}`,
		func(f fields) (faults.Effect, error) {
			condition, description := f.or(amqp.ConditionDetachForced, "The link was detached on demand.")
			return faults.Effect{Affected: s.Detach(f.Path, condition, description)}, nil
		})
}

func loseSessionLocks(b *broker.Broker) faults.Kind {
	type fields struct {
		entity
		Sessions []string `json:"sessions"`
	}
	return faults.NewKind("servicebus.lose-session-locks",
		"Takes the named sessions, or all, from their holders.",
		`{"kind":"servicebus.lose-session-locks","path":"changes/Subscriptions/projector","sessions":["order-1"]}`,
		func(f fields) (faults.Effect, error) {
			lost, err := b.LoseSessionLocks(f.Path, f.Sessions...)
			return faults.Effect{Affected: lost}, err
		})
}

func throttle(b *broker.Broker) faults.Kind {
	return faults.NewKind("servicebus.throttle",
		"Answers sends, requests and new links of an entity with server-busy. Links that receive go on.",
		`{"kind":"servicebus.throttle","path":"changes","for":"10s"}`,
		func(f entity) (faults.Effect, error) {
			if err := b.Throttle(f.Path, forever); err != nil {
				return faults.Effect{}, err
			}
			return faults.Effect{Affected: 1, End: func() { _ = b.Throttle(f.Path, 0) }}, nil // the entity may be gone
		})
}

func redeliver(b *broker.Broker) faults.Kind {
	type fields struct {
		entity
		Times int `json:"times"`
	}
	return faults.NewKind("servicebus.redeliver",
		"Loses the next completions, as many as times says: each is answered, and its message delivered once more.",
		`{"kind":"servicebus.redeliver","path":"changes/Subscriptions/projector","times":3}`,
		func(f fields) (faults.Effect, error) {
			if f.Times < 1 {
				return faults.Effect{}, errors.New("times must be 1 or more")
			}
			if err := b.Redeliver(f.Path, f.Times); err != nil {
				return faults.Effect{}, err
			}
			return faults.Effect{Affected: 1, End: func() { _ = b.Redeliver(f.Path, 0) }}, nil // the entity may be gone
		})
}

func delay(b *broker.Broker, s *amqpserver.Server) faults.Kind {
	type fields struct {
		entity
		Delay faults.Duration `json:"delay"`
		Of    []operation     `json:"of"`
	}
	return faults.NewKind("servicebus.delay",
		"Makes each send, receive and settle of an entity, or some of these, take longer; without a path, each frame that a client sends.",
		`{"kind":"servicebus.delay","path":"changes/Subscriptions/projector","delay":"200ms","of":["receive","settle"],"for":"30s"}`,
		func(f fields) (faults.Effect, error) {
			d := time.Duration(f.Delay)
			if f.Path == "" {
				s.Delay(d)
				return faults.Effect{End: func() { s.Delay(0) }}, nil
			}
			var of []broker.Operation
			for _, o := range f.Of {
				of = append(of, broker.Operation(o))
			}
			if err := b.Delay(f.Path, d, of...); err != nil {
				return faults.Effect{}, err
			}
			return faults.Effect{Affected: 1, End: func() { _ = b.Delay(f.Path, 0, of...) }}, nil // the entity may be gone
		})
}

// operation is read by its name.
type operation broker.Operation

func (o *operation) UnmarshalText(text []byte) error {
	known := map[string]broker.Operation{"send": broker.Sending, "receive": broker.Receiving, "settle": broker.Settling}
	found, ok := known[string(text)]
	if !ok {
		return fmt.Errorf("operation %q is none of send, receive and settle", text)
	}
	*o = operation(found)
	return nil
}
