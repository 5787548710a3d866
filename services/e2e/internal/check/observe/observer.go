// Package observe watches a topic from outside: a subscription of its own gets
// a copy of every message that the topic accepted, whoever sent it.
package observe

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/check/expect"
	"changerelay/services/e2e/internal/check/validate"
)

// Attributes of a message that are read here, as CloudEvents names them with the
// AMQP binding's prefix.
const (
	propertySource    = "cloudEvents_source"
	propertyVersion   = "cloudEvents_aggregateversion"
	propertyTerm      = "cloudEvents_term"
	propertyPosition  = "cloudEvents_position"
	propertySequence  = "cloudEvents_sequence"
	propertyOperation = "cloudEvents_operation"
)

const (
	// batch is how many messages are asked for at once.
	batch = 2000
	// idleTimeout is how long a batch waits for its next message.
	idleTimeout = 50 * time.Millisecond
	// retryPause is how long a failed receive waits before it is tried again.
	retryPause = 200 * time.Millisecond
	// settlesAtOnce and settleTime bound settling.
	settlesAtOnce = 512
	settleTime    = 10 * time.Second
)

// Observer gathers the messages of one source that a topic accepts. Its methods
// are safe for concurrent use.
type Observer struct {
	client   *azservicebus.Client
	receiver *azservicebus.Receiver
	sources  []string
	mode     Mode

	mu      sync.Mutex // guards what follows
	names   map[string]string
	numbers map[int64]struct{} // of the messages seen; Settling only
	sends   []validate.Send
	resent  []validate.Send
	terms   map[int64]int
	foreign validate.Findings
	faults  []string
}

// Mode is how an observer receives.
type Mode int

const (
	// Taking receives and deletes, which is cheap. What was on its way when a
	// connection breaks is not seen.
	Taking Mode = iota
	// Settling completes what it has noted, so that nothing is missed however
	// connections and the broker fare.
	Settling
)

// New returns an observer on the subscription, which takes every message for
// itself. Only messages with one of the given CloudEvents sources count.
func New(connection, topic, subscription string, sources []string, mode Mode) (*Observer, error) {
	client, err := azservicebus.NewClientFromConnectionString(connection, nil)
	if err != nil {
		return nil, fmt.Errorf("observe %s: %w", topic, err)
	}
	receives := azservicebus.ReceiveModeReceiveAndDelete
	if mode == Settling {
		receives = azservicebus.ReceiveModePeekLock
	}
	receiver, err := client.NewReceiverForSubscription(topic, subscription, &azservicebus.ReceiverOptions{ReceiveMode: receives})
	if err != nil {
		return nil, fmt.Errorf("observe %s: %w", topic, err)
	}
	return &Observer{
		client: client, receiver: receiver, sources: sources, mode: mode,
		names: make(map[string]string), numbers: make(map[int64]struct{}), terms: make(map[int64]int),
	}, nil
}

// Run gathers messages until ctx ends. A receive that fails is tried again: what
// it lost shows as a fault of the observation.
func (o *Observer) Run(ctx context.Context) error {
	defer o.client.Close(context.WithoutCancel(ctx))
	var settling errgroup.Group
	settling.SetLimit(settlesAtOnce)
	defer func() { _ = settling.Wait() }() // each has noted its own failure
	for ctx.Err() == nil {
		messages, err := o.receiver.ReceiveMessages(ctx, batch, &azservicebus.ReceiveMessagesOptions{TimeAfterFirstMessage: idleTimeout})
		o.add(messages)
		if o.mode == Settling {
			o.settle(ctx, &settling, messages)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		o.fault(err.Error())
		pause := time.NewTimer(retryPause)
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
	}
	return nil
}

func (o *Observer) add(messages []*azservicebus.ReceivedMessage) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range messages {
		send, ok := o.read(m)
		if !ok {
			o.foreign.Add("message %s, of source %v", m.MessageID, m.ApplicationProperties[propertySource])
			continue
		}
		if o.mode == Settling {
			if _, again := o.numbers[send.Number]; again {
				continue
			}
			o.numbers[send.Number] = struct{}{}
		}
		o.terms[send.Term]++
		if send.Resend.ID != "" {
			o.resent = append(o.resent, send)
			continue
		}
		o.sends = append(o.sends, send)
	}
}

