package amqpserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/sas"
)

const (
	// linkCredit is how many deliveries of a link may be on their way or waiting for the broker.
	linkCredit = 1000
	// creditStep is how much credit must be free again before the peer is told.
	creditStep = linkCredit / 4
	// requestBytes bounds a request to $cbs or $management. The service takes messages of up to 1 MiB in a request.
	requestBytes = 2 << 20
	// partialFactor times the queued bytes is what incomplete transfers of a connection may hold.
	partialFactor = 16
)

// node is what a sending peer's link leads to.
type node interface {
	// accept handles one message and returns the state its delivery is settled with. An inline node is called with the
	// connection's mu held.
	accept(ctx context.Context, d *delivery) amqp.State
}

// delivery is one whole message from a peer.
type delivery struct {
	link    *link
	id      uint32
	format  uint32
	settled bool
	payload []byte
	// after, if any, is called with the connection's mu held once the delivery has been settled.
	after func()
}

// incoming is the receiving end of a link on which the peer sends.
type incoming struct {
	link *link
	node node
	// inline nodes answer without waiting, on the read loop.
	inline bool
	limit  uint64 // bytes of a message
	lane   lane

	deliveryCount uint32
	credit        uint32
	// pending counts the deliveries the node has not finished with: they hold on to their credit.
	pending uint32
	// current is the delivery whose frames are arriving.
	current *delivery
}

// attachIncoming opens the node a peer wants to send to.
func (l *link) attachIncoming(p *amqp.Attach) {
	in := &incoming{link: l, limit: requestBytes, credit: linkCredit}
	l.in = in
	if p.Target == nil || p.Target.Coordinator || p.Target.Dynamic {
		l.refuse(p, &amqp.Error{Condition: amqp.ConditionNotImplemented, Description: "Transactions and dynamic nodes are not supported."})
		return
	}
	l.address = p.Target.Address
	if p.InitialDeliveryCount.Set {
		in.deliveryCount = p.InitialDeliveryCount.Value
	}
	c := l.s.c
	if l.address == cbsAddress {
		in.node, in.inline = cbsNode{c: c}, true
		l.opened(p)
		return
	}
	entity, requests := cutSuffixFold(entityPath(l.address), "/"+managementNode)
	l.needs = sas.Send
	if requests {
		l.needs = sas.All // any of them
	}
	if err := c.authorize(l.address, l.needs, time.Now()); err != nil {
		l.refuse(p, err)
		return
	}
	if requests {
		in.node = &management{c: c, entity: entity}
		l.opened(p)
		return
	}
	// Whether the entity exists is the broker's to say, which may wait.
	c.enqueue(&in.lane, func() { l.openEntity(p, entity) })
}

// entityPath is an address without the scheme and host that some clients put in front.
func entityPath(address string) string {
	if _, rest, ok := strings.Cut(address, "://"); ok {
		_, address, _ = strings.Cut(rest, "/")
	}
	return strings.Trim(address, "/")
}

// cutSuffixFold is strings.CutSuffix without regard to case: entity names and the parts of a path are not case sensitive.
func cutSuffixFold(s, suffix string) (string, bool) {
	if at := len(s) - len(suffix); at >= 0 && strings.EqualFold(s[at:], suffix) {
		return s[:at], true
	}
	return s, false
}

// openEntity completes the attach of a sender's link to a queue or topic.
func (l *link) openEntity(p *amqp.Attach, path string) {
	c := l.s.c
	limit, err := c.srv.cfg.Broker.MaxMessageBytes(path)
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.state != attaching || l.ctx.Err() != nil {
		return
	}
	if err != nil {
		l.refuse(p, asError(err))
		return
	}
	l.in.node, l.in.limit = entityNode{broker: c.srv.cfg.Broker, path: path}, uint64(limit)
	l.opened(p)
}

// opened answers the attach and gives credit.
func (l *link) opened(p *amqp.Attach) {
	l.state = attached
	l.s.send(&amqp.Attach{
		Name: p.Name, Handle: l.handle, Role: amqp.RoleReceiver,
		SenderMode: p.SenderMode, ReceiverMode: amqp.ReceiverFirst,
		Source: p.Source, Target: p.Target, MaxMessageSize: l.in.limit, Properties: p.Properties,
	})
	l.in.sendCredit()
}

func (in *incoming) sendCredit() {
	in.link.s.sendFlow(&amqp.Flow{
		Handle:        amqp.Some(in.link.handle),
		DeliveryCount: amqp.Some(in.deliveryCount),
		LinkCredit:    amqp.Some(in.credit),
	})
}

