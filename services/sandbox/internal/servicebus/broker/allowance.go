package broker

import (
	"context"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// Allowance bounds what a namespace does in a second and how large things may be. What is 0 is not bounded.
type Allowance struct {
	// CreditsPerSecond are given out anew each second. An operation is let in while there are any left, and is refused with
	// server-busy until the next second otherwise. What a batch costs beyond what is left is taken from the seconds to come.
	CreditsPerSecond int64
	Costs            Costs
	// MessagesPerSecond and BytesPerSecond are carried each way. What is more waits, but is refused where it would wait for
	// longer than QueueTime.
	MessagesPerSecond int64
	BytesPerSecond    int64
	QueueTime         time.Duration
	// BusyWait is the wait that a refused client is told.
	BusyWait time.Duration

	// MaxMessageBytes bounds the messages of all entities, beside their own limits; the others a batch.
	MaxMessageBytes  int64
	MaxBatchBytes    int64
	MaxBatchMessages int64
	// MaxEntities bounds queues and topics together, MaxSubscriptions those of a topic. Those that are there stay.
	MaxEntities      int64
	MaxSubscriptions int64
}

// Costs are the credits for each message sent, received, peeked or settled, for each request to the management API, and
// for each rule that a message sent to a topic is held against.
type Costs struct{ Send, Receive, Peek, Settle, Management, Filter int64 }

// purse has the credits of the present second, and the two ways that messages go. It is guarded by the broker's lock.
type purse struct {
	Allowance
	credits int64
	second  time.Time // when the present second began
	in, out way
	// refused counts what was turned away.
	refused int64
}

// way is what one direction has still to carry.
type way struct{ free time.Time }

// Allow changes what the namespace may do.
func (b *Broker) Allow(a Allowance) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.purse = purse{Allowance: a, credits: a.CreditsPerSecond, second: time.Now()}
}

// fill gives out the credits of the seconds that have begun, and pays what is owed.
func (p *purse) fill(now time.Time) {
	if passed := now.Sub(p.second) / time.Second; passed > 0 {
		p.second = p.second.Add(passed * time.Second)
		p.credits = min(p.credits+int64(passed)*p.CreditsPerSecond, p.CreditsPerSecond)
	}
}

// broke tells that there are no credits left in this second.
func (p *purse) broke(now time.Time) bool {
	if p.CreditsPerSecond == 0 {
		return false
	}
	p.fill(now)
	return p.credits <= 0
}

// admit refuses an operation when there are no credits left.
func (p *purse) admit(namespace string, now time.Time) error {
	if !p.broke(now) {
		return nil
	}
	p.refused++
	return errNamespaceBusy(namespace, p.BusyWait)
}

// pay takes the credits of an operation that was admitted.
func (p *purse) pay(credits int64) {
	if p.CreditsPerSecond > 0 {
		p.credits -= credits
	}
}

// left bounds what may be taken now by the credits that are left.
func (p *purse) left(limit int) int {
	if p.CreditsPerSecond == 0 || p.Costs.Receive == 0 {
		return limit
	}
	return min(limit, max(1, int(p.credits/p.Costs.Receive)))
}

// wait is the time that messages wait until a way has carried what comes before them.
func (p *purse) wait(w *way, now time.Time) time.Duration {
	return max(0, w.free.Sub(now))
}

// carry puts messages on a way.
func (p *purse) carry(w *way, messages int, bytes int64, now time.Time) {
	if w.free.Before(now) {
		w.free = now
	}
	var takes time.Duration
	if p.MessagesPerSecond > 0 {
		takes = time.Duration(messages) * time.Second / time.Duration(p.MessagesPerSecond)
	}
	if p.BytesPerSecond > 0 {
		takes = max(takes, time.Duration(float64(bytes)/float64(p.BytesPerSecond)*float64(time.Second)))
	}
	w.free = w.free.Add(takes)
}

// largest is how many bytes a message may have.
func (in *inlet) largest() int64 {
	if most := in.b.purse.MaxMessageBytes; most > 0 {
		return min(in.maxMessage, most)
	}
	return in.maxMessage
}

// batch says why messages are too many or too large.
func (p *purse) batch(msgs []*entity.Message, size int64) error {
	if p.MaxBatchMessages > 0 && int64(len(msgs)) > p.MaxBatchMessages {
		return &entity.Error{Condition: entity.ConditionResourceLimitExceeded, Description: "The number of messages in the batch exceeds the limit."}
	}
	if p.MaxBatchBytes > 0 && len(msgs) > 1 && size > p.MaxBatchBytes {
		return errMessageSize(size, p.MaxBatchBytes)
	}
	return nil
}

// Manage lets a request to the management API in, or refuses it.
func (b *Broker) Manage() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.purse.admit(b.cfg.Namespace, time.Now()); err != nil {
		return err
	}
	b.purse.pay(b.purse.Costs.Management)
	return nil
}

// queueUp waits until a way of the namespace is free, or refuses what would wait for too long.
func (b *Broker) queueUp(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	case <-b.stopped:
	}
	return nil
}

// sending lets a batch of messages into the namespace. It may wait, without the broker's lock.
func (b *Broker) sending(ctx context.Context, in *inlet, msgs []*entity.Message) error {
	var size int64
	for _, m := range msgs {
		size += int64(len(m.Payload))
	}
	b.mu.Lock()
	now, p := time.Now(), &b.purse
	err := p.admit(b.cfg.Namespace, now)
	if err == nil {
		err = p.batch(msgs, size)
	}
	wait := p.wait(&p.in, now)
	if err == nil && wait > 0 && wait > p.QueueTime {
		p.refused++
		err = errEntityBusy(in.name, p.BusyWait)
	}
	if err != nil {
		b.mu.Unlock()
		return err
	}
	p.pay(int64(len(msgs)) * (p.Costs.Send + p.Costs.Filter*in.evaluations()))
	p.carry(&p.in, len(msgs), size, now)
	b.mu.Unlock()
	return b.queueUp(ctx, wait)
}

// evaluations is how many rules a message is held against.
func (in *inlet) evaluations() (n int64) {
	for _, out := range in.inOrder {
		n += int64(len(out.rules))
	}
	return n
}

// delivering bounds what a receiver takes now, 0 with the time until it may take something. It needs the broker's lock.
func (b *Broker) delivering(limit int, now time.Time) (most int, wait time.Duration) {
	p := &b.purse
	if p.broke(now) {
		return 0, p.second.Add(time.Second).Sub(now)
	}
	if wait := p.wait(&p.out, now); wait > 0 {
		return 0, wait
	}
	if p.MessagesPerSecond > 0 {
		limit = min(limit, max(1, int(p.MessagesPerSecond/waysPerSecond)))
	}
	return p.left(limit), 0
}

// waysPerSecond is in how many parts the messages of a second are delivered.
const waysPerSecond = 100

// delivered takes what was delivered into account. It needs the broker's lock.
func (b *Broker) delivered(deliveries []*entity.Delivery, now time.Time) {
	p := &b.purse
	if len(deliveries) == 0 || p.CreditsPerSecond == 0 && p.MessagesPerSecond == 0 && p.BytesPerSecond == 0 {
		return
	}
	var size int64
	for _, d := range deliveries {
		size += int64(len(d.Payload))
	}
	p.pay(int64(len(deliveries)) * p.Costs.Receive)
	p.carry(&p.out, len(deliveries), size, now)
}
