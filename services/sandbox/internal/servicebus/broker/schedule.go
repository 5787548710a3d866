package broker

import (
	"context"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// postpone keeps a message until its time. The sequence number is good while
// it waits; it gets another when it is enqueued.
func (in *inlet) postpone(m *entity.Message, partition int16, now time.Time) int64 {
	s := in.waiting
	e := &entry{
		content: &content{msg: m, quota: &in.quota},
		seq:     s.numbers.next(partition), partition: partition,
		state: entity.StateScheduled, enqueuedAt: now,
	}
	s.put(e, now)
	return e.seq
}

// due enqueues a message whose time has come.
func (b *Broker) due(e *entry, now time.Time) {
	in := e.store.inlet
	in.arrive(e.msg, e.partition, now)
	e.store.remove(e)
}

// CancelScheduled removes waiting messages: all of them or none.
func (b *Broker) CancelScheduled(ctx context.Context, path string, seqs []int64) error {
	b.mu.Lock()
	in, err := b.sendable(path, time.Now())
	b.mu.Unlock()
	if err != nil {
		return err
	}
	b.pause(ctx, &in.gate, Sending)
	b.mu.Lock()
	for _, seq := range seqs {
		if e := in.waiting.entry(seq); e == nil || e.state != entity.StateScheduled {
			b.mu.Unlock()
			return errMessageNotFound(seq)
		}
	}
	for _, seq := range seqs {
		if e := in.waiting.entry(seq); e != nil { // a number may be given twice
			in.waiting.remove(e)
		}
	}
	return b.unlockAndCommit()
}
