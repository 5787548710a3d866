package broker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

func makeSessions(t *testing.T, b *Broker) {
	t.Helper()
	makeTopic(t, b, entity.TopicProperties{EnablePartitioning: true}, entity.SubscriptionProperties{RequiresSession: true, MaxDeliveryCount: 3})
}

func TestSession_ASessionsMessagesComeInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		for i := range 5 {
			sendIDs(t, b, "changes", "a", fmt.Sprint("a", i))
			sendIDs(t, b, "changes", "b", fmt.Sprint("b", i))
		}
		r := openSession(t, b, sub, "a")
		first := receive(t, r, 2)
		wantIDs(t, first, "a0 a1")
		rest := receive(t, r, 10)
		wantIDs(t, rest, "a2 a3 a4")
		last := int64(0)
		for _, d := range append(first, rest...) {
			if d.SequenceNumber <= last {
				t.Errorf("sequence number of %s: got %d, want above %d", d.MessageID, d.SequenceNumber, last)
			}
			last = d.SequenceNumber
		}
	})
}

func TestSession_AHeldSessionIsRefusedToOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		sendIDs(t, b, "changes", "a", "a0")
		openSession(t, b, sub, "a")
		_, err := b.OpenReceiver(t.Context(), sub, ReceiverOptions{Session: &SessionFilter{ID: "a"}})
		wantCondition(t, err, entity.ConditionSessionCannotBeLocked)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = b.OpenReceiver(ctx, sub, ReceiverOptions{Session: &SessionFilter{Next: true}})
		wantCondition(t, err, entity.ConditionTimeout)
	})
}

func TestSession_AHolderGetsLaterMessagesToo(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		r := openSession(t, b, sub, "a") // empty
		got := make(chan string)
		go func() {
			ds, err := r.Receive(t.Context(), 10)
			got <- fmt.Sprint(ids(ds), err)
		}()
		synctest.Wait()
		sendIDs(t, b, "changes", "a", "a0")
		if s := <-got; s != "a0<nil>" {
			t.Errorf("Receive: got %s, want a0", s)
		}
	})
}

func TestSession_TheNextSessionIsTheOneThatWaitedLongest(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		for _, id := range []string{"c", "a", "d", "b", "a", "c"} {
			sendIDs(t, b, "changes", id, id)
		}
		held := openSession(t, b, sub, "d")
		for _, want := range []string{"c", "a", "b"} {
			if got := openNext(t, b, sub).SessionID(); got != want {
				t.Errorf("next session: got %q, want %q", got, want)
			}
		}
		held.Close()
		if got := openNext(t, b, sub).SessionID(); got != "d" {
			t.Errorf("next session: got %q, want d", got)
		}
	})
}

func TestSession_WaitingAcceptsAreServedInTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		got := make(chan string, 3)
		for i := range 3 {
			go func() { got <- fmt.Sprint(i, openNext(t, b, sub).SessionID()) }()
			synctest.Wait()
		}
		for i, id := range []string{"x", "y", "z"} {
			sendIDs(t, b, "changes", id, id)
			if s, want := <-got, fmt.Sprint(i, id); s != want {
				t.Errorf("accept: got %s, want %s", s, want)
			}
		}
	})
}

func TestSession_ACancelledAcceptTakesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := b.OpenReceiver(ctx, sub, ReceiverOptions{Session: &SessionFilter{Next: true}})
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("OpenReceiver: got error %v, want %v", err, context.Canceled)
		}
		sendIDs(t, b, "changes", "a", "a0")
		if got := openNext(t, b, sub).SessionID(); got != "a" {
			t.Errorf("next session: got %q, want a", got)
		}
	})
}

func TestSession_ClosePutsUnsettledMessagesBackWithoutCounting(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		sendIDs(t, b, "changes", "a", "a0", "a1", "a2")
		for range 5 { // more often than the delivery count allows
			r := openNext(t, b, sub)
			wantIDs(t, receive(t, r, 2), "a0 a1")
			r.Close()
		}
		r := openNext(t, b, sub)
		ds := receive(t, r, 10)
		wantIDs(t, ds, "a0 a1 a2")
		if got := ds[0].DeliveryCount; got != 0 {
			t.Errorf("delivery count: got %d, want 0", got)
		}
	})
}

