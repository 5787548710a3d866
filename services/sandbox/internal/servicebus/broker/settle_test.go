package broker

import (
	"math"
	"testing"
	"time"

	"github.com/google/uuid"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

func TestSettle_Outcomes(t *testing.T) {
	for name, test := range map[string]struct {
		outcome   entity.Outcome
		again     string // what is received afterwards
		count     uint32 // its delivery count
		dead      int64
		deferred  int64
		remaining int64
	}{
		"complete removes":                      {entity.Complete{}, "m1", 0, 0, 0, 1},
		"abandon puts back in place and counts": {entity.Abandon{}, "m0 m1", 1, 0, 0, 2},
		"release puts back in place":            {entity.Release{}, "m0 m1", 0, 0, 0, 2},
		"defer sets aside":                      {entity.Defer{}, "m1", 0, 0, 1, 1},
		"dead-letter moves":                     {entity.DeadLetter{Reason: "r"}, "m1", 0, 1, 0, 1},
	} {
		for _, path := range []string{"by the receiver", "by token"} {
			t.Run(name+" "+path, func(t *testing.T) {
				inBubble(t, func(t *testing.T, b *Broker) {
					makeQueue(t, b, "q", entity.QueueProperties{})
					send(t, b, "q", msg("m0", ""), msg("m1", ""))
					r := openPlain(t, b, "q")
					d := receive(t, r, 1)[0]
					settle := func() error { return r.Settle(d.LockToken, test.outcome) }
					if path == "by token" {
						settle = func() error { return b.SettleByToken("q", d.LockToken, test.outcome) }
					}
					must(t, settle())
					wantCondition(t, settle(), entity.ConditionMessageLockLost) // once only
					ds := receive(t, r, 10)
					wantIDs(t, ds, test.again)
					if got := ds[0].DeliveryCount; got != test.count {
						t.Errorf("delivery count: got %d, want %d", got, test.count)
					}
					q, err := b.Queue("q")
					must(t, err)
					want := entity.Counts{Active: test.remaining, DeadLetter: test.dead, Deferred: test.deferred}
					if q.Counts != want {
						t.Errorf("counts: got %+v, want %+v", q.Counts, want)
					}
				})
			})
		}
	}
}

func TestSettle_AnotherReceiversMessageCannotBeSettled(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeQueue(t, b, "q", entity.QueueProperties{})
		send(t, b, "q", msg("m0", ""))
		d := receive(t, openPlain(t, b, "q"), 1)[0]
		wantCondition(t, openPlain(t, b, "q").Settle(d.LockToken, entity.Complete{}), entity.ConditionMessageLockLost)
		wantCondition(t, openPlain(t, b, "q").Settle(uuid.New(), entity.Complete{}), entity.ConditionMessageLockLost)
	})
}

func TestSettle_AMessageLockExpires(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeQueue(t, b, "q", entity.QueueProperties{})
		send(t, b, "q", msg("m0", ""), msg("m1", ""))
		r := openPlain(t, b, "q")
		first := receive(t, r, 1)[0]
		if want := time.Now().Add(lockDuration); !first.LockedUntil.Equal(want) {
			t.Errorf("locked until: got %v, want %v", first.LockedUntil, want)
		}
		time.Sleep(lockDuration)
		wantCondition(t, r.Settle(first.LockToken, entity.Complete{}), entity.ConditionMessageLockLost)
		_, err := b.RenewMessageLocks("q", []uuid.UUID{first.LockToken})
		wantCondition(t, err, entity.ConditionMessageLockLost)
		ds := receive(t, r, 10)
		wantIDs(t, ds, "m0 m1")
		if ds[0].DeliveryCount != 1 || ds[0].LockToken == first.LockToken {
			t.Errorf("redelivery: got count %d with the same token %t, want 1 with another", ds[0].DeliveryCount, ds[0].LockToken == first.LockToken)
		}
	})
}

