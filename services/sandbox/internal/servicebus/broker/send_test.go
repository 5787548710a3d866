package broker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

func TestSend_ABatchIsTakenInWholeOrNotAtAll(t *testing.T) {
	large := msg("large", "")
	large.Payload = make([]byte, 256<<10+1)
	long := strings.Repeat("ü", 129)
	keyed := func(id, key string) *entity.Message { return &entity.Message{MessageID: id, PartitionKey: key} }
	differing := msg("m", "a")
	differing.PartitionKey = "b"
	for name, test := range map[string]struct {
		p         entity.QueueProperties
		bad       []*entity.Message
		condition string
	}{
		"a message above the limit":         {entity.QueueProperties{}, []*entity.Message{msg("m", ""), large}, entity.ConditionMessageSizeExceeded},
		"an id that is too long":            {entity.QueueProperties{}, []*entity.Message{msg("m", ""), msg(long, "")}, entity.ConditionInvalidField},
		"a session id that is too long":     {entity.QueueProperties{RequiresSession: true}, []*entity.Message{msg("m", "s"), msg("n", long)}, entity.ConditionInvalidField},
		"a partition key that is too long":  {entity.QueueProperties{}, []*entity.Message{keyed("m", long)}, entity.ConditionInvalidField},
		"a key that is not the session":     {entity.QueueProperties{}, []*entity.Message{msg("m", ""), differing}, entity.ConditionNotAllowed},
		"a message without session":         {entity.QueueProperties{RequiresSession: true}, []*entity.Message{msg("m", "a"), msg("n", "")}, entity.ConditionNotAllowed},
		"two sessions, partitioned":         {entity.QueueProperties{EnablePartitioning: true, RequiresSession: true}, []*entity.Message{msg("m", "a"), msg("n", "b")}, entity.ConditionNotAllowed},
		"two keys, partitioned":             {entity.QueueProperties{EnablePartitioning: true}, []*entity.Message{keyed("m", "a"), keyed("n", "b")}, entity.ConditionNotAllowed},
		"with and without key, partitioned": {entity.QueueProperties{EnablePartitioning: true}, []*entity.Message{keyed("m", "a"), msg("n", "")}, entity.ConditionNotAllowed},
		"two ids, partitioned, no duplicates": {
			entity.QueueProperties{EnablePartitioning: true, RequiresDuplicateDetection: true}, []*entity.Message{msg("m", ""), msg("n", "")}, entity.ConditionNotAllowed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *Broker) {
				makeQueue(t, b, "q", test.p)
				wantCondition(t, b.Send(t.Context(), "q", test.bad), test.condition)
				q, err := b.Queue("q")
				must(t, err)
				if q.Counts != (entity.Counts{}) || q.Size != 0 {
					t.Errorf("after a refused batch: got %+v of %d bytes, want nothing", q.Counts, q.Size)
				}
			})
		})
	}
}

func TestSend_BatchesThatAreAllowed(t *testing.T) {
	keyed := msg("m", "a")
	keyed.PartitionKey = "a"
	for name, test := range map[string]struct {
		p    entity.QueueProperties
		msgs []*entity.Message
	}{
		"an id of 128 characters":                 {entity.QueueProperties{}, []*entity.Message{msg(strings.Repeat("ü", 128), "")}},
		"two sessions, not partitioned":           {entity.QueueProperties{RequiresSession: true}, []*entity.Message{msg("m", "a"), msg("n", "b")}},
		"no keys, partitioned":                    {entity.QueueProperties{EnablePartitioning: true}, []*entity.Message{msg("m", ""), msg("n", "")}},
		"one session, several ids, no duplicates": {entity.QueueProperties{EnablePartitioning: true, RequiresDuplicateDetection: true}, []*entity.Message{msg("m", "a"), msg("n", "a")}},
		"the session's id as key":                 {entity.QueueProperties{EnablePartitioning: true}, []*entity.Message{keyed, msg("n", "a")}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *Broker) {
				makeQueue(t, b, "q", test.p)
				must(t, b.Send(t.Context(), "q", test.msgs))
				q, err := b.Queue("q")
				must(t, err)
				if got, want := q.Counts.Active, int64(len(test.msgs)); got != want {
					t.Errorf("active messages: got %d, want %d", got, want)
				}
			})
		})
	}
}

func TestSend_DuplicatesAreAcceptedAndDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeQueue(t, b, "q", entity.QueueProperties{RequiresDuplicateDetection: true, DuplicateDetectionHistoryTimeWindow: time.Minute})
		r := openPlain(t, b, "q")
		send(t, b, "q", msg("m", ""), msg("m", ""), msg("n", ""), msg("", ""), msg("", ""))
		ds := receive(t, r, 10)
		wantIDs(t, ds, "m n  ")
		settleAll(t, r, entity.Complete{}, ds...)
		time.Sleep(time.Minute - time.Nanosecond)
		send(t, b, "q", msg("m", "")) // also after the first one has gone
		wantNothing(t, r)
		if got := b.Snapshot().Entities[0].Duplicates; got != 2 {
			t.Errorf("duplicates: got %d, want 2", got)
		}
		time.Sleep(time.Nanosecond)
		send(t, b, "q", msg("m", ""))
		wantIDs(t, receive(t, r, 10), "m")
	})
}

