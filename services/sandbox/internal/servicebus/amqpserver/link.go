package amqpserver

import (
	"context"
	"time"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/sas"
)

// linkState is where a link stands. See the package comment.
type linkState int

const (
	attaching linkState = iota
	attached
	detaching // a detach was sent, the peer's is awaited
	closing   // the peer's detach or end came, or the session is over
)

// link is one link endpoint (part 2, section 2.6), guarded by the connection's mu. Exactly one of in and out is set.
type link struct {
	s       *session
	name    string
	handle  uint32
	address string
	needs   sas.Rights // one of them; 0: none
	state   linkState
	// ctx ends with the link's use.
	ctx        context.Context
	cancel     context.CancelFunc
	lastActive time.Time

	in  *incoming // the peer sends
	out *outgoing // the peer receives

	// postponed are the answers that wait for their time; postpones counts all there were.
	postponed map[*postponed]struct{}
	postpones uint64
}

// attach makes a link (section 2.7.3) and opens its node.
func (s *session) attach(p *amqp.Attach) {
	switch {
	case s.links[p.Handle] != nil:
		s.fail(amqp.ConditionHandleInUse, "The handle is in use.")
		return
	case int64(p.Handle) >= int64(s.maxLinks):
		s.fail(amqp.ConditionNotAllowed, "The handle is above handle-max.")
		return
	case s.c.links >= s.c.srv.cfg.MaxConnectionLinks:
		s.fail(amqp.ConditionResourceLimitExceeded, "The connection has too many links.")
		return
	}
	l := &link{s: s, name: p.Name, handle: p.Handle, lastActive: time.Now()}
	l.ctx, l.cancel = context.WithCancel(s.c.ctx)
	s.links[p.Handle] = l
	s.c.links++
	if p.Role == amqp.RoleSender {
		l.attachIncoming(p)
		return
	}
	l.attachOutgoing(p)
}

// refuse answers an attach without the terminus on this side, followed by a detach that says why (section 2.6.3).
func (l *link) refuse(p *amqp.Attach, reason *amqp.Error) {
	answer := &amqp.Attach{Name: p.Name, Handle: l.handle, Role: !p.Role, SenderMode: p.SenderMode, ReceiverMode: p.ReceiverMode}
	if p.Role == amqp.RoleReceiver {
		answer.Target = p.Target
		answer.InitialDeliveryCount = amqp.Some(0)
	} else {
		answer.Source = p.Source
	}
	l.s.send(answer)
	l.s.send(&amqp.Detach{Handle: l.handle, Closed: true, Error: reason})
	l.state = detaching
	l.s.c.log.Debug().Str("address", l.address).Str("condition", reason.Condition).Msg("link refused")
	l.close(nil)
}

// detachWith detaches the link with an error.
func (l *link) detachWith(reason *amqp.Error) {
	if l.state != attached {
		return
	}
	l.s.send(&amqp.Detach{Handle: l.handle, Closed: true, Error: reason})
	l.state = detaching
	l.s.c.log.Debug().Str("address", l.address).Str("condition", reason.Condition).Msg("link detached")
	l.close(nil)
}

// detach completes a detach sent before, or closes the link and answers the peer's detach (section 2.7.7). The answer
// comes when the link's work is done: then a session it held is free.
func (s *session) detach(p *amqp.Detach) {
	l := s.links[p.Handle]
	if l == nil {
		s.fail(amqp.ConditionUnattachedHandle, "The detach names a handle that is not attached.")
		return
	}
	switch l.state {
	case closing:
		return
	case detaching:
		// Both sides have detached: the handle is free, whatever is left to do.
		l.state = closing
		l.forget()
		l.close(nil)
		return
	}
	early := l.state == attaching
	l.state = closing
	l.close(func() {
		if early {
			// The peer gave up before the answer: it still has to see an attach.
			s.send(&amqp.Attach{Name: l.name, Handle: l.handle, Role: l.in != nil, InitialDeliveryCount: amqp.Some(0)})
		}
		s.send(&amqp.Detach{Handle: l.handle, Closed: p.Closed})
		l.forget()
	})
}

// forget takes the link out of the books, which frees its handle.
func (l *link) forget() {
	if l.s.links[l.handle] != l {
		return
	}
	delete(l.s.links, l.handle)
	l.s.c.links--
	l.s.c.linkless = time.Now()
}

// close ends the link's work behind what its lane has still to do, then calls done, if any, with the connection's mu
// held. It may be called more than once.
func (l *link) close(done func()) {
	c := l.s.c
	l.hurry()
	lane := l.lane()
	if l.out != nil {
		l.cancel()
		l.out.stop()
	} else {
		l.in.drop()
	}
	if !lane.running && (l.out == nil || l.out.receiver == nil) {
		l.cancel()
		if done != nil {
			done()
		}
		return
	}
	c.enqueue(lane, func() {
		l.cancel()
		if l.out != nil && l.out.receiver != nil {
			l.out.receiver.Close()
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if done != nil {
			done()
		}
	})
}

func (l *link) lane() *lane {
	if l.in != nil {
		return &l.in.lane
	}
	return &l.out.lane
}

// answering tells whether frames about the link may still be sent.
func (l *link) answering() bool { return l.state == attached || (l.state == closing && !l.s.ended) }

// flow takes the link's part of a flow (section 2.6.7).
func (l *link) flow(p *amqp.Flow) {
	if l.out != nil {
		l.out.flow(p)
		return
	}
	if p.Echo {
		l.in.sendCredit()
	}
}
