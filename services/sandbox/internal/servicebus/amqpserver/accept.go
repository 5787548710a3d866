package amqpserver

import (
	"context"
	"slices"
	"time"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/broker"
	"changerelay/services/sandbox/internal/servicebus/sas"
)

// What the service adds to an attach. The filter's descriptor is the one clients send and expect back.
const (
	sessionFilter     = "com.microsoft:session-filter"
	sessionFilterCode = uint64(0x137000000c)
	acceptTimeoutKey  = "com.microsoft:timeout"
	lockedUntilKey    = "com.microsoft:locked-until-utc"
)

// ticksAtEpoch is the Unix epoch in the ticks of .NET: 100 ns each since the year 1.
const ticksAtEpoch = 621_355_968_000_000_000

func ticks(t time.Time) int64 { return t.UnixNano()/100 + ticksAtEpoch }

// attachOutgoing opens the node a peer wants to receive from.
func (l *link) attachOutgoing(p *amqp.Attach) {
	o := &outgoing{link: l, settled: p.SenderMode == amqp.SenderSettled, batch: pumpFirst}
	l.out = o
	if p.Source == nil || p.Source.Dynamic {
		l.refuse(p, &amqp.Error{Condition: amqp.ConditionNotImplemented, Description: "Dynamic nodes are not supported."})
		return
	}
	l.address = p.Source.Address
	c := l.s.c
	_, requests := cutSuffixFold(l.address, "/"+managementNode)
	if requests || l.address == cbsAddress {
		l.attachReplies(p)
		return
	}
	l.needs = sas.Listen
	if err := c.authorize(l.address, l.needs, time.Now()); err != nil {
		l.refuse(p, err)
		return
	}
	options := broker.ReceiverOptions{
		Session: wantedSession(p.Source.Filter), Name: c.peer.container + " at " + c.nc.RemoteAddr().String(),
	}
	if o.settled {
		options.Mode = broker.ReceiveAndDelete
	}
	timeout := acceptTimeout(p.Properties, c.srv.pace.Load().AcceptTimeout)
	c.enqueue(&o.lane, func() { l.accept(p, options, timeout) })
}

// attachReplies registers a link for answers under the address that requests name as their reply-to.
func (l *link) attachReplies(p *amqp.Attach) {
	o := l.out
	o.settled = true
	if p.Target != nil {
		o.reply = p.Target.Address
	}
	l.s.c.replies.add(o)
	l.state = attached
	l.s.send(&amqp.Attach{
		Name: p.Name, Handle: l.handle, Role: amqp.RoleSender,
		SenderMode: p.SenderMode, ReceiverMode: p.ReceiverMode,
		Source: p.Source, Target: p.Target, InitialDeliveryCount: amqp.Some(0), Properties: p.Properties,
	})
}

// wantedSession reads the session filter: absent, the id of a session, or null for the next one that is free.
func wantedSession(filter amqp.Map) *broker.SessionFilter {
	for _, entry := range filter {
		if key, _ := amqp.AsString(entry.Key); key != sessionFilter {
			continue
		}
		value := entry.Value
		if d, ok := value.(amqp.Described); ok {
			value = d.Value
		}
		if id, ok := amqp.AsString(value); ok {
			return &broker.SessionFilter{ID: id}
		}
		return &broker.SessionFilter{Next: true}
	}
	return nil
}

// answerMargin is how much of a client's timeout, at most, is kept for the answer to reach it: clients stop waiting at the
// same moment, and one that has stopped does not know of a session it was given.
const answerMargin = time.Second

// acceptTimeout is the client's own, in milliseconds, or the default.
func acceptTimeout(properties amqp.Map, byDefault time.Duration) time.Duration {
	ms, ok := amqp.AsInt(properties.Get(acceptTimeoutKey))
	if !ok || ms < 0 {
		return byDefault
	}
	timeout := time.Duration(min(ms, int64(24*time.Hour/time.Millisecond))) * time.Millisecond
	return timeout - min(timeout/10, answerMargin)
}

// accept completes the attach of a receiver's link. Waiting for the next session ends with the link or the timeout.
func (l *link) accept(p *amqp.Attach, options broker.ReceiverOptions, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(l.ctx, timeout)
	defer cancel()
	c := l.s.c
	_ = wait(l.ctx, draw(c.srv.pace.Load().Accept)) // an end shows in what follows
	receiver, err := c.srv.cfg.Broker.OpenReceiver(ctx, entityPath(l.address), options)
	c.mu.Lock()
	if l.state != attaching {
		c.mu.Unlock()
		if err == nil {
			receiver.Close()
		}
		return
	}
	defer c.mu.Unlock()
	if err != nil {
		l.refuse(p, asError(err))
		return
	}
	l.state = attached
	l.out.receiver = receiver
	c.byName[l.name] = l.out
	answer := &amqp.Attach{
		Name: p.Name, Handle: l.handle, Role: amqp.RoleSender,
		SenderMode: p.SenderMode, ReceiverMode: p.ReceiverMode,
		Source: &amqp.Source{Address: p.Source.Address}, Target: p.Target,
		InitialDeliveryCount: amqp.Some(0), MaxMessageSize: p.MaxMessageSize, Properties: p.Properties,
	}
	if options.Session != nil {
		l.out.session = true
		answer.Source.Filter = amqp.Map{{
			Key:   amqp.Symbol(sessionFilter),
			Value: amqp.Described{Descriptor: sessionFilterCode, Value: receiver.SessionID()},
		}}
		lockedUntil := amqp.Pair{Key: amqp.Symbol(lockedUntilKey), Value: ticks(receiver.LockedUntil())}
		answer.Properties = append(slices.Clone(p.Properties), lockedUntil)
	}
	l.s.send(answer)
	l.out.opened()
}