func TestSend_DuplicatesCountWithinAPartitionKey(t *testing.T) {
	for name, test := range map[string]struct {
		partitioned bool
		want        string
	}{
		"partitioned":     {true, "2"},
		"not partitioned": {false, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *Broker) {
				makeTopic(t, b, entity.TopicProperties{RequiresDuplicateDetection: true, EnablePartitioning: test.partitioned}, entity.SubscriptionProperties{})
				send(t, b, "changes", msg("m", "a"), msg("m", "b"), msg("m", "a"))
				s, err := b.Subscription("changes", "sub")
				must(t, err)
				if got := fmt.Sprint(s.Counts.Active); got != test.want {
					t.Errorf("messages: got %s, want %s", got, test.want)
				}
			})
		})
	}
}

func TestSend_TheHistoryIsForgottenInTime(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeQueue(t, b, "q", entity.QueueProperties{RequiresDuplicateDetection: true, DuplicateDetectionHistoryTimeWindow: time.Minute})
		for i := range 100 {
			send(t, b, "q", msg(fmt.Sprint(i), ""))
			time.Sleep(time.Second)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		h := b.inlets["q"].history
		if len(h.known) != 0 || len(h.queue) != 0 {
			t.Errorf("history: got %d ids and %d places, want none", len(h.known), len(h.queue))
		}
	})
}

func TestSend_AFullEntityRefuses(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeTopic(t, b, entity.TopicProperties{MaxSizeInMegabytes: 1}, entity.SubscriptionProperties{})
		_, err := b.CreateSubscription("changes", "other", entity.SubscriptionProperties{})
		must(t, err)
		fill := &entity.Message{Payload: make([]byte, 256<<10)}
		send(t, b, "changes", fill, fill, fill, fill) // counted once, not per subscription
		wantCondition(t, b.Send(t.Context(), "changes", []*entity.Message{msg("m", "")}), entity.ConditionResourceLimitExceeded)
		for _, path := range []string{sub, "changes/Subscriptions/other"} {
			r := openPlain(t, b, path)
			must(t, r.Settle(receive(t, r, 1)[0].LockToken, entity.Complete{}))
		}
		send(t, b, "changes", msg("m", ""))
	})
}

func TestSend_ScheduledMessagesWaitForTheirTime(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeTopic(t, b, entity.TopicProperties{}, entity.SubscriptionProperties{})
		at := time.Now().Add(time.Minute)
		later := func(id string, at time.Time) *entity.Message {
			m := msg(id, "")
			m.ScheduledEnqueueTime = at
			return m
		}
		seqs, err := b.Schedule(t.Context(), "changes", []*entity.Message{later("s0", at), later("s1", at.Add(time.Second))})
		must(t, err)
		send(t, b, "changes", later("sent", at.Add(2*time.Second)), later("past", at.Add(-time.Hour)))
		r := openPlain(t, b, sub)
		past := receive(t, r, 10)
		wantIDs(t, past, "past")
		settleAll(t, r, entity.Complete{}, past...)
		if got := b.Topics()[0].Counts.Scheduled; got != 3 {
			t.Errorf("scheduled: got %d, want 3", got)
		}
		must(t, b.CancelScheduled(t.Context(), "changes", seqs[1:]))
		wantCondition(t, b.CancelScheduled(t.Context(), "changes", seqs), entity.ConditionMessageNotFound)
		d, err := r.Receive(t.Context(), 1)
		must(t, err)
		wantIDs(t, d, "s0")
		if !time.Now().Equal(at) || !d[0].EnqueuedTime.Equal(at) {
			t.Errorf("enqueued: got %v at %v, want %v", d[0].EnqueuedTime, time.Now(), at)
		}
		d, err = r.Receive(t.Context(), 1)
		must(t, err)
		wantIDs(t, d, "sent")
	})
}

