package amqpserver

import (
	"context"
	"errors"
	"time"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

const (
	// pumpFirst is how many messages are taken from the broker at first, when their size is not known.
	pumpFirst = 16
	// pumpMost bounds the messages taken at once; what the last ones weighed bounds them further.
	pumpMost = 256
)

// startPump starts the pump when there is credit and none runs. It needs the connection's mu.
func (o *outgoing) startPump() {
	if o.receiver == nil || o.pumping || o.credit == 0 || o.link.s.remoteWindow == 0 || o.link.state != attached {
		return
	}
	o.pumping = true
	o.link.s.c.wg.Go(o.pump)
}

// pump moves messages from the broker to the peer while there is credit.
func (o *outgoing) pump() {
	c := o.link.s.c
	for {
		ctx, n := o.next()
		if n == 0 {
			c.flush()
			return
		}
		got, err := o.receiver.Receive(ctx, n)
		if final := o.take(ctx, got, err); final != nil {
			o.lost(final)
			return
		}
		c.flush()
	}
}

// next decides how many messages to ask the broker for. 0 ends the pump.
func (o *outgoing) next() (context.Context, int) {
	c := o.link.s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.interrupt != nil {
		o.interrupt()
		o.interrupt = nil
	}
	if !c.room() || o.link.state != attached || len(o.outbox) > 0 || o.credit == 0 || o.link.s.remoteWindow == 0 {
		o.pumping = false
		if o.drain && o.link.state == attached {
			o.drained()
		}
		return nil, 0
	}
	ctx, cancel := context.WithCancel(o.link.ctx)
	o.interrupt = cancel
	if o.drain {
		// What is ready is still given out under a context that has ended.
		cancel()
	}
	return ctx, min(int(o.credit), o.batch)
}

// take sends the messages on. It returns the broker's error when that ends the link.
func (o *outgoing) take(ctx context.Context, got []*entity.Delivery, err error) error {
	encoded := make([]outbound, 0, len(got))
	size := 0
	for _, d := range got {
		payload, encodeErr := encodeDelivery(d, false)
		if encodeErr != nil {
			return encodeErr
		}
		size += len(payload)
		encoded = append(encoded, outbound{tag: deliveryTag(d.LockToken), token: d.LockToken, rest: payload})
	}
	c := o.link.s.c
	c.mu.Lock()
	if o.link.state != attached {
		c.mu.Unlock()
		o.release(encoded)
		return nil
	}
	if len(got) > 0 {
		o.link.lastActive = time.Now()
		o.batch = min(max(outputHigh/(size/len(got)+1), 1), pumpMost)
	}
	o.outbox = append(o.outbox, encoded...)
	o.push()
	if len(got) == 0 && o.drain && len(o.outbox) == 0 {
		o.drained()
	}
	if o.credit == 0 {
		// The peer withdrew some while the broker was asked.
		o.handBack(o.unsent())
	}
	c.mu.Unlock()
	if err != nil && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// unsent takes out of the outbox what has not been started and can go back. What was taken for good stays and waits for
// credit.
func (o *outgoing) unsent() []outbound {
	if o.settled || o.receiver == nil || len(o.outbox) == 0 {
		return nil
	}
	keep := 0
	if o.outbox[0].started {
		keep = 1
	}
	out := o.outbox[keep:]
	o.outbox = o.outbox[:keep:keep]
	return out
}

// handBack releases messages that were not sent.
func (o *outgoing) handBack(unsent []outbound) {
	if len(unsent) > 0 {
		o.link.s.c.enqueue(&o.lane, func() { o.release(unsent) })
	}
}

// release must happen whatever has ended, so it takes no context.
//
//nolint:contextcheck,nolintlint // contextcheck ends its search of all callers here, and reports nothing here
func (o *outgoing) release(unsent []outbound) {
	if o.settled {
		return
	}
	for _, d := range unsent {
		if err := o.receiver.Settle(d.token, entity.Release{}); err != nil {
			o.link.s.c.log.Debug().Err(err).Msg("message could not be handed back")
		}
	}
}

// lost ends the link because the broker's receiver did.
func (o *outgoing) lost(err error) {
	c := o.link.s.c
	c.mu.Lock()
	o.pumping = false
	o.link.detachWith(asError(err))
	c.mu.Unlock()
	c.flush()
}

// settle carries out a disposition of the peer for one delivery and, where the peer has not settled it itself, answers
// with the outcome (part 2, section 2.6.12, receiver settles second).
func (o *outgoing) settle(id uint32, d unsettled, p *amqp.Disposition) {
	s := o.link.s
	if _, partial := p.State.(amqp.Received); partial || (p.State == nil && !p.Settled) {
		return
	}
	delete(s.unsettled, id)
	o.link.lastActive = time.Now()
	answer := !p.Settled
	outcome, state := outcomeOf(p.State)
	s.c.enqueue(&o.lane, func() {
		var err error
		if outcome == nil {
			err = &amqp.Error{Condition: amqp.ConditionNotImplemented, Description: "Transactions are not supported."}
		} else {
			err = o.receiver.Settle(d.token, outcome)
		}
		o.settledWith(id, state, err, answer)
	})
}

// settledWith answers a disposition with what the broker made of it.
func (o *outgoing) settledWith(id uint32, state amqp.State, err error, answer bool) {
	c := o.link.s.c
	if err != nil {
		state = amqp.Rejected{Error: asError(err)}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer {
		o.link.later(draw(c.srv.pace.Load().Settle), func() {
			if o.link.answering() {
				o.link.s.send(&amqp.Disposition{Role: amqp.RoleSender, First: id, Last: amqp.Some(id), Settled: true, State: state})
			}
		})
	}
	if isCondition(err, entity.ConditionSessionLockLost) {
		// The service detaches a link whose session is lost; the client finds out even if it asks for nothing.
		o.link.detachWith(asError(err))
	}
}
