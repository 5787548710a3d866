package amqpserver

import (
	"math"
	"slices"
	"time"

	"changerelay/services/sandbox/internal/servicebus/amqp"
)

// sessionWindow is how many transfer frames a peer may send ahead (part 2, section 2.5.6). Frames are taken as they are
// read, so the window is opened again when half of it is used up; what may pile up is bounded by credit and bytes.
const sessionWindow = 2048

// session is one session (part 2, section 2.5), guarded by the connection's mu. Channels and handles have the same
// numbers in both directions.
type session struct {
	c       *conn
	channel uint16
	// ended: an end with an error was sent, the peer's is awaited. ending: the peer's end came, links are being closed.
	ended, ending bool

	nextIncoming uint32 // transfer id expected next
	window       uint32 // transfer frames the peer may still send
	nextOutgoing uint32 // transfer id sent next
	remoteWindow uint32 // transfer frames that may still be sent

	nextDelivery uint32
	links        map[uint32]*link
	maxLinks     int
	// unsettled are the deliveries sent and not yet settled by the peer, by delivery id.
	unsettled map[uint32]unsettled
}

func newSession(c *conn, channel uint16, p *amqp.Begin) *session {
	return &session{
		c:            c,
		channel:      channel,
		nextIncoming: p.NextOutgoingID,
		window:       sessionWindow,
		remoteWindow: p.IncomingWindow,
		links:        map[uint32]*link{},
		maxLinks:     c.srv.pace.Load().MaxLinks,
		unsettled:    map[uint32]unsettled{},
	}
}

func (s *session) send(p amqp.Performative) { s.c.send(s.channel, p) }

// sendFlow fills in the session's part of a flow and sends it.
func (s *session) sendFlow(p *amqp.Flow) {
	p.NextIncomingID = amqp.Some(s.nextIncoming)
	p.IncomingWindow = s.window
	p.NextOutgoingID = s.nextOutgoing
	p.OutgoingWindow = sessionWindow
	s.send(p)
}

// end completes an end sent before, or closes all links and answers the peer's end (section 2.5.5).
func (s *session) end() {
	if s.ended {
		delete(s.c.sessions, s.channel)
		return
	}
	s.ending = true
	left := len(s.links)
	done := func() {
		if left--; left > 0 {
			return
		}
		s.send(&amqp.End{})
		delete(s.c.sessions, s.channel)
	}
	if left == 0 {
		left = 1
		done()
		return
	}
	for _, l := range s.links {
		l.state = closing
		l.close(func() {
			l.forget()
			done()
		})
	}
}

// fail ends the session with an error (section 2.5.5). Frames that still arrive are discarded.
func (s *session) fail(condition, description string) {
	s.send(&amqp.End{Error: &amqp.Error{Condition: condition, Description: description}})
	s.ended = true
	s.release()
}

// release closes all links without a word to the peer.
func (s *session) release() {
	for _, l := range s.links {
		l.state = closing
		l.close(l.forget)
	}
}

// flow takes the peer's windows and hands the link's part on (section 2.7.4).
func (s *session) flow(p *amqp.Flow) {
	s.remoteWindow = unused(p.IncomingWindow, s.nextOutgoing, p.NextIncomingID.Value) // section 2.5.6
	if !p.Handle.Set {
		if p.Echo {
			s.sendFlow(&amqp.Flow{})
		}
		s.resume()
		return
	}
	l := s.links[p.Handle.Value]
	if l == nil {
		s.fail(amqp.ConditionUnattachedHandle, "The flow names a handle that is not attached.")
		return
	}
	switch {
	case l.state == attached:
		l.lastActive = time.Now()
		l.flow(p)
	case l.state == attaching && l.out != nil:
		l.out.early(p)
	}
	s.resume()
}

// unused is what is left of what a peer grants: less what it had not seen when it did. The counts are serial numbers
// (section 2.8.10), both from 0 on, which a peer leaves out before it knows; a grant may be any number.
func unused(granted, sent, seen uint32) uint32 {
	left := int64(granted) - int64(int32(sent-seen))
	return uint32(min(max(left, 0), math.MaxUint32))
}

// resume lets links that waited for the window send on.
func (s *session) resume() {
	if s.remoteWindow == 0 {
		return
	}
	for _, l := range s.links {
		if l.out != nil && l.state == attached {
			l.out.push()
		}
	}
}

// transfer counts the frame against the window and gives it to its link (section 2.7.5).
func (s *session) transfer(p *amqp.Transfer, payload []byte) {
	s.nextIncoming++
	s.window--
	l := s.links[p.Handle]
	if l == nil {
		s.fail(amqp.ConditionUnattachedHandle, "The transfer names a handle that is not attached.")
		return
	}
	if s.window <= sessionWindow/2 {
		s.window = sessionWindow
		s.sendFlow(&amqp.Flow{})
	}
	switch {
	case l.state != attached:
	case l.in == nil:
		l.detachWith(&amqp.Error{Condition: amqp.ConditionNotAllowed, Description: "The link does not take transfers."})
	default:
		l.lastActive = time.Now()
		l.in.transfer(p, payload)
	}
}

// disposition settles deliveries that were sent to the peer (section 2.7.6). The deliveries it sent itself are settled
// at once, so nothing waits for a disposition in the role of a sender.
func (s *session) disposition(p *amqp.Disposition) {
	if p.Role != amqp.RoleReceiver {
		return
	}
	first, last := p.First, p.First
	if p.Last.Set {
		last = p.Last.Value
	}
	if first == last {
		if d, ok := s.unsettled[first]; ok {
			d.link.out.settle(first, d, p)
		}
		return
	}
	for _, id := range s.unsettledIn(first, last) {
		d := s.unsettled[id]
		d.link.out.settle(id, d, p)
	}
}

// unsettledIn lists the unsettled deliveries of a range in order. Ids are serial numbers (section 2.8.10), and a range
// may be far larger than what is unsettled.
func (s *session) unsettledIn(first, last uint32) []uint32 {
	var ids []uint32
	if int64(last-first) < int64(len(s.unsettled)) {
		for id := first; id != last+1; id++ {
			if _, ok := s.unsettled[id]; ok {
				ids = append(ids, id)
			}
		}
		return ids
	}
	for id := range s.unsettled {
		if id-first <= last-first {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b uint32) int { return int(int32(a - b)) })
	return ids
}
