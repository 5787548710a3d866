package broker

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// large is what a message brings with it here: several make a record large, and
// all would be far too many for one.
var (
	large      = bytes.Repeat([]byte("x"), 200<<10)
	properties = map[string]any{"large": string(large)}
)

const many = 40

// TestRecord_NoneHasMoreThanItMust does what changes many messages at once. No
// alarm is rung unless a case does so.
func TestRecord_NoneHasMoreThanItMust(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, b *Broker){
		"scheduled messages that are due together": func(t *testing.T, b *Broker) {
			for i := range many {
				m := msg(fmt.Sprint("m", i), "")
				m.Payload, m.ScheduledEnqueueTime = large, time.Now().Add(time.Minute)
				send(t, b, "q", m)
			}
			time.Sleep(time.Minute)
			for wait := time.Duration(0); wait <= 0; {
				var err error
				wait, err = b.ringDue()
				must(t, err)
			}
			wantIDs(t, receive(t, openPlain(t, b, "q"), 1), "m0")
		},
		"messages that have expired when a receiver comes": func(t *testing.T, b *Broker) {
			abandoned(t, b, "q", "", openPlain(t, b, "q"))
			time.Sleep(time.Hour)
			wantNothing(t, openPlain(t, b, "q"))
			wantDeadLetters(t, b, "q")
		},
		"deferred messages that have expired when they are asked for": func(t *testing.T, b *Broker) {
			r := openPlain(t, b, "q")
			ds := abandoned(t, b, "q", "", r)
			var seqs []int64
			for _, d := range receive(t, r, len(ds)) {
				settleAll(t, r, entity.Defer{}, d)
				seqs = append(seqs, d.SequenceNumber)
			}
			time.Sleep(time.Hour)
			_, err := r.ReceiveDeferred(seqs)
			wantCondition(t, err, entity.ConditionMessageNotFound)
			wantDeadLetters(t, b, "q")
		},
		"messages of a session whose lock has expired": func(t *testing.T, b *Broker) {
			r := openSession(t, b, "sessions", "s")
			ds := abandoned(t, b, "sessions", "s", r)
			receive(t, r, len(ds))
			time.Sleep(lockDuration)
			wantIDs(t, receive(t, openSession(t, b, "sessions", "s"), 1), "m0")
		},
		"states of sessions in a snapshot": func(t *testing.T, b *Broker) {
			for i := range many {
				must(t, openSession(t, b, "sessions", fmt.Sprint("s", i)).SetSessionState(large))
			}
			must(t, b.compact())
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, j := withRecords(t)
				change(t, b)
				wantRecordsBelow(t, j, 2*recordSize)
			})
		})
	}
}

// withRecords is a broker that keeps a journal and rings no alarms, with a queue
// "q" and one with sessions, whose messages are dead-lettered when they expire.
func withRecords(t *testing.T) (*Broker, *memoryJournal) {
	t.Helper()
	b, err := New(Config{})
	must(t, err)
	j := &memoryJournal{}
	b.Keep(j)
	p := entity.QueueProperties{DefaultMessageTimeToLive: time.Hour, DeadLetteringOnMessageExpiration: true}
	makeQueue(t, b, "q", p)
	p.RequiresSession = true
	makeQueue(t, b, "sessions", p)
	return b, j
}

// abandoned sends messages and abandons each with large properties.
func abandoned(t *testing.T, b *Broker, path, session string, r *Receiver) []*entity.Delivery {
	t.Helper()
	for i := range many {
		send(t, b, path, msg(fmt.Sprint("m", i), session))
	}
	ds := receive(t, r, many)
	settleAll(t, r, entity.Abandon{Properties: properties}, ds...)
	return ds
}

func wantDeadLetters(t *testing.T, b *Broker, path string) {
	t.Helper()
	ds, err := b.Peek(path+"/$DeadLetterQueue", 0, 2*many, nil)
	must(t, err)
	if len(ds) != many {
		t.Errorf("dead letters: got %d, want %d", len(ds), many)
	}
}

// wantRecordsBelow checks the size of records, and that they can be restored.
func wantRecordsBelow(t *testing.T, j *memoryJournal, most int) {
	t.Helper()
	again, err := New(Config{})
	must(t, err)
	must(t, j.replay(func(record []byte) error {
		if len(record) > most {
			t.Errorf("record: got %d bytes, want at most %d", len(record), most)
		}
		return again.Restore(record)
	}))
}

// A batch is one record, up to a size that none has but one to very many
// subscriptions.
func TestRecord_ABatchIsOneUpToASize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, j := withRecords(t)
		batch := func(messages int) (records int) {
			var msgs []*entity.Message
			for i := range messages {
				m := msg(fmt.Sprint("m", i), "")
				m.Payload = large
				msgs = append(msgs, m)
			}
			before := len(j.records)
			must(t, b.Send(t.Context(), "q", msgs))
			return len(j.records) - before
		}
		if got := batch(many); got != 1 {
			t.Errorf("records of %d messages: got %d, want 1", many, got)
		}
		if got := batch(5 * many); got != 2 {
			t.Errorf("records of %d messages: got %d, want 2", 5*many, got)
		}
		wantRecordsBelow(t, j, batchSize+recordSize)
	})
}

// Messages that a receiver has locked expire as the receiver ends, before their
// entity is gone.
func TestRecord_WhatIsDeletedWithExpiredMessagesCanBeRestored(t *testing.T) {
	for path, remove := range map[string]func(b *Broker) error{
		"sessions": func(b *Broker) error { return b.DeleteQueue("sessions") },
		sub:        func(b *Broker) error { return b.DeleteSubscription("changes", "sub") },
	} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, j := withRecords(t)
				makeTopic(t, b, entity.TopicProperties{}, entity.SubscriptionProperties{RequiresSession: true, DeadLetteringOnMessageExpiration: true})
				to, _, _ := strings.Cut(path, "/")
				m := msg("m", "s")
				m.TimeToLive = lockDuration / 2
				send(t, b, to, m)
				receive(t, openSession(t, b, path, "s"), 1)
				time.Sleep(m.TimeToLive)
				must(t, remove(b))
				wantRecordsBelow(t, j, recordSize)
			})
		})
	}
}
