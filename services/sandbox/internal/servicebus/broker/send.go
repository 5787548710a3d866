package broker

import (
	"context"
	"fmt"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// maxIDLength bounds message ids, session ids and partition keys, in characters.
const maxIDLength = 128

// Send accepts all of msgs or none. path names a queue or topic.
func (b *Broker) Send(ctx context.Context, path string, msgs []*entity.Message) error {
	_, err := b.send(ctx, path, msgs, false)
	return err
}

// Schedule accepts all of msgs or none, to be enqueued at their
// ScheduledEnqueueTime, and returns their sequence numbers while they wait.
func (b *Broker) Schedule(ctx context.Context, path string, msgs []*entity.Message) ([]int64, error) {
	return b.send(ctx, path, msgs, true)
}

// MaxMessageBytes is the limit of the queue or topic at path, for the
// max-message-size of a sender's link. It also tells whether path can be sent to.
func (b *Broker) MaxMessageBytes(path string) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	in, err := b.sendable(path, now)
	if err == nil {
		err = b.purse.admit(b.cfg.Namespace, now)
	}
	if err != nil {
		return 0, err
	}
	return in.largest(), nil
}

func (b *Broker) send(ctx context.Context, path string, msgs []*entity.Message, schedule bool) ([]int64, error) {
	b.mu.Lock()
	in, err := b.sendable(path, time.Now())
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := b.sending(ctx, in, msgs); err != nil {
		return nil, err
	}
	b.pause(ctx, &in.gate, Sending)

	b.mu.Lock()
	now := time.Now()
	in, err = b.sendable(path, now) // it may have changed meanwhile
	if err == nil {
		err = in.admit(msgs)
	}
	if err != nil {
		b.mu.Unlock()
		return nil, err
	}
	seqs := in.accept(msgs, schedule, now)
	if err := b.unlockAndCommit(); err != nil {
		return nil, err
	}
	return seqs, nil
}

// sendable finds the queue or topic at path for someone who wants to send.
func (b *Broker) sendable(path string, now time.Time) (*inlet, error) {
	a := parsePath(path)
	in := b.inlets[a.entity]
	if in == nil || a.deadLetter || a.subscription != "" {
		return nil, errNotFound(b.cfg.Namespace, path)
	}
	if err := in.gate.busy(now); err != nil {
		return nil, err
	}
	if !in.status.Sends() {
		return nil, errDisabled(b.cfg.Namespace, in.name)
	}
	return in, nil
}

// admit says why a batch may not enter. It changes nothing, which is what
// makes a batch atomic.
func (in *inlet) admit(msgs []*entity.Message) error {
	var size int64
	for _, m := range msgs {
		if err := in.admitOne(m); err != nil {
			return err
		}
		if in.partitioned && in.partitionKey(m) != in.partitionKey(msgs[0]) {
			return errMixedBatch(in.history != nil)
		}
		size += int64(len(m.Payload))
	}
	if in.quota.used+size > in.quota.max {
		return errQuota(in.kind(), in.name, in.quota.used, in.quota.max)
	}
	return nil
}

func (in *inlet) admitOne(m *entity.Message) error {
	if size := int64(len(m.Payload)); size > in.largest() {
		return errMessageSize(size, in.largest())
	}
	session := ""
	if m.SessionID != nil {
		session = *m.SessionID
	}
	for _, id := range []struct{ name, value string }{
		{"MessageId", m.MessageID}, {"SessionId", session}, {"PartitionKey", m.PartitionKey},
	} {
		if tooLong(id.value) {
			return &entity.Error{Condition: entity.ConditionInvalidField, Description: fmt.Sprintf("The length of %s exceeds the limit of %d characters.", id.name, maxIDLength)}
		}
	}
	if m.SessionID != nil && m.PartitionKey != "" && m.PartitionKey != session {
		return errKeysDiffer(m.PartitionKey, session)
	}
	if in.sessions && m.SessionID == nil {
		return errSessionIDMissing()
	}
	return nil
}

func tooLong(id string) bool {
	return len(id) > maxIDLength && len([]rune(id)) > maxIDLength
}

// accept takes in messages that were admitted. A repeat of a known id is
// dropped, and its sender told nothing of it.
func (in *inlet) accept(msgs []*entity.Message, schedule bool, now time.Time) []int64 {
	var seqs []int64
	key, partition := "", int16(0)
	for i, m := range msgs {
		if k := in.partitionKey(m); i == 0 || k != key {
			key, partition = k, in.partition(k)
		}
		seq := int64(0)
		switch {
		case in.history != nil && in.history.seen(in, m, now):
			in.duplicates++
		case schedule || m.ScheduledEnqueueTime.After(now):
			seq = in.postpone(m, partition, now)
		default:
			in.arrive(m, partition, now)
		}
		if schedule {
			seqs = append(seqs, seq)
		}
		in.b.log.divide(batchSize)
	}
	return seqs
}
