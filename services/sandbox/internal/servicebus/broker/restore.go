package broker

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// Restore carries out a record that a journal has kept. It is for an empty
// broker, before Keep and Run and in the order of the journal. Locks and
// receivers do not come back; what was due or expired meanwhile is seen to by
// Run.
func (b *Broker) Restore(record []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &decoder{buf: record}
	for len(r.buf) > 0 {
		op := operation(r.byte())
		err := b.restore(op, r)
		if err == nil {
			err = r.err
		}
		if err != nil {
			return fmt.Errorf("restore operation %d: %w", op, err)
		}
	}
	return nil
}

// errNoPlace is an operation on something that earlier ones did not make.
var errNoPlace = errors.New("its entity or message is not there")

func (b *Broker) restore(op operation, r *decoder) error {
	switch op {
	case opQueue:
		return b.restoreQueue(r)
	case opTopic:
		return b.restoreTopic(r)
	case opSubscription:
		return b.restoreSubscription(r)
	case opDropInlet:
		in := b.inlets[strings.ToLower(r.string())]
		if in == nil {
			return errNoPlace
		}
		b.dropInlet(in, time.Time{})
		return nil
	case opDropSubscription:
		in, out, err := b.subscription(r.string(), r.string())
		if err != nil {
			return errNoPlace
		}
		b.dropSubscription(in, out, time.Time{})
		return nil
	case opContent:
		return b.restoreContent(r)
	case opPut:
		return b.restorePut(r)
	case opRemove:
		e := b.stores[r.uint()].at(r.int())
		if e == nil {
			return errNoPlace
		}
		e.store.discard(e)
		if e.holders == 0 {
			delete(b.restored, e.number)
		}
		return nil
	case opChange:
		return b.restoreChange(r)
	case opState:
		return b.restoreState(r)
	case opRemember:
		return b.restoreRemember(r)
	case opNumbers:
		return b.restoreNumbers(r)
	}
	return errRecord
}

// at is entry for a store that may not be there.
func (s *store) at(seq int64) *entry {
	if s == nil {
		return nil
	}
	return s.entry(seq)
}

func (r *decoder) dates() dates { return dates{r.time(), r.time(), r.time()} }

func (b *Broker) restoreQueue(r *decoder) error {
	name, id := r.string(), r.uint()
	var p entity.QueueProperties
	r.settings(&p)
	d := r.dates()
	if r.err != nil {
		return r.err
	}
	in := b.inlets[strings.ToLower(name)]
	if in == nil {
		in = b.addQueue(name, id, p, d.created)
	} else {
		in.applyQueue(p)
	}
	in.dates = d
	b.watchIdle(in, in.outlets[""])
	return nil
}

func (b *Broker) restoreTopic(r *decoder) error {
	name, id := r.string(), r.uint()
	var p entity.TopicProperties
	r.settings(&p)
	d := r.dates()
	if r.err != nil {
		return r.err
	}
	in := b.inlets[strings.ToLower(name)]
	if in == nil {
		in = b.addTopic(name, id, p, d.created)
	} else {
		in.applyTopic(p)
	}
	in.dates = d
	b.watchIdle(in, nil)
	return nil
}

func (b *Broker) restoreSubscription(r *decoder) error {
	topic, name, id := r.string(), r.string(), r.uint()
	var p entity.SubscriptionProperties
	r.settings(&p)
	d := r.dates()
	var rules []entity.Rule
	for range r.uint() {
		if r.err != nil {
			return r.err
		}
		rules = append(rules, r.rule())
	}
	if r.err != nil {
		return r.err
	}
	compiled, err := compileRules(rules, d.created)
	if err != nil {
		return err
	}
	in, err := b.inlet(topic, true)
	if err != nil {
		return errNoPlace
	}
	out := in.outlets[strings.ToLower(name)]
	if out == nil {
		out = b.addSubscription(in, name, id, p, compiled, d.created)
	}
	out.properties, out.rules, out.dates = p, compiled, d
	out.apply(subscriptionTerms(p))
	b.watchIdle(in, out)
	return nil
}