// transfer takes one frame of a delivery (section 2.6.14).
func (in *incoming) transfer(p *amqp.Transfer, payload []byte) {
	d := in.current
	if d == nil {
		if in.credit == 0 {
			in.link.detachWith(&amqp.Error{Condition: amqp.ConditionTransferLimitExceeded, Description: "The link has no credit."})
			return
		}
		if !p.DeliveryID.Set {
			in.link.detachWith(&amqp.Error{Condition: amqp.ConditionInvalidField, Description: "The first transfer of a delivery has no delivery-id."})
			return
		}
		d = &delivery{link: in.link, id: p.DeliveryID.Value, format: p.MessageFormat.Value}
	}
	in.drop()
	if p.DeliveryID.Set && p.DeliveryID.Value != d.id {
		in.link.detachWith(&amqp.Error{
			Condition:   amqp.ConditionNotAllowed,
			Description: fmt.Sprintf("The delivery %d began before the delivery %d was complete or aborted.", p.DeliveryID.Value, d.id),
		})
		return
	}
	d.settled = d.settled || p.Settled
	if p.Aborted {
		in.begin()
		in.done()
		return
	}
	if size := uint64(len(d.payload) + len(payload)); size > in.limit {
		in.link.detachWith(tooLarge(size, in.limit))
		return
	}
	d.payload = append(slices.Grow(d.payload, len(payload)), payload...)
	if p.More {
		in.keep(d)
		return
	}
	in.begin()
	if _, ok := p.State.(amqp.Transactional); ok {
		in.settle(d, amqp.Rejected{Error: &amqp.Error{Condition: amqp.ConditionNotImplemented, Description: "Transactions are not supported."}})
		return
	}
	in.deliver(d)
}

// keep holds a delivery until its next frame.
func (in *incoming) keep(d *delivery) {
	c := in.link.s.c
	in.current = d
	c.hold(len(d.payload))
	whose := ""
	switch {
	case c.partial > partialFactor*c.srv.cfg.MaxQueuedBytes:
		whose = "the connection"
	case c.srv.partial.Load() > c.srv.cfg.MaxTotalBytes:
		whose = "all connections"
	default:
		return
	}
	in.drop()
	in.link.detachWith(&amqp.Error{
		Condition:   amqp.ConditionResourceLimitExceeded,
		Description: "Too many messages of " + whose + " are incomplete.",
	})
}

// drop lets go of the delivery that is arriving.
func (in *incoming) drop() {
	if in.current != nil {
		in.link.s.c.hold(-len(in.current.payload))
		in.current = nil
	}
}

func tooLarge(size, limit uint64) *amqp.Error {
	return &amqp.Error{
		Condition:   amqp.ConditionMessageSizeExceeded,
		Description: fmt.Sprintf("The received message (delivery-id:0, size:%d bytes) exceeds the limit (%d bytes) currently allowed on the link.", size, limit),
	}
}

// begin counts a delivery against the credit.
func (in *incoming) begin() {
	in.deliveryCount++
	in.credit--
	in.pending++
}

// done gives the credit of a delivery back.
func (in *incoming) done() {
	in.pending--
	if free := linkCredit - in.pending; free-in.credit >= creditStep && in.link.state == attached {
		in.credit = free
		in.sendCredit()
	}
}

// deliver gives a whole message to the node: inline ones at once, others in the lane.
func (in *incoming) deliver(d *delivery) {
	c := in.link.s.c
	if in.inline {
		in.settle(d, in.node.accept(c.ctx, d))
		return
	}
	c.queue(len(d.payload))
	c.enqueue(&in.lane, func() {
		state := in.node.accept(c.ctx, d)
		takes := time.Duration(0)
		if _, message := in.node.(entityNode); message {
			takes = draw(c.srv.pace.Load().Send)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.queue(-len(d.payload))
		d.payload = nil
		c.changed.Broadcast()
		in.link.later(takes, func() { in.settle(d, state) })
	})
}

// settle tells the peer what became of its delivery.
func (in *incoming) settle(d *delivery, state amqp.State) {
	in.done()
	if !d.settled && in.link.answering() {
		in.link.s.send(&amqp.Disposition{Role: amqp.RoleReceiver, First: d.id, Settled: true, State: state})
	}
	if d.after != nil {
		d.after()
	}
}
