package relaytest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/relay"
)

// ErrInjected is a fault's usual error.
var ErrInjected = errors.New("injected fault")

// Outcome says what becomes of one send. The zero Outcome accepts it all.
type Outcome struct {
	// Delay comes before anything else, and ends with the caller's context.
	Delay time.Duration
	// Hang blocks until the caller's context ends.
	Hang bool
	// Accept is how many of the messages are accepted before Err.
	Accept int
	// Lost accepts the Accept messages without saying so.
	Lost bool
	// Err is what the caller gets; nil accepts all.
	Err error
}

// Topic is a relay.Sender that remembers what it accepted.
type Topic struct {
	// Decide is asked before each send; nil accepts everything.
	Decide func(messages []contract.Message) Outcome
	// Link carries the messages to it; nil takes no time.
	Link *Link

	mu       sync.Mutex
	accepted []contract.Message
	ids      map[string]bool
	sends    int
	sending  map[string]int
	running  int
	overlaps int
	most     int
}

// Send implements relay.Sender.
func (t *Topic) Send(ctx context.Context, messages []contract.Message) (int, error) {
	messages = slices.Clone(messages)
	outcome := t.begin(messages)
	defer t.end(messages)
	if t.Link != nil {
		if err := t.Link.carry(ctx, size(messages)); err != nil {
			return 0, err
		}
	}
	if outcome.Hang {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	timer := time.NewTimer(outcome.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if outcome.Err == nil {
		t.accept(messages)
		return len(messages), nil
	}
	n := min(outcome.Accept, len(messages))
	t.accept(messages[:n])
	if outcome.Lost {
		n = 0
	}
	return n, outcome.Err
}

// Accepted returns the numbers of the changes accepted for an aggregate, in the
// order in which each was accepted first.
func (t *Topic) Accepted(aggregateID string) []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	var numbers []int
	seen := map[string]bool{}
	for _, m := range t.accepted {
		if m.SessionID == aggregateID && !seen[m.ID] {
			seen[m.ID] = true
			numbers = append(numbers, Number(contract.Position(m.ID)))
		}
	}
	return numbers
}

// Has reports whether the nth change was accepted.
func (t *Topic) Has(n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ids[string(Position(n))]
}

// Messages returns everything that was accepted, in order, repeats included.
func (t *Topic) Messages() []contract.Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.accepted)
}

// Sends returns how many sends were begun.
func (t *Topic) Sends() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sends
}

// Most returns how many sends there were at one time, at most.
func (t *Topic) Most() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.most
}

// Overlaps returns how often a send began while another of its aggregate ran.
func (t *Topic) Overlaps() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.overlaps
}

func (t *Topic) begin(messages []contract.Message) Outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sending == nil {
		t.sending = map[string]int{}
	}
	t.sends++
	for _, session := range sessions(messages) {
		if t.sending[session] > 0 {
			t.overlaps++
		}
		t.sending[session]++
	}
	t.running++
	t.most = max(t.most, t.running)
	if t.Decide == nil {
		return Outcome{}
	}
	return t.Decide(messages)
}

func (t *Topic) end(messages []contract.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	for _, session := range sessions(messages) {
		if t.sending[session]--; t.sending[session] == 0 {
			delete(t.sending, session)
		}
	}
}

// envelope is what a message carries beside its body, in bytes: its properties.
const envelope = 1 << 10

// size is that of the messages together.
func size(messages []contract.Message) int {
	size := len(messages) * envelope
	for _, m := range messages {
		size += len(m.Body)
	}
	return size
}

// sessions are the sessions of the messages of one send.
func sessions(messages []contract.Message) []string {
	var all []string
	for _, m := range messages {
		if !slices.Contains(all, m.SessionID) {
			all = append(all, m.SessionID)
		}
	}
	return all
}

func (t *Topic) accept(messages []contract.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ids == nil {
		t.ids = map[string]bool{}
	}
	for _, m := range messages {
		t.ids[m.ID] = true
	}
	t.accepted = append(t.accepted, messages...)
}

// Parks is a relay.Parker that remembers.
type Parks struct {
	// Fault is asked before each call; nil means none.
	Fault func() error
	// Takes is how long it takes to park a change.
	Takes time.Duration
	// Limit is how many changes may be parked; 0 is no bound.
	Limit int

	mu   sync.Mutex
	kept []relay.Parked
}

// Park implements relay.Parker.
func (p *Parks) Park(ctx context.Context, parked relay.Parked) error {
	if err := take(ctx, p.Takes); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Fault != nil {
		if err := p.Fault(); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(p.kept, isAt(parked.Change.Position)) {
		p.kept = append(p.kept, parked)
	}
	return nil
}

// take takes so long, or until ctx ends.
func take(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Waits implements relay.Parker.
func (p *Parks) Waits(_ context.Context, change relay.Change) (bool, error) {
	return slices.ContainsFunc(p.Kept(), isAt(change.Position)), nil
}

// isAt tells whether what was parked is at a position.
func isAt(position contract.Position) func(relay.Parked) bool {
	return func(k relay.Parked) bool { return k.Change.Position == position }
}

// Full implements relay.Parker.
func (p *Parks) Full(context.Context) (bool, error) {
	return p.Limit > 0 && len(p.Kept()) >= p.Limit, nil
}

// Kept returns what was parked.
func (p *Parks) Kept() []relay.Parked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.kept)
}

// Has reports whether the nth change was parked.
func (p *Parks) Has(n int) bool {
	return slices.ContainsFunc(p.Kept(), isAt(Position(n)))
}

// Checkpoint is a relay.Checkpointer that remembers every save.
type Checkpoint struct {
	// Fault is asked before each call with the change's number; nil means none.
	Fault func(n int) error
	// Takes is how long a save takes.
	Takes time.Duration

	mu    sync.Mutex
	saves []int
}

// Move implements relay.Checkpointer.
func (c *Checkpoint) Move(ctx context.Context, to checkpoint.Place) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n := Number(to.Position)
	if string(to.Token) != string(Token(n)) {
		return errors.New("token and position do not belong together")
	}
	if c.Fault != nil {
		if err := c.Fault(n); err != nil {
			return err
		}
	}
	if err := take(ctx, c.Takes); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.saves = append(c.saves, n)
	return nil
}

// Saves returns the numbers of the changes that were saved, in order.
func (c *Checkpoint) Saves() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.saves)
}

// Last returns the last save, 0 before the first.
func (c *Checkpoint) Last() int {
	saves := c.Saves()
	if len(saves) == 0 {
		return 0
	}
	return saves[len(saves)-1]
}
