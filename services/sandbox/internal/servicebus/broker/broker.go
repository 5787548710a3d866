package broker

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"changerelay/services/sandbox/internal/servicebus/heap"
)

// Config of a Broker. The zero value is usable: a namespace in memory.
type Config struct {
	// Namespace is the host name that error texts carry.
	Namespace string
	// MaxMessageBytes bounds one message where the entity says nothing else.
	// Default 256 KiB.
	MaxMessageBytes int64
	Log             zerolog.Logger
}

const (
	defaultNamespace       = "sandbox.servicebus.localhost"
	defaultMaxMessageBytes = 256 << 10
)

// Broker is a Service Bus namespace. Its methods are safe for concurrent use.
type Broker struct {
	cfg     Config
	since   time.Time
	kick    chan struct{} // an alarm earlier than armed was set
	grown   chan struct{} // the journal is worth compacting
	stopped chan struct{} // closed when Run has returned

	mu     sync.Mutex // guards all below, and every store, session and entry
	inlets map[string]*inlet
	stores map[uint64]*store // by id
	lastID uint64            // of a store
	alarms heap.Heap[*alarm]
	armed  time.Time // when Run looks again
	log    recorder
	purse  purse

	restored map[uint64]*content // by number, until Keep
}

// New returns an empty namespace.
func New(cfg Config) (*Broker, error) {
	if cfg.Namespace == "" {
		cfg.Namespace = defaultNamespace
	}
	if cfg.MaxMessageBytes == 0 {
		cfg.MaxMessageBytes = defaultMaxMessageBytes
	}
	return &Broker{
		cfg:     cfg,
		since:   time.Now(),
		kick:    make(chan struct{}, 1),
		grown:   make(chan struct{}, 1),
		stopped: make(chan struct{}),

		inlets:   map[string]*inlet{},
		stores:   map[uint64]*store{},
		alarms:   newAlarms(),
		log:      recorder{floor: compactAbove, limit: compactAbove},
		restored: map[uint64]*content{},
	}, nil
}

// Namespace is the namespace's name and when this process began to serve it.
func (b *Broker) Namespace() (name string, since time.Time) { return b.cfg.Namespace, b.since }

// unlockAndCommit releases the lock and waits until everything that was seen
// under it is durable, so that nothing is acknowledged or shown that a crash
// could take back.
func (b *Broker) unlockAndCommit() error {
	journal := b.log.journal
	if journal == nil {
		b.mu.Unlock()
		return nil
	}
	b.log.flush()
	if journal.Logged() > b.log.limit {
		select {
		case b.grown <- struct{}{}:
		default:
		}
	}
	position := b.log.position
	b.mu.Unlock()
	return journal.Commit(position)
}

// address is a path taken apart, in lower case.
type address struct {
	entity       string
	subscription string // empty: a queue
	deadLetter   bool
}

const (
	subscriptionsPart = "/subscriptions/"
	deadLetterPart    = "/$deadletterqueue"
)

func parsePath(path string) address {
	var a address
	a.entity = strings.Trim(strings.ToLower(path), "/")
	a.entity, a.deadLetter = strings.CutSuffix(a.entity, deadLetterPart)
	if i := strings.Index(a.entity, subscriptionsPart); i > 0 {
		a.subscription = a.entity[i+len(subscriptionsPart):]
		a.entity = a.entity[:i]
	}
	return a
}

// Exists tells why there is nothing at a path: a queue, a topic, a
// subscription, or the dead-letter queue of one.
func (b *Broker) Exists(path string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := parsePath(path); a.subscription == "" && !a.deadLetter && b.inlets[a.entity] != nil {
		return nil
	}
	_, err := b.storeAt(path)
	return err
}

// outlet finds a queue's or subscription's side that messages leave by.
func (b *Broker) outlet(path string) (*outlet, *store, error) {
	a := parsePath(path)
	in := b.inlets[a.entity]
	if in == nil || in.outlets[a.subscription] == nil {
		return nil, nil, errNotFound(b.cfg.Namespace, path)
	}
	out := in.outlets[a.subscription]
	if a.deadLetter {
		return out, out.store.dead, nil
	}
	return out, out.store, nil
}

// storeAt finds the messages of a queue, a subscription or a dead-letter queue.
func (b *Broker) storeAt(path string) (*store, error) {
	_, s, err := b.outlet(path)
	return s, err
}

// receivable is storeAt for someone who wants to receive.
func (b *Broker) receivable(path string, now time.Time) (*store, error) {
	s, err := b.storeAt(path)
	if err != nil {
		return nil, err
	}
	if err := s.gate.busy(now); err != nil {
		return nil, err
	}
	if !s.terms.status.Receives() && !s.isDeadLetter() {
		return nil, errDisabled(b.cfg.Namespace, s.path)
	}
	return s, nil
}

// gate slows an entity down on demand.
type gate struct {
	delays [operations]atomic.Int64 // nanoseconds

	// Guarded by the broker's lock.
	throttledUntil time.Time
	redeliver      int // completions that are lost
}

// Operation is what a gate can delay.
type Operation int

// Operations of clients.
const (
	Sending Operation = iota
	Receiving
	Settling

	operations
)

func (g *gate) busy(now time.Time) error {
	if now.Before(g.throttledUntil) {
		return errServerBusy(g.throttledUntil.Sub(now))
	}
	return nil
}

// pause waits out the gate's delay, or until ctx or the broker ends.
func (b *Broker) pause(ctx context.Context, g *gate, o Operation) {
	d := time.Duration(g.delays[o].Load())
	if d == 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-b.stopped:
	}
}
