package amqpserver

import (
	"context"

	"github.com/google/uuid"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/broker"
)

// answersMost is how many answers may wait for credit on a link.
const answersMost = 1000

// outgoing is the sending end of a link on which the peer receives: from an entity, or answers to its requests.
type outgoing struct {
	link *link
	// receiver is nil on a link for answers.
	receiver *broker.Receiver
	// session tells that the receiver holds a session.
	session bool
	// reply is the address answers are sent to, on a link for them.
	reply string
	// settled links need no disposition: receive-and-delete, and answers.
	settled bool
	lane    lane

	deliveryCount uint32
	credit        uint32
	drain         bool
	// echo is what the peer has asked for before its attach was answered.
	echo bool
	// outbox holds what credit and window did not let out yet.
	outbox  []outbound
	pumping bool
	// batch is how many messages the pump asks for at once.
	batch int
	// interrupt ends the pump's wait.
	interrupt context.CancelFunc
}

// outbound is a message on its way to the peer. rest is what is left of it once it has been started.
type outbound struct {
	tag     []byte
	token   uuid.UUID
	rest    []byte
	started bool
}

// unsettled is a delivery the peer has to settle.
type unsettled struct {
	link  *link
	token uuid.UUID
}

// flow takes the peer's credit (section 2.6.7) and acts on it.
func (o *outgoing) flow(p *amqp.Flow) {
	o.grant(p)
	o.push()
	if o.credit == 0 {
		o.handBack(o.unsent())
	}
	if (o.drain || o.credit == 0) && o.interrupt != nil {
		o.interrupt()
	}
	if p.Echo && !p.Drain {
		o.sendFlow()
	}
}

// grant takes the peer's credit: it is relative to the deliveries the peer knew of.
func (o *outgoing) grant(p *amqp.Flow) {
	if p.LinkCredit.Set {
		o.credit = unused(p.LinkCredit.Value, o.deliveryCount, p.DeliveryCount.Value)
	}
	o.drain = p.Drain
}

// early takes credit that the peer sends behind its attach, without waiting for the answer (section 2.6.3).
func (o *outgoing) early(p *amqp.Flow) {
	o.grant(p)
	o.echo = o.echo || p.Echo
}

// opened acts on what came early. The attach has been answered.
func (o *outgoing) opened() {
	drain := o.drain
	o.push()
	if o.echo && !drain {
		o.sendFlow()
	}
}

func (o *outgoing) sendFlow() {
	o.link.s.sendFlow(&amqp.Flow{
		Handle:        amqp.Some(o.link.handle),
		DeliveryCount: amqp.Some(o.deliveryCount),
		LinkCredit:    amqp.Some(o.credit),
		Drain:         o.drain,
	})
}

// drained uses up the credit that nothing was there for and tells the peer (section 2.6.7).
func (o *outgoing) drained() {
	if len(o.outbox) > 0 {
		return
	}
	o.deliveryCount += o.credit
	o.credit = 0
	o.sendFlow()
	o.drain = false
}

// push sends what credit and window allow, and sees to it that the pump runs while there is credit.
func (o *outgoing) push() {
	s := o.link.s
	for len(o.outbox) > 0 && s.remoteWindow > 0 {
		d := &o.outbox[0]
		if !d.started && o.credit == 0 {
			return
		}
		o.sendFrame(d)
		if len(d.rest) == 0 {
			o.outbox[0] = outbound{}
			o.outbox = o.outbox[1:]
		}
	}
	if len(o.outbox) > 0 {
		return
	}
	o.outbox = nil
	o.startPump()
	if o.drain && !o.pumping {
		o.drained()
	}
}

// sendFrame sends the next transfer of a delivery: the first carries its identity (section 2.7.5).
func (o *outgoing) sendFrame(d *outbound) {
	s := o.link.s
	t := amqp.Transfer{Handle: o.link.handle, Settled: o.settled}
	if !d.started {
		d.started = true
		o.deliveryCount++
		o.credit--
		t.DeliveryID = amqp.Some(s.nextDelivery)
		t.DeliveryTag = d.tag
		t.MessageFormat = amqp.Some(0)
		if !o.settled {
			s.unsettled[s.nextDelivery] = unsettled{link: o.link, token: d.token}
		}
		s.nextDelivery++
	}
	s.nextOutgoing++
	s.remoteWindow--
	if s.c.closing {
		d.rest = nil
		return
	}
	s.c.out, d.rest = amqp.AppendTransfer(s.c.out, s.channel, &t, d.rest, s.c.peer.maxFrame)
}

// stop takes the link out of the books of receiving links. It may be called more than once.
func (o *outgoing) stop() {
	s := o.link.s
	if s.c.byName[o.link.name] == o {
		delete(s.c.byName, o.link.name)
	}
	s.c.replies.remove(o)
	for id, d := range s.unsettled {
		if d.link == o.link {
			delete(s.unsettled, id)
		}
	}
	o.handBack(o.unsent())
}

// respond queues an answer. Where none waits it may have any size, as a message may. It needs the connection's mu.
func (o *outgoing) respond(payload []byte) {
	if o.link.state != attached {
		return
	}
	waiting := len(payload)
	for _, d := range o.outbox {
		waiting += len(d.rest)
	}
	if len(o.outbox) >= answersMost || len(o.outbox) > 0 && waiting > o.link.s.c.srv.cfg.MaxQueuedBytes {
		o.link.detachWith(&amqp.Error{
			Condition:   amqp.ConditionResourceLimitExceeded,
			Description: "Too many answers wait for credit.",
		})
		return
	}
	o.outbox = append(o.outbox, outbound{tag: []byte{0}, rest: payload})
	o.push()
}