// An overdue lock is over whether or not the clock has rung: without Run
// nothing rings.
func TestSettle_AnOverdueLockIsOverBeforeItsAlarm(t *testing.T) {
	b, err := New(Config{})
	must(t, err)
	makeQueue(t, b, "q", entity.QueueProperties{})
	_, err = b.CreateQueue("s", entity.QueueProperties{RequiresSession: true, LockDuration: time.Nanosecond})
	must(t, err)
	_, err = b.UpdateQueue("q", entity.QueueProperties{LockDuration: time.Nanosecond})
	must(t, err)
	send(t, b, "q", msg("m0", ""))
	send(t, b, "s", msg("m0", "a"))

	plain := openPlain(t, b, "q")
	wantCondition(t, plain.Settle(receive(t, plain, 1)[0].LockToken, entity.Complete{}), entity.ConditionMessageLockLost)
	_, err = b.RenewMessageLocks("q", []uuid.UUID{receive(t, plain, 1)[0].LockToken})
	wantCondition(t, err, entity.ConditionMessageLockLost)

	held := openSession(t, b, "s", "a")
	_, err = held.Receive(t.Context(), 1)
	wantCondition(t, err, entity.ConditionSessionLockLost)
	openSession(t, b, "s", "a")
	_, err = b.RenewSessionLock("s", "a")
	wantCondition(t, err, entity.ConditionSessionLockLost)
	openSession(t, b, "s", "a")
	openSession(t, b, "s", "a") // takes it over
	checkBooks(t, b)
}

func TestSettle_RenewalExtendsMessageLocks(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeQueue(t, b, "q", entity.QueueProperties{})
		send(t, b, "q", msg("m0", ""), msg("m1", ""))
		r := openPlain(t, b, "q")
		ds := receive(t, r, 10)
		tokens := []uuid.UUID{ds[0].LockToken, ds[1].LockToken}
		for range 3 {
			time.Sleep(lockDuration - time.Second)
			until, err := b.RenewMessageLocks("q", tokens)
			must(t, err)
			if want := time.Now().Add(lockDuration); !until[0].Equal(want) || !until[1].Equal(want) {
				t.Errorf("locked until: got %v, want %v", until, want)
			}
		}
		_, err := b.RenewMessageLocks("q", append(tokens, uuid.New()))
		wantCondition(t, err, entity.ConditionMessageLockLost)
		settleAll(t, r, entity.Complete{}, ds...)
	})
}

func TestSettle_LocksOutliveAReceiverWithoutSession(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeQueue(t, b, "q", entity.QueueProperties{})
		send(t, b, "q", msg("m0", ""), msg("m1", ""))
		r := openPlain(t, b, "q")
		ds := receive(t, r, 10)
		r.Close()
		other := openPlain(t, b, "q")
		wantNothing(t, other)
		must(t, b.SettleByToken("q", ds[0].LockToken, entity.Complete{}))
		time.Sleep(lockDuration)
		ds = receive(t, other, 10)
		wantIDs(t, ds, "m1")
		if got := ds[0].DeliveryCount; got != 1 {
			t.Errorf("delivery count: got %d, want 1", got)
		}
	})
}

func TestSettle_TooManyDeliveriesDeadLetter(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeQueue(t, b, "q", entity.QueueProperties{MaxDeliveryCount: 3})
		send(t, b, "q", msg("m0", ""))
		r := openPlain(t, b, "q")
		for i := range 3 {
			d := receive(t, r, 1)[0]
			if got := d.DeliveryCount; got != uint32(i) {
				t.Errorf("delivery count: got %d, want %d", got, i)
			}
			must(t, r.Settle(d.LockToken, entity.Abandon{Properties: map[string]any{"try": i}}))
		}
		wantNothing(t, r)
		dead := receive(t, openPlain(t, b, "q/$DeadLetterQueue"), 1)[0]
		if dead.DeadLetterReason != "MaxDeliveryCountExceeded" || dead.DeadLetterDescription != "Message could not be consumed after 3 delivery attempts." || dead.DeadLetterSource != "q" {
			t.Errorf("dead letter: got %q, %q, %q", dead.DeadLetterReason, dead.DeadLetterDescription, dead.DeadLetterSource)
		}
		if got := dead.Modified["try"]; got != 2 {
			t.Errorf("modified property: got %v, want 2", got)
		}
	})
}

