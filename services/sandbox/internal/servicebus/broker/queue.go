package broker

import (
	"slices"
	"strings"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// Administration. Names are not case sensitive. Refusals have the conditions
// amqp:not-found, com.microsoft:entity-already-exists and
// com.microsoft:argument-error.

// CreateQueue fills defaults in and returns the queue as made.
func (b *Broker) CreateQueue(name string, p entity.QueueProperties) (entity.Queue, error) {
	p = p.WithDefaults(b.cfg.MaxMessageBytes)
	if err := p.Check(); err != nil {
		return entity.Queue{}, err
	}
	p.MaxSizeInMegabytes = sizeOfAll(p.MaxSizeInMegabytes, p.EnablePartitioning)
	b.mu.Lock()
	if err := b.checkNewInlet("queue", name); err != nil {
		b.mu.Unlock()
		return entity.Queue{}, err
	}
	now := time.Now()
	in := b.addQueue(name, b.lastID+1, p, now)
	b.log.queue(in)
	made := in.queue()
	return made, b.unlockAndCommit()
}

func (b *Broker) checkNewInlet(kind, name string) error {
	if err := checkName(kind, name, maxEntityName, true); err != nil {
		return err
	}
	if b.inlets[strings.ToLower(name)] != nil {
		return errEntityExists(name)
	}
	if most := b.purse.MaxEntities; most > 0 && int64(len(b.inlets)) >= most {
		return errTooMany("entities of the namespace", most)
	}
	return nil
}

func (b *Broker) addQueue(name string, id uint64, p entity.QueueProperties, now time.Time) *inlet {
	in := &inlet{
		b: b, id: id, name: name, partitioned: p.EnablePartitioning, sessions: p.RequiresSession,
		outlets: map[string]*outlet{}, dates: dates{created: now, updated: now},
	}
	out := &outlet{}
	out.store = newStore(b, id, name, in, &in.gate, queueTerms(p), p.RequiresSession)
	out.store.addDeadLetters()
	in.waiting = out.store
	in.addOutlet(out)
	in.applyQueue(p)
	b.inlets[strings.ToLower(name)] = in
	b.watchIdle(in, out)
	return in
}

func (in *inlet) applyQueue(p entity.QueueProperties) {
	in.queueProperties = p
	in.maxMessage = p.MaxMessageSizeInKilobytes << 10
	in.quota.max = p.MaxSizeInMegabytes << 20
	in.timeToLive = entity.Forever
	in.status = p.Status
	in.remembers(p.RequiresDuplicateDetection, p.DuplicateDetectionHistoryTimeWindow)
	in.outlets[""].apply(queueTerms(p))
}

// remembers turns duplicate detection on, or changes its window.
func (in *inlet) remembers(on bool, window time.Duration) {
	if !on {
		return
	}
	if in.history == nil {
		in.history = newHistory(in.b, window)
	}
	in.history.window = window
}

func (o *outlet) apply(t terms) {
	o.store.terms = t
	o.store.dead.terms = t
}

// UpdateQueue replaces the properties that may change. Like the service it
// detaches the queue's receivers.
func (b *Broker) UpdateQueue(name string, p entity.QueueProperties) (entity.Queue, error) {
	p = p.WithDefaults(b.cfg.MaxMessageBytes)
	if err := p.Check(); err != nil {
		return entity.Queue{}, err
	}
	b.mu.Lock()
	in, err := b.inlet(name, false)
	if err == nil {
		old := in.queueProperties
		err = unchanged("Queue",
			fixed{"RequiresSession", old.RequiresSession, p.RequiresSession},
			fixed{"RequiresDuplicateDetection", old.RequiresDuplicateDetection, p.RequiresDuplicateDetection},
			fixed{"EnablePartitioning", old.EnablePartitioning, p.EnablePartitioning},
		)
	}
	if err != nil {
		b.mu.Unlock()
		return entity.Queue{}, err
	}
	now := time.Now()
	in.applyQueue(p)
	in.dates.updated = now
	in.detach(now)
	b.watchIdle(in, in.outlets[""])
	b.log.queue(in)
	made := in.queue()
	return made, b.unlockAndCommit()
}

type fixed struct {
	name     string
	old, new bool
}

func unchanged(kind string, fields ...fixed) error {
	for _, f := range fields {
		if f.old != f.new {
			return entity.ErrArgument("The value for the %s property of an existing %s cannot be changed.", f.name, kind)
		}
	}
	return nil
}

// detach ends every receiver after a change: with the disabled condition where
// receiving has ended.
func (in *inlet) detach(now time.Time) {
	for _, out := range in.inOrder {
		out.detach(now)
	}
}

func (o *outlet) detach(now time.Time) {
	err := errDetached()
	if !o.store.terms.status.Receives() {
		err = errDisabled(o.store.b.cfg.Namespace, o.store.path)
	}
	o.store.close(err, now)
	o.store.dead.close(errDetached(), now)
}

func (b *Broker) inlet(name string, topic bool) (*inlet, error) {
	in := b.inlets[strings.ToLower(name)]
	if in == nil || in.topic != topic {
		return nil, errNotFound(b.cfg.Namespace, name)
	}
	return in, nil
}

// Queue returns one.
func (b *Broker) Queue(name string) (entity.Queue, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	in, err := b.inlet(name, false)
	if err != nil {
		return entity.Queue{}, err
	}
	return in.queue(), nil
}

func (in *inlet) queue() entity.Queue {
	return entity.Queue{
		Name: in.name, Properties: in.queueProperties,
		CreatedAt: in.dates.created, UpdatedAt: in.dates.updated, AccessedAt: later(in.dates.accessed, in.waiting.accessed),
		Size: in.quota.used, Counts: in.outlets[""].counts(),
	}
}

func (o *outlet) counts() entity.Counts {
	c := o.store.counts
	c.DeadLetter = o.store.dead.counts.Active + o.store.dead.counts.Deferred
	return c
}

// Queues lists all by name.
func (b *Broker) Queues() []entity.Queue {
	b.mu.Lock()
	defer b.mu.Unlock()
	var queues []entity.Queue
	for _, in := range b.sorted(false) {
		queues = append(queues, in.queue())
	}
	return queues
}

func (b *Broker) sorted(topics bool) []*inlet {
	var all []*inlet
	for _, in := range b.inlets {
		if in.topic == topics {
			all = append(all, in)
		}
	}
	slices.SortFunc(all, func(x, y *inlet) int { return strings.Compare(strings.ToLower(x.name), strings.ToLower(y.name)) })
	return all
}

// DeleteQueue detaches its receivers and drops its messages.
func (b *Broker) DeleteQueue(name string) error { return b.deleteInlet(name, false) }

func (b *Broker) deleteInlet(name string, topic bool) error {
	b.mu.Lock()
	in, err := b.inlet(name, topic)
	if err != nil {
		b.mu.Unlock()
		return err
	}
	b.dropInlet(in, time.Now())
	return b.unlockAndCommit()
}

func (b *Broker) dropInlet(in *inlet, now time.Time) {
	delete(b.inlets, strings.ToLower(in.name))
	for _, out := range in.inOrder {
		out.drop(now)
	}
	in.waiting.drop(errNotFound(b.cfg.Namespace, in.name), now)
	if in.history != nil {
		b.unset(&in.history.alarm)
	}
	b.unset(&in.idle.alarm)
	b.log.dropInlet(in) // last, as messages may have expired when their receivers ended
}

func (o *outlet) drop(now time.Time) {
	s := o.store
	err := errNotFound(s.b.cfg.Namespace, s.path)
	s.drop(err, now)
	s.dead.drop(err, now)
	if o.idle.alarm.owner != nil {
		s.b.unset(&o.idle.alarm)
	}
}

// sizeOfAll is the room of a new queue or topic: what was asked for is had in
// each partition.
func sizeOfAll(megabytes int64, partitioned bool) int64 {
	if partitioned {
		return megabytes * partitions
	}
	return megabytes
}