func TestSend_MessagesExpire(t *testing.T) {
	short := msg("short", "")
	short.TimeToLive = 10 * time.Second
	for name, test := range map[string]struct {
		p    entity.QueueProperties
		dead string
		left int64
	}{
		"and go":                  {entity.QueueProperties{}, "", 1},
		"and are dead-lettered":   {entity.QueueProperties{DeadLetteringOnMessageExpiration: true}, "short", 1},
		"by the entity's default": {entity.QueueProperties{DeadLetteringOnMessageExpiration: true, DefaultMessageTimeToLive: 5 * time.Second}, "short long", 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *Broker) {
				makeQueue(t, b, "q", test.p)
				send(t, b, "q", short, msg("long", ""))
				time.Sleep(10 * time.Second)
				synctest.Wait()
				dead, err := b.Peek("q/$DeadLetterQueue", 0, 10, nil)
				must(t, err)
				wantIDs(t, dead, test.dead)
				for _, d := range dead {
					if d.DeadLetterReason != "TTLExpiredException" {
						t.Errorf("reason: got %q, want TTLExpiredException", d.DeadLetterReason)
					}
				}
				q, err := b.Queue("q")
				must(t, err)
				if got := q.Counts.Active; got != test.left {
					t.Errorf("active: got %d, want %d", got, test.left)
				}
			})
		})
	}
}

func TestSend_ALockedMessageExpiresOnlyWhenItComesBack(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeQueue(t, b, "q", entity.QueueProperties{DefaultMessageTimeToLive: 10 * time.Second, DeadLetteringOnMessageExpiration: true})
		send(t, b, "q", msg("kept", ""), msg("back", ""), msg("deferred", ""))
		r := openPlain(t, b, "q")
		ds := receive(t, r, 10)
		must(t, r.Settle(ds[2].LockToken, entity.Defer{}))
		deferred, err := b.ReceiveDeferred("q", []int64{ds[2].SequenceNumber}, PeekLock, nil, math.MaxInt64)
		must(t, err)
		time.Sleep(20 * time.Second)
		must(t, r.Settle(ds[0].LockToken, entity.Complete{}))
		must(t, r.Settle(ds[1].LockToken, entity.Release{}))
		must(t, b.SettleByToken("q", deferred[0].LockToken, entity.Release{}))
		dead, err := b.Peek("q/$DeadLetterQueue", 0, 10, nil)
		must(t, err)
		wantIDs(t, dead, "back")
		wantNothing(t, r)
	})
}

func TestSend_ADeferredMessageExpiresWhenItIsAskedFor(t *testing.T) {
	for name, test := range map[string]struct {
		deadLetter bool
		dead       string
	}{"and goes": {false, ""}, "and is dead-lettered": {true, "m0 m1"}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *Broker) {
				makeQueue(t, b, "q", entity.QueueProperties{DefaultMessageTimeToLive: 10 * time.Second, DeadLetteringOnMessageExpiration: test.deadLetter})
				send(t, b, "q", msg("m0", ""), msg("m1", ""), msg("m2", ""))
				r := openPlain(t, b, "q")
				ds := receive(t, r, 10)
				settleAll(t, r, entity.Defer{}, ds...)
				time.Sleep(20 * time.Second)
				synctest.Wait()
				there, err := b.Peek("q", 0, 10, nil)
				must(t, err)
				wantIDs(t, there, "m0 m1 m2")

				seqs := []int64{ds[0].SequenceNumber, ds[1].SequenceNumber}
				_, err = b.ReceiveDeferred("q", append(seqs, 99), PeekLock, nil, math.MaxInt64)
				wantCondition(t, err, entity.ConditionMessageNotFound)
				there, err = b.Peek("q", 0, 10, nil)
				must(t, err)
				wantIDs(t, there, "m0 m1 m2")

				_, err = b.ReceiveDeferred("q", seqs, PeekLock, nil, math.MaxInt64)
				wantCondition(t, err, entity.ConditionMessageNotFound)
				there, err = b.Peek("q", 0, 10, nil)
				must(t, err)
				wantIDs(t, there, "m2")
				dead, err := b.Peek("q/$DeadLetterQueue", 0, 10, nil)
				must(t, err)
				wantIDs(t, dead, test.dead)
			})
		})
	}
}

func TestSend_SequenceNumbersOfAPartitionedTopic(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeTopic(t, b, entity.TopicProperties{EnablePartitioning: true}, entity.SubscriptionProperties{})
		for i := range 64 {
			send(t, b, "changes", msg(fmt.Sprint(i), fmt.Sprint("session", i%8)))
		}
		last := map[string]int64{}
		used := map[int16]bool{}
		for i, d := range receive(t, openPlain(t, b, sub), 100) {
			if d.MessageID != fmt.Sprint(i) {
				t.Errorf("message %d in order of arrival: got %s", i, d.MessageID)
			}
			if d.SequenceNumber <= last[*d.SessionID] {
				t.Errorf("sequence number of %s: got %d, want above %d", d.MessageID, d.SequenceNumber, last[*d.SessionID])
			}
			last[*d.SessionID] = d.SequenceNumber
			used[d.Partition] = true
			if got := int16(d.SequenceNumber >> 48); got != d.Partition || d.EnqueuedSequenceNumber == 0 {
				t.Errorf("sequence number %x enqueued as %x: want it to carry partition %d", d.SequenceNumber, d.EnqueuedSequenceNumber, d.Partition)
			}
		}
		if len(used) < 3 {
			t.Errorf("partitions used: got %d, want several", len(used))
		}
	})
}