func TestSettle_ADeadLetterStaysUntilItIsCompleted(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeQueue(t, b, "q", entity.QueueProperties{MaxDeliveryCount: 1, DefaultMessageTimeToLive: time.Minute, DeadLetteringOnMessageExpiration: true})
		send(t, b, "q", msg("m0", ""))
		r := openPlain(t, b, "q")
		must(t, r.Settle(receive(t, r, 1)[0].LockToken, entity.DeadLetter{Reason: "why", Description: "because", Properties: map[string]any{"k": "v"}}))
		time.Sleep(time.Hour)
		dead := openPlain(t, b, "Q/$DEADLETTERQUEUE")
		for range 5 {
			must(t, dead.Settle(receive(t, dead, 1)[0].LockToken, entity.Abandon{}))
		}
		d := receive(t, dead, 1)[0]
		if d.DeadLetterReason != "why" || d.DeadLetterDescription != "because" || d.Modified["k"] != "v" {
			t.Errorf("dead letter: got %q, %q, %v", d.DeadLetterReason, d.DeadLetterDescription, d.Modified)
		}
		wantCondition(t, dead.Settle(d.LockToken, entity.DeadLetter{}), entity.ConditionNotAllowed)
		must(t, dead.Settle(d.LockToken, entity.Complete{}))
		wantNothing(t, dead)
	})
}

func TestSettle_ReceiveAndDeleteRemovesAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeQueue(t, b, "q", entity.QueueProperties{})
		send(t, b, "q", msg("m0", ""), msg("m1", ""))
		r, err := b.OpenReceiver(t.Context(), "q", ReceiverOptions{Mode: ReceiveAndDelete})
		must(t, err)
		ds := receive(t, r, 10)
		wantIDs(t, ds, "m0 m1")
		if ds[0].LockToken != uuid.Nil {
			t.Errorf("lock token: got %v, want none", ds[0].LockToken)
		}
		time.Sleep(time.Hour)
		wantNothing(t, r)
	})
}

func TestSettle_DeferredMessages(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeQueue(t, b, "q", entity.QueueProperties{})
		send(t, b, "q", msg("m0", ""), msg("m1", ""))
		r := openPlain(t, b, "q")
		ds := receive(t, r, 10)
		settleAll(t, r, entity.Defer{Properties: map[string]any{"k": "v"}}, ds...)
		time.Sleep(time.Hour)
		wantNothing(t, r)
		seqs := []int64{ds[1].SequenceNumber, ds[0].SequenceNumber}
		_, err := b.ReceiveDeferred("q", append(seqs, 99), PeekLock, nil, math.MaxInt64)
		wantCondition(t, err, entity.ConditionMessageNotFound)
		_, err = b.ReceiveDeferred("q", []int64{seqs[0], seqs[0]}, PeekLock, nil, math.MaxInt64)
		wantCondition(t, err, entity.ConditionMessageNotFound)

		got, err := b.ReceiveDeferred("q", seqs, PeekLock, nil, math.MaxInt64)
		must(t, err)
		wantIDs(t, got, "m1 m0")
		if got[0].State != entity.StateDeferred || got[0].Modified["k"] != "v" {
			t.Errorf("deferred: got state %d and %v", got[0].State, got[0].Modified)
		}
		_, err = b.ReceiveDeferred("q", seqs, PeekLock, nil, math.MaxInt64) // locked
		wantCondition(t, err, entity.ConditionMessageNotFound)
		must(t, b.SettleByToken("q", got[0].LockToken, entity.Complete{}))
		must(t, b.SettleByToken("q", got[1].LockToken, entity.Abandon{}))
		wantNothing(t, r)
		got, err = b.ReceiveDeferred("q", seqs[1:], ReceiveAndDelete, nil, math.MaxInt64)
		must(t, err)
		if got[0].DeliveryCount != 1 {
			t.Errorf("delivery count: got %d, want 1", got[0].DeliveryCount)
		}
		_, err = b.ReceiveDeferred("q", seqs[1:], PeekLock, nil, math.MaxInt64)
		wantCondition(t, err, entity.ConditionMessageNotFound)
	})
}