func TestSession_SettlingAfterCloseIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		sendIDs(t, b, "changes", "a", "a0")
		r := openNext(t, b, sub)
		d := receive(t, r, 1)[0]
		r.Close()
		again := openNext(t, b, sub)
		receive(t, again, 1)
		wantCondition(t, r.Settle(d.LockToken, entity.Complete{}), entity.ConditionSessionLockLost)
		wantCondition(t, b.SettleByToken(sub, d.LockToken, entity.Complete{}), entity.ConditionMessageLockLost)
		_, err := r.Receive(t.Context(), 1)
		wantCondition(t, err, entity.ConditionOperationCancelled)
	})
}

func TestSession_AnExpiredSessionLockCountsAndIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		sendIDs(t, b, "changes", "a", "a0", "a1", "a2")
		r := openNext(t, b, sub)
		ds := receive(t, r, 2)
		must(t, r.Settle(ds[0].LockToken, entity.Complete{}))
		time.Sleep(lockDuration)
		wantCondition(t, r.Settle(ds[1].LockToken, entity.Complete{}), entity.ConditionSessionLockLost)
		_, err := r.Receive(t.Context(), 1)
		wantCondition(t, err, entity.ConditionSessionLockLost)
		_, err = r.RenewSessionLock()
		wantCondition(t, err, entity.ConditionSessionLockLost)
		ds = receive(t, openNext(t, b, sub), 10)
		wantIDs(t, ds, "a1 a2")
		if ds[0].DeliveryCount != 1 || ds[1].DeliveryCount != 0 {
			t.Errorf("delivery counts: got %d and %d, want 1 and 0", ds[0].DeliveryCount, ds[1].DeliveryCount)
		}
	})
}

func TestSession_AnExpiryWakesAWaitingReceiver(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		r := openSession(t, b, sub, "a")
		before := time.Now()
		_, err := r.Receive(t.Context(), 1)
		wantCondition(t, err, entity.ConditionSessionLockLost)
		if got := time.Since(before); got != lockDuration {
			t.Errorf("lock lost after %v, want %v", got, lockDuration)
		}
	})
}

func TestSession_AnExpiredSessionGoesToAWaitingAccept(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		sendIDs(t, b, "changes", "a", "a0")
		openNext(t, b, sub)
		before := time.Now()
		r := openNext(t, b, sub)
		if got := time.Since(before); got != lockDuration {
			t.Errorf("accepted after %v, want %v", got, lockDuration)
		}
		wantIDs(t, receive(t, r, 1), "a0")
	})
}

func TestSession_RenewalExtendsASessionLock(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		sendIDs(t, b, "changes", "a", "a0")
		r := openNext(t, b, sub)
		d := receive(t, r, 1)[0]
		for range 4 {
			time.Sleep(lockDuration - time.Second)
			until, err := r.RenewSessionLock()
			must(t, err)
			if want := time.Now().Add(lockDuration); !until.Equal(want) || !r.LockedUntil().Equal(want) {
				t.Errorf("locked until: got %v and %v, want %v", until, r.LockedUntil(), want)
			}
			_, err = b.RenewSessionLock(sub, "a")
			must(t, err)
		}
		must(t, r.Settle(d.LockToken, entity.Complete{}))
	})
}

func TestSession_ManyExpiriesDeadLetterASessionsMessage(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		sendIDs(t, b, "changes", "a", "a0", "a1")
		for range 3 {
			wantIDs(t, receive(t, openNext(t, b, sub), 1), "a0")
			time.Sleep(lockDuration)
		}
		wantIDs(t, receive(t, openNext(t, b, sub), 10), "a1")
		dead := receive(t, openPlain(t, b, sub+"/$DeadLetterQueue"), 10)
		wantIDs(t, dead, "a0")
		if got, want := dead[0].DeadLetterReason, "MaxDeliveryCountExceeded"; got != want {
			t.Errorf("reason: got %q, want %q", got, want)
		}
	})
}

