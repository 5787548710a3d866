package broker

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"changerelay/services/sandbox/internal/servicebus/heap"
)

// ringer is something with a deadline. ring is called with the broker's lock
// held, once the deadline has passed and the alarm is off.
type ringer interface {
	ring(b *Broker, now time.Time)
}

// alarm is a deadline of its owner in the broker's heap of them.
type alarm struct {
	at    time.Time
	index int // in the heap; -1: off
	owner ringer
}

func newAlarm(owner ringer) alarm { return alarm{index: -1, owner: owner} }

func newAlarms() heap.Heap[*alarm] {
	return heap.New(
		func(a, b *alarm) bool { return a.at.Before(b.at) },
		func(a *alarm, index int) { a.index = index },
	)
}

// set turns the alarm on or moves it.
func (b *Broker) set(a *alarm, at time.Time) {
	a.at = at
	if a.index >= 0 {
		b.alarms.Fix(a.index)
	} else {
		b.alarms.Push(a)
	}
	if at.Before(b.armed) {
		b.armed = at
		select {
		case b.kick <- struct{}{}:
		default:
		}
	}
}

func (b *Broker) unset(a *alarm) {
	if a.index >= 0 {
		b.alarms.Remove(a.index)
	}
}

// Alarms rung in one go, and the longest sleep between two looks.
const (
	ringsAtOnce  = 1000
	longestSleep = time.Hour
)

// Run keeps the time: locks that expire, messages that become due or too old.
// It also compacts the journal. It returns nil once ctx has ended, or the
// journal's error. It is called once.
func (b *Broker) Run(ctx context.Context) error {
	defer close(b.stopped)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return b.keepTime(ctx) })
	group.Go(func() error { return b.compactWhenGrown(ctx) })
	return group.Wait()
}

func (b *Broker) keepTime(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-b.kick:
		}
		wait, err := b.ringDue()
		if err != nil {
			return err
		}
		timer.Reset(wait)
	}
}

// ringDue rings what is due, up to a record of it, and returns the time until
// the next alarm.
func (b *Broker) ringDue() (time.Duration, error) {
	b.mu.Lock()
	now := time.Now()
	for range ringsAtOnce {
		if b.alarms.Len() == 0 || b.alarms.First().at.After(now) {
			break
		}
		b.alarms.Pop().owner.ring(b, now)
		if len(b.log.pending.Buf) >= recordSize {
			break
		}
	}
	b.armed = now.Add(longestSleep)
	if b.alarms.Len() > 0 && b.alarms.First().at.Before(b.armed) {
		b.armed = b.alarms.First().at
	}
	wait := b.armed.Sub(now)
	return wait, b.unlockAndCommit()
}
