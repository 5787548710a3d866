package broker

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// What outcomes add stays with a message, and a dead letter is delivered any number of times.
func TestMarks_AMessageGrowsNoLargerThanItsEntityAllows(t *testing.T) {
	const added = 10 << 10
	for name, outcome := range map[string]func(round int) entity.Outcome{
		"abandoned": func(round int) entity.Outcome {
			return entity.Abandon{Properties: map[string]any{fmt.Sprint(round): strings.Repeat("-", added)}}
		},
		"deferred": func(round int) entity.Outcome {
			return entity.Defer{Properties: map[string]any{fmt.Sprint(round): strings.Repeat("-", added)}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *Broker) {
				makeQueue(t, b, "q", entity.QueueProperties{MaxDeliveryCount: 1000})
				m := msg("m0", "")
				m.Payload = make([]byte, 200<<10)
				send(t, b, "q", m)
				r := openPlain(t, b, "q")
				must(t, r.Settle(receive(t, r, 1)[0].LockToken, entity.DeadLetter{Reason: "why"}))
				d := receive(t, openPlain(t, b, "q/$DeadLetterQueue"), 1)[0]
				rounds := 0
				var err error
				for ; err == nil && rounds < 100; rounds++ {
					if err = b.SettleByToken("q/$DeadLetterQueue", d.LockToken, outcome(rounds)); err == nil {
						d = again(t, b, d)
					}
				}
				wantCondition(t, err, entity.ConditionMessageSizeExceeded)
				if most := 256<<10 + marksRoom; d.Size > int64(most) || rounds < 2 {
					t.Errorf("got %d bytes after %d rounds, want at most %d after several", d.Size, rounds, most)
				}
				must(t, b.SettleByToken("q/$DeadLetterQueue", d.LockToken, entity.Complete{}))
			})
		})
	}
}

// again receives a dead letter once more, deferred or not.
func again(t *testing.T, b *Broker, d *entity.Delivery) *entity.Delivery {
	t.Helper()
	ds, err := b.ReceiveDeferred("q/$DeadLetterQueue", []int64{d.SequenceNumber}, PeekLock, nil, 0)
	if err == nil {
		return ds[0]
	}
	wantCondition(t, err, entity.ConditionMessageNotFound)
	return receive(t, openPlain(t, b, "q/$DeadLetterQueue"), 1)[0]
}

func TestMarks_AMessageOfTheLargestSizeCanBeDeadLettered(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeQueue(t, b, "q", entity.QueueProperties{MaxSizeInMegabytes: 1})
		m := msg("m0", "")
		m.Payload = make([]byte, 256<<10)
		send(t, b, "q", m, m, m, m) // which fills the queue
		r := openPlain(t, b, "q")
		ds := receive(t, r, 4)
		text := strings.Repeat("-", 4096)
		must(t, r.Settle(ds[0].LockToken, entity.DeadLetter{Reason: text, Description: text}))
		err := r.Settle(ds[1].LockToken, entity.DeadLetter{Description: strings.Repeat("-", 2<<20)})
		wantCondition(t, err, entity.ConditionMessageSizeExceeded)
		err = r.Settle(ds[2].LockToken, entity.Abandon{Properties: map[string]any{"k": "v"}})
		wantCondition(t, err, entity.ConditionResourceLimitExceeded)
		must(t, r.Settle(ds[3].LockToken, entity.Abandon{}))
	})
}

func TestMarks_CountInTheQuota(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeQueue(t, b, "q", entity.QueueProperties{})
		send(t, b, "q", msg("m0", ""))
		r := openPlain(t, b, "q")
		used := func() int64 { return b.Queues()[0].Size }
		empty := used()
		must(t, r.Settle(receive(t, r, 1)[0].LockToken, entity.Abandon{Properties: map[string]any{"k": strings.Repeat("-", 1000)}}))
		if grown := used() - empty; grown < 1000 || grown > 1100 {
			t.Errorf("got %d bytes more after an abandon, want about 1000", grown)
		}
		must(t, r.Settle(receive(t, r, 1)[0].LockToken, entity.DeadLetter{Reason: strings.Repeat("-", 500)}))
		dead := openPlain(t, b, "q/$DeadLetterQueue")
		d := receive(t, dead, 1)[0]
		if grown := used() - empty; grown < 1500 || grown > 1600 {
			t.Errorf("got %d bytes more for a dead letter, want about 1500", grown)
		}
		must(t, dead.Settle(d.LockToken, entity.Complete{}))
		if got := used(); got != 0 {
			t.Errorf("got %d bytes for an empty queue, want none", got)
		}
	})
}

// A dead-letter queue counts no deliveries, and keeps what an abandon has set all the same.
func TestMarks_OfAnAbandonedDeadLetterOutliveTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &memoryJournal{}
		b, err := New(Config{})
		must(t, err)
		b.Keep(j)
		stop := run(t, b)
		makeQueue(t, b, "q", entity.QueueProperties{})
		send(t, b, "q", msg("m0", ""))
		r := openPlain(t, b, "q")
		must(t, r.Settle(receive(t, r, 1)[0].LockToken, entity.DeadLetter{}))
		dead := openPlain(t, b, "q/$DeadLetterQueue")
		must(t, dead.Settle(receive(t, dead, 1)[0].LockToken, entity.Abandon{Properties: map[string]any{"seen": "yes"}}))
		b, stop = reborn(t, b, stop, j)
		defer stop()
		if got := receive(t, openPlain(t, b, "q/$DeadLetterQueue"), 1)[0].Modified["seen"]; got != "yes" {
			t.Errorf("got %v after a restart, want yes", got)
		}
	})
}

// What is refused is still there for whoever asks for less.
func TestReceiveDeferred_TakesNothingThatIsTooMuchTogether(t *testing.T) {
	for _, mode := range []ReceiveMode{PeekLock, ReceiveAndDelete} {
		inBubble(t, func(t *testing.T, b *Broker) {
			makeQueue(t, b, "q", entity.QueueProperties{})
			large := msg("m0", "")
			large.Payload = make([]byte, 1000)
			send(t, b, "q", large, msg("m1", ""))
			r := openPlain(t, b, "q")
			ds := receive(t, r, 2)
			settleAll(t, r, entity.Defer{}, ds...)
			seqs := []int64{ds[0].SequenceNumber, ds[1].SequenceNumber}
			_, err := b.ReceiveDeferred("q", seqs, mode, nil, 1000)
			wantCondition(t, err, entity.ConditionMessageSizeExceeded)
			got, err := b.ReceiveDeferred("q", seqs[:1], mode, nil, 10)
			must(t, err)
			wantIDs(t, got, "m0")
			got, err = b.ReceiveDeferred("q", seqs[1:], mode, nil, 1000)
			must(t, err)
			wantIDs(t, got, "m1")
		})
	}
}