func TestSend_SubscriptionsGetTheirOwnCopies(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeTopic(t, b, entity.TopicProperties{}, entity.SubscriptionProperties{RequiresSession: true})
		_, err := b.CreateSubscription("changes", "observer", entity.SubscriptionProperties{})
		must(t, err)
		sendIDs(t, b, "changes", "a", "a0", "a1")
		held := openNext(t, b, sub)
		settleAll(t, held, entity.Complete{}, receive(t, held, 10)...)
		wantIDs(t, receive(t, openPlain(t, b, "CHANGES/subscriptions/OBSERVER"), 10), "a0 a1")
	})
}

func TestSend_RulesChooseMessages(t *testing.T) {
	red := map[string]any{"color": "red", "n": int32(5)}
	label := "big"
	for name, test := range map[string]struct {
		rules []entity.Rule
		want  string
	}{
		"none given":                {nil, "red plain"},
		"true":                      {[]entity.Rule{{Name: "r", Filter: entity.TrueFilter{}}}, "red plain"},
		"false":                     {[]entity.Rule{{Name: "r", Filter: entity.FalseFilter{}}}, ""},
		"SQL":                       {[]entity.Rule{{Name: "r", Filter: entity.SQLFilter{Expression: "Color = 'red' AND n > 4"}}}, "red"},
		"SQL with parameter":        {[]entity.Rule{{Name: "r", Filter: entity.SQLFilter{Expression: "color = @c", Parameters: map[string]any{"@c": "red"}}}}, "red"},
		"SQL on the broker's":       {[]entity.Rule{{Name: "r", Filter: entity.SQLFilter{Expression: "sys.Label = 'big' AND sys.MessageId LIKE 'p%' AND sys.SessionId IS NULL"}}}, "plain"},
		"correlation":               {[]entity.Rule{{Name: "r", Filter: entity.CorrelationFilter{Properties: map[string]any{"color": "red", "n": int64(5)}}}}, "red"},
		"correlation on a field":    {[]entity.Rule{{Name: "r", Filter: entity.CorrelationFilter{Subject: &label}}}, "plain"},
		"correlation without match": {[]entity.Rule{{Name: "r", Filter: entity.CorrelationFilter{Subject: &label, Properties: red}}}, ""},
		"several, once each":        {[]entity.Rule{{Name: "r", Filter: entity.TrueFilter{}}, {Name: "s", Filter: entity.TrueFilter{}}}, "red plain"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *Broker) {
				_, err := b.CreateTopic("changes", entity.TopicProperties{})
				must(t, err)
				_, err = b.CreateSubscription("changes", "sub", entity.SubscriptionProperties{}, test.rules...)
				must(t, err)
				send(t, b, "changes", &entity.Message{MessageID: "red", Properties: red}, &entity.Message{MessageID: "plain", Subject: "big"})
				ds, err := b.Peek(sub, 0, 10, nil)
				must(t, err)
				wantIDs(t, ds, test.want)
			})
		})
	}
}

func TestSend_ReceiversWithoutSessionShareInTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeQueue(t, b, "q", entity.QueueProperties{})
		got := make(chan string)
		for i := range 3 {
			r := openPlain(t, b, "q")
			go func() {
				ds, err := r.Receive(t.Context(), 1)
				got <- fmt.Sprint(i, ids(ds), err)
			}()
			synctest.Wait()
		}
		for i := range 3 {
			send(t, b, "q", msg("m", ""))
			if s, want := <-got, fmt.Sprint(i, "m<nil>"); s != want {
				t.Errorf("received by: got %s, want %s", s, want)
			}
		}
	})
}

func TestSend_AWakeUpIsNotLostWithItsReceiver(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeQueue(t, b, "q", entity.QueueProperties{})
		gone, stays := openPlain(t, b, "q"), openPlain(t, b, "q")
		ctx, cancel := context.WithCancel(t.Context())
		left, got := make(chan error, 1), make(chan string, 1)
		go func() {
			_, err := gone.Receive(ctx, 1)
			left <- err
		}()
		synctest.Wait()
		waitTimeout, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		go func() {
			ds, err := stays.Receive(waitTimeout, 2)
			got <- fmt.Sprint(ids(ds), err)
		}()
		synctest.Wait()
		b.mu.Lock() // the first receiver is on its way out when the message wakes it
		cancel()
		b.inlets["q"].arrive(msg("m", ""), 0, time.Now())
		b.mu.Unlock()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Fatalf("Receive: got error %v, want %v", err, context.Canceled)
		}
		if s := <-got; s != "m<nil>" {
			t.Errorf("Receive: got %s, want m", s)
		}
	})
}
