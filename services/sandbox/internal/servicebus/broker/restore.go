package broker

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
	"changerelay/services/sandbox/internal/servicebus/record"
)

// Restore carries out a record that a journal has kept. It is for an empty
// broker, before Keep and Run and in the order of the journal. Locks and
// receivers do not come back; what was due or expired meanwhile is seen to by
// Run.
func (b *Broker) Restore(written []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &decoder{record.Decoder{Buf: written}}
	for len(r.Buf) > 0 {
		op := operation(r.Byte())
		err := b.restore(op, r)
		if err == nil {
			err = r.Err
		}
		if err != nil {
			return fmt.Errorf("restore operation %d: %w", op, err)
		}
	}
	return nil
}

// errNoPlace is an operation on something that earlier ones did not make.
var errNoPlace = errors.New("its entity or message is not there")

// errNumberTaken is a message with the sequence number of another.
var errNumberTaken = errors.New("another message has its sequence number")

func (b *Broker) restore(op operation, r *decoder) error {
	switch op {
	case opQueue:
		return b.restoreQueue(r)
	case opTopic:
		return b.restoreTopic(r)
	case opSubscription:
		return b.restoreSubscription(r)
	case opDropInlet:
		in := b.inlets[strings.ToLower(r.Text())]
		if in == nil {
			return errNoPlace
		}
		b.dropInlet(in, time.Time{})
		return nil
	case opDropSubscription:
		in, out, err := b.subscription(r.Text(), r.Text())
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
		e := b.stores[r.Uint()].at(r.Int())
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
	return record.ErrRecord
}

// at is entry for a store that may not be there.
func (s *store) at(seq int64) *entry {
	if s == nil {
		return nil
	}
	return s.entry(seq)
}

func (r *decoder) dates() dates { return dates{r.Time(), r.Time(), r.Time()} }

func (b *Broker) restoreQueue(r *decoder) error {
	name, id := r.Text(), r.Uint()
	var p entity.QueueProperties
	r.settings(&p)
	d := r.dates()
	if r.Err != nil {
		return r.Err
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
	name, id := r.Text(), r.Uint()
	var p entity.TopicProperties
	r.settings(&p)
	d := r.dates()
	if r.Err != nil {
		return r.Err
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
	topic, name, id := r.Text(), r.Text(), r.Uint()
	var p entity.SubscriptionProperties
	r.settings(&p)
	d := r.dates()
	var rules []entity.Rule
	for range r.Uint() {
		if r.Err != nil {
			return r.Err
		}
		rules = append(rules, r.Rule())
	}
	if r.Err != nil {
		return r.Err
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
	number := r.Uint()
	m := &entity.Message{SessionID: r.Optional()}
	for _, s := range []*string{
		&m.MessageID, &m.PartitionKey, &m.Subject, &m.To, &m.ReplyTo, &m.ReplyToSessionID, &m.CorrelationID, &m.ContentType,
	} {
		*s = r.Text()
	}
	m.TimeToLive = time.Duration(r.Int())
	m.ScheduledEnqueueTime = r.Time()
	m.Properties = r.Properties()
	m.Payload = r.Bytes()
	b.restored[number] = &content{msg: m, number: number}
	b.log.contents = max(b.log.contents, number)
	return r.Err
}

func (b *Broker) restorePut(r *decoder) error {
	s := b.stores[r.Uint()]
	e := &entry{seq: r.Int()}
	e.content = b.restored[r.Uint()]
	e.enqueuedSeq = r.Int()
	e.partition = int16(r.Int())
	e.enqueuedAt, e.expiresAt = r.Time(), r.Time()
	r.mutable(e)
	switch {
	case r.Err != nil:
		return r.Err
	case s == nil || e.content == nil:
		return errNoPlace
	case s.entry(e.seq) != nil:
		return errNumberTaken
	case s.sessions != nil && e.msg.SessionID == nil && e.state != entity.StateScheduled:
		return record.ErrRecord
	}
	e.quota = &s.inlet.quota
	s.put(e, time.Time{})
	if s.isDeadLetter() {
		s.source.numbers.saw(e.seq)
	} else {
		s.numbers.saw(e.seq)
	}
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
	e.state = entity.State(r.Uint())
	e.failed = uint32(r.Uint())
	if e.state > entity.StateScheduled {
		r.Fail()
	}
	e.marks = nil
	if r.Bool() {
		e.marks = &marks{deadSource: r.Text(), deadReason: r.Text(), deadDescription: r.Text(), modified: r.Properties()}
	}
}

func (b *Broker) restoreChange(r *decoder) error {
	e := b.stores[r.Uint()].at(r.Int())
	if e == nil {
		return errNoPlace
	}
	changed := entry{}
	r.mutable(&changed)
	if r.Err != nil {
		return r.Err
	}
	s := e.store
	s.take(e)
	s.count(e.state, -1)
	e.state, e.failed = changed.state, changed.failed
	e.mark(changed.marks)
	s.count(e.state, 1)
	if e.state == entity.StateActive {
		s.offer(e, time.Time{})
	}
	return nil
}

func (b *Broker) restoreState(r *decoder) error {
	s := b.stores[r.Uint()]
	id, set, state, at := r.Text(), r.Bool(), r.Bytes(), r.Time()
	if r.Err != nil {
		return r.Err
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
	s := b.stores[r.Uint()]
	var id fingerprint
	copy(id[:], r.Raw(uint64(len(id))))
	at := r.Time()
	if r.Err != nil {
		return r.Err
	}
	if s == nil || s.inlet.history == nil {
		return errNoPlace
	}
	s.inlet.history.remember(id, at)
	return nil
}

func (b *Broker) restoreNumbers(r *decoder) error {
	s := b.stores[r.Uint()]
	if s == nil {
		return errNoPlace
	}
	for i := range s.numbers.last {
		s.numbers.last[i] = r.Int()
	}
	return r.Err
}