func TestSession_ReceiversMustFitTheEntity(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		makeQueue(t, b, "plain", entity.QueueProperties{})
		_, err := b.OpenReceiver(t.Context(), sub, ReceiverOptions{})
		wantCondition(t, err, entity.ConditionNotAllowed)
		_, err = b.OpenReceiver(t.Context(), "plain", ReceiverOptions{Session: &SessionFilter{Next: true}})
		wantCondition(t, err, entity.ConditionNotAllowed)
		_, err = b.OpenReceiver(t.Context(), "changes", ReceiverOptions{})
		wantCondition(t, err, entity.ConditionNotFound)
		_, err = b.OpenReceiver(t.Context(), "changes/subscriptions/none", ReceiverOptions{})
		wantCondition(t, err, entity.ConditionNotFound)
	})
}

func TestSession_AMessageWithoutSession(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		makeQueue(t, b, "queue", entity.QueueProperties{RequiresSession: true})
		wantCondition(t, b.Send(t.Context(), "queue", []*entity.Message{msg("m", "")}), entity.ConditionNotAllowed)

		send(t, b, "changes", msg("m", ""))
		dead := receive(t, openPlain(t, b, sub+"/$deadletterqueue"), 10)
		wantIDs(t, dead, "m")
		if got, want := dead[0].DeadLetterReason, "Session ID is null"; got != want {
			t.Errorf("reason: got %q, want %q", got, want)
		}
	})
}

func TestSession_AnEmptySessionIDIsASession(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		empty := ""
		send(t, b, "changes", &entity.Message{MessageID: "m", SessionID: &empty})
		r := openNext(t, b, sub)
		if got := r.SessionID(); got != "" {
			t.Errorf("session: got %q, want the empty one", got)
		}
		wantIDs(t, receive(t, r, 1), "m")
	})
}

func TestSession_SessionState(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		wantCondition(t, b.SetSessionState(sub, "a", []byte("x")), entity.ConditionSessionLockLost)
		r := openSession(t, b, sub, "a")
		state, err := r.SessionState()
		must(t, err)
		if state != nil {
			t.Errorf("state: got %q, want none", state)
		}
		must(t, r.SetSessionState([]byte("here")))
		r.Close()
		wantCondition(t, r.SetSessionState([]byte("late")), entity.ConditionSessionLockLost)

		openSession(t, b, sub, "a")
		state, err = b.GetSessionState(sub, "a")
		must(t, err)
		if string(state) != "here" {
			t.Errorf("state: got %q, want here", state)
		}
		must(t, b.SetSessionState(sub, "a", []byte{}))
	})
}

func TestSession_ListSessions(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		for _, id := range []string{"d", "b", "a", "c"} {
			sendIDs(t, b, "changes", id, id)
		}
		r := openSession(t, b, sub, "e")
		must(t, r.SetSessionState([]byte("s")))
		r.Close()
		since := time.Now().Add(-time.Second)
		for name, test := range map[string]struct {
			since     time.Time
			skip, top int
			want      string
		}{
			"all":                        {time.Time{}, 0, 10, "[a b c d e]"},
			"a page":                     {time.Time{}, 1, 2, "[b c]"},
			"past the end":               {time.Time{}, 9, 2, "[]"},
			"with a state set since":     {since, 0, 10, "[e]"},
			"with no state set since":    {since.Add(time.Hour), 0, 10, "[]"},
			"a page of a negative start": {time.Time{}, -1, 1, "[a]"},
		} {
			got, err := b.ListSessions(sub, test.since, test.skip, test.top)
			must(t, err)
			if fmt.Sprint(got) != test.want {
				t.Errorf("%s: got %v, want %s", name, got, test.want)
			}
		}
	})
}

func TestSession_EmptySessionsAreForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		for i := range 100 {
			id := fmt.Sprint(i)
			sendIDs(t, b, "changes", id, id)
			r := openNext(t, b, sub)
			settleAll(t, r, entity.Complete{}, receive(t, r, 10)...)
			r.Close()
		}
		s, err := b.storeAt(sub)
		must(t, err)
		if got := len(s.sessions); got != 0 {
			t.Errorf("sessions kept: got %d, want 0", got)
		}
	})
}