// settle completes messages, many at once, while more are received. One that
// fails comes again.
func (o *Observer) settle(ctx context.Context, group *errgroup.Group, messages []*azservicebus.ReceivedMessage) {
	for _, m := range messages {
		group.Go(func() error {
			attempt, cancel := context.WithTimeout(ctx, settleTime)
			defer cancel()
			if err := o.receiver.CompleteMessage(attempt, m, nil); err != nil && ctx.Err() == nil {
				o.fault(err.Error())
			}
			return nil
		})
	}
}

// read takes what a message is, in little room. The fingerprint of its sequence stands
// for the version of an event that has none.
func (o *Observer) read(m *azservicebus.ReceivedMessage) (validate.Send, bool) {
	source, _ := m.ApplicationProperties[propertySource].(string)
	version, known := m.ApplicationProperties[propertyVersion].(int64)
	term, _ := m.ApplicationProperties[propertyTerm].(int64)
	if sequence, ordered := m.ApplicationProperties[propertySequence].(string); !known && ordered {
		version, known = validate.Fingerprint(sequence), true
	}
	if !slices.Contains(o.sources, source) || !known || m.SessionID == nil || m.EnqueuedTime == nil || m.SequenceNumber == nil {
		return validate.Send{}, false
	}
	seen := expect.Seen(m)
	lives := time.Duration(0)
	if m.TimeToLive != nil {
		lives = *m.TimeToLive
	}
	position, _ := m.ApplicationProperties[propertyPosition].(string)
	return validate.Send{
		Event:      validate.Event{Aggregate: o.intern(*m.SessionID), Version: version},
		MessageID:  m.MessageID,
		Term:       term,
		Number:     *m.SequenceNumber,
		Enqueued:   *m.EnqueuedTime,
		Position:   validate.ClusterTime(position),
		Place:      uint64(validate.Fingerprint(position)),
		Copied:     m.ApplicationProperties[propertyOperation] == snapshot,
		TimeToLive: lives,
		Resend:     expect.ResendOf(m),
		Print:      seen.Print(),
	}, true
}

// snapshot is the operation of a message of a copy.
const snapshot = "snapshot"

// intern keeps one copy of each aggregate's name.
func (o *Observer) intern(name string) string {
	if kept, found := o.names[name]; found {
		return kept
	}
	o.names[name] = name
	return name
}

func (o *Observer) fault(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.faults = append(o.faults, text)
}

// Sends returns what the topic has accepted so far, in the broker's order, without what
// an operator had sent again.
func (o *Observer) Sends() []validate.Send { return o.copied(&o.sends) }

// Resent returns what the topic has accepted so far of what an operator had sent again,
// in the broker's order.
func (o *Observer) Resent() []validate.Send { return o.copied(&o.resent) }

func (o *Observer) copied(from *[]validate.Send) []validate.Send {
	o.mu.Lock()
	sends := slices.Clone(*from)
	o.mu.Unlock()
	validate.InOrderOfAcceptance(sends)
	return sends
}

// Count is how many messages the topic has accepted so far, repeats included, but for
// what an operator had sent again.
func (o *Observer) Count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.sends)
}

// CountResent is how many messages the topic has accepted so far of what an operator had
// sent again.
func (o *Observer) CountResent() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.resent)
}

// CountOfTerm is how many messages of a term the topic has accepted so far.
func (o *Observer) CountOfTerm(term int64) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.terms[term]
}

// Foreign are the messages of another source, or of no event, that came by.
func (o *Observer) Foreign() validate.Findings {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.foreign
}

// Faults says what went wrong with the observation itself. With any, a message
// missing here may still have been accepted.
func (o *Observer) Faults() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.faults...)
}