func (b *Broker) restoreContent(r *decoder) error {
	number := r.uint()
	m := &entity.Message{SessionID: r.optional()}
	for _, s := range []*string{
		&m.MessageID, &m.PartitionKey, &m.Subject, &m.To, &m.ReplyTo, &m.ReplyToSessionID, &m.CorrelationID, &m.ContentType,
	} {
		*s = r.string()
	}
	m.TimeToLive = time.Duration(r.int())
	m.ScheduledEnqueueTime = r.time()
	m.Properties = r.properties()
	m.Payload = r.bytes()
	b.restored[number] = &content{msg: m, number: number}
	b.log.contents = max(b.log.contents, number)
	return r.err
}

func (b *Broker) restorePut(r *decoder) error {
	s := b.stores[r.uint()]
	e := &entry{seq: r.int()}
	e.content = b.restored[r.uint()]
	e.enqueuedSeq = r.int()
	e.partition = int16(r.int())
	e.enqueuedAt, e.expiresAt = r.time(), r.time()
	r.mutable(e)
	switch {
	case r.err != nil:
		return r.err
	case s == nil || e.content == nil || s.entry(e.seq) != nil:
		return errNoPlace
	case s.sessions != nil && e.msg.SessionID == nil && e.state != entity.StateScheduled:
		return errRecord
	}
	e.quota = &s.inlet.quota
	s.put(e, time.Time{})
	s.numbers.saw(e.seq)
	if s.inlet.topic {
		s.inlet.waiting.numbers.saw(e.enqueuedSeq)
	}
	return nil
}

// saw keeps later numbers above one that was given.
func (n *numbers) saw(seq int64) {
	partition := seq >> partitionShift
	if partition < 0 || partition >= partitions {
		return
	}
	n.last[partition] = max(n.last[partition], seq&(1<<partitionShift-1))
}

func (r *decoder) mutable(e *entry) {
	e.state = entity.State(r.uint())
	e.failed = uint32(r.uint())
	if e.state > entity.StateScheduled {
		r.fail()
	}
	e.marks = nil
	if r.bool() {
		e.marks = &marks{deadSource: r.string(), deadReason: r.string(), deadDescription: r.string(), modified: r.properties()}
	}
}

func (b *Broker) restoreChange(r *decoder) error {
	e := b.stores[r.uint()].at(r.int())
	if e == nil {
		return errNoPlace
	}
	changed := entry{}
	r.mutable(&changed)
	if r.err != nil {
		return r.err
	}
	s := e.store
	s.take(e)
	s.count(e.state, -1)
	e.state, e.failed, e.marks = changed.state, changed.failed, changed.marks
	s.count(e.state, 1)
	if e.state == entity.StateActive {
		s.offer(e, time.Time{})
	}
	return nil
}

func (b *Broker) restoreState(r *decoder) error {
	s := b.stores[r.uint()]
	id, set, state, at := r.string(), r.bool(), r.bytes(), r.time()
	if r.err != nil {
		return r.err
	}
	if s == nil || s.sessions == nil {
		return errNoPlace
	}
	x := s.session(id)
	x.state, x.updatedAt = nil, at
	if set {
		x.state = state
	}
	x.forgetIfEmpty()
	return nil
}

func (b *Broker) restoreRemember(r *decoder) error {
	s := b.stores[r.uint()]
	var id fingerprint
	copy(id[:], r.raw(uint64(len(id))))
	at := r.time()
	if r.err != nil {
		return r.err
	}
	if s == nil || s.inlet.history == nil {
		return errNoPlace
	}
	s.inlet.history.remember(id, at)
	return nil
}

func (b *Broker) restoreNumbers(r *decoder) error {
	s := b.stores[r.uint()]
	if s == nil {
		return errNoPlace
	}
	for i := range s.numbers.last {
		s.numbers.last[i] = r.int()
	}
	return r.err
}