func TestSettle_DeferredMessagesOfASession(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		sendIDs(t, b, "changes", "a", "a0")
		r := openNext(t, b, sub)
		d := receive(t, r, 1)[0]
		must(t, r.Settle(d.LockToken, entity.Defer{}))
		seqs := []int64{d.SequenceNumber}
		other := openSession(t, b, sub, "b")
		_, err := other.ReceiveDeferred(seqs)
		wantCondition(t, err, entity.ConditionMessageNotFound)
		id := "a"
		got, err := b.ReceiveDeferred(sub, seqs, PeekLock, &id, math.MaxInt64)
		must(t, err)
		must(t, r.Settle(got[0].LockToken, entity.Release{}))
		_, err = r.ReceiveDeferred(seqs)
		must(t, err)
		r.Close() // puts it back among the deferred
		_, err = r.ReceiveDeferred(seqs)
		wantCondition(t, err, entity.ConditionOperationCancelled)
		_, err = b.ReceiveDeferred(sub, seqs, PeekLock, &id, math.MaxInt64)
		wantCondition(t, err, entity.ConditionSessionLockLost)
		r = openSession(t, b, sub, "a")
		got, err = r.ReceiveDeferred(seqs)
		must(t, err)
		must(t, r.Settle(got[0].LockToken, entity.Complete{}))
	})
}

func TestSettle_PeekShowsEverythingAndChangesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeQueue(t, b, "q", entity.QueueProperties{})
		later := msg("later", "")
		later.ScheduledEnqueueTime = time.Now().Add(time.Hour)
		send(t, b, "q", msg("m0", ""), msg("m1", ""), later, msg("m2", ""))
		r := openPlain(t, b, "q")
		receive(t, r, 1)
		ds, err := b.Peek("q", 0, 10, nil)
		must(t, err)
		wantIDs(t, ds, "m0 m1 later m2")
		if ds[0].LockToken != uuid.Nil || ds[2].State != entity.StateScheduled {
			t.Errorf("peeked: got token %v and state %d", ds[0].LockToken, ds[2].State)
		}
		ds, err = b.Peek("q", ds[1].SequenceNumber, 1, nil)
		must(t, err)
		wantIDs(t, ds, "m1")
		wantIDs(t, receive(t, r, 10), "m1 m2")
	})
}

func TestSettle_PeekOfASession(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		sendIDs(t, b, "changes", "a", "a0", "a1", "a2")
		sendIDs(t, b, "changes", "b", "b0")
		id, none := "a", "none"
		ds, err := b.Peek(sub, 0, 2, &id)
		must(t, err)
		wantIDs(t, ds, "a0 a1")
		ds, err = b.Peek(sub, ds[1].SequenceNumber+1, 2, &id)
		must(t, err)
		wantIDs(t, ds, "a2")
		ds, err = b.Peek(sub, 0, 2, &none)
		must(t, err)
		wantIDs(t, ds, "")
		ds, err = b.Peek(sub, 0, 10, nil)
		must(t, err)
		if len(ds) != 4 {
			t.Errorf("peeked: got %d, want 4", len(ds))
		}
	})
}

func TestSettle_ADeadLetterQueueCountsNoDeliveries(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeQueue(t, b, "q", entity.QueueProperties{})
		send(t, b, "q", msg("m", ""))
		r := openPlain(t, b, "q")
		must(t, r.Settle(receive(t, r, 1)[0].LockToken, entity.Abandon{}))
		must(t, r.Settle(receive(t, r, 1)[0].LockToken, entity.DeadLetter{}))
		dead := openPlain(t, b, "q/$DeadLetterQueue")
		for range 3 {
			d := receive(t, dead, 1)[0]
			if d.DeliveryCount != 1 {
				t.Errorf("delivery count: got %d, want that of the queue, 1", d.DeliveryCount)
			}
			must(t, dead.Settle(d.LockToken, entity.Abandon{}))
		}
	})
}
