package broker

import (
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

func TestFaults_ThrottledEntitiesAreBusyForAWhile(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeTopic(t, b, entity.TopicProperties{}, entity.SubscriptionProperties{})
		must(t, b.Throttle("changes", 2*time.Second))
		must(t, b.Throttle(sub, 3*time.Second))
		wantCondition(t, b.Send(t.Context(), "changes", []*entity.Message{msg("m", "")}), entity.ConditionServerBusy)
		time.Sleep(2 * time.Second)
		send(t, b, "changes", msg("m", ""))
		_, err := b.OpenReceiver(t.Context(), sub, ReceiverOptions{})
		wantCondition(t, err, entity.ConditionServerBusy)
		must(t, b.Throttle(sub, 0))
		openPlain(t, b, sub)
		wantCondition(t, b.Throttle("none", time.Second), entity.ConditionNotFound)
	})
}

// A request for a session that is held is one as well.
func TestFaults_AThrottledEntityAnswersNoRequestForAHeldSession(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		sendIDs(t, b, "changes", "a", "a0")
		r := openNext(t, b, sub)
		d := receive(t, r, 1)[0]
		must(t, b.Throttle(sub, time.Second))
		_, err := r.RenewSessionLock()
		wantCondition(t, err, entity.ConditionServerBusy)
		_, err = r.SessionState()
		wantCondition(t, err, entity.ConditionServerBusy)
		wantCondition(t, r.SetSessionState([]byte("x")), entity.ConditionServerBusy)
		time.Sleep(time.Second)
		_, err = r.RenewSessionLock()
		must(t, err)
		must(t, r.Settle(d.LockToken, entity.Complete{}))
	})
}

func TestFaults_DelayedEntitiesAreSlow(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeTopic(t, b, entity.TopicProperties{}, entity.SubscriptionProperties{})
		must(t, b.Delay("changes", time.Second))
		must(t, b.Delay(sub, 2*time.Second))
		begin := time.Now()
		lasted := func(want time.Duration) {
			t.Helper()
			if got := time.Since(begin); got != want {
				t.Errorf("time taken: got %v, want %v", got, want)
			}
			begin = time.Now()
		}
		send(t, b, "changes", msg("m", ""))
		lasted(time.Second)
		r := openPlain(t, b, sub)
		ds, err := r.Receive(t.Context(), 1)
		must(t, err)
		lasted(2 * time.Second)
		must(t, r.Settle(ds[0].LockToken, entity.Complete{}))
		lasted(2 * time.Second)
		must(t, b.Delay("changes", 0))
		must(t, b.Delay(sub, 0, Settling))
		send(t, b, "changes", msg("m", ""))
		lasted(0)
		ds, err = r.Receive(t.Context(), 1)
		must(t, err)
		lasted(2 * time.Second)
		must(t, r.Settle(ds[0].LockToken, entity.Complete{}))
		lasted(0)
	})
}

func TestFaults_DetachEndsReceiversAndAccepts(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		sendIDs(t, b, "changes", "a", "a0")
		r := openNext(t, b, sub)
		d := receive(t, r, 1)[0]
		waiting := make(chan error)
		go func() {
			_, err := b.OpenReceiver(t.Context(), sub, ReceiverOptions{Session: &SessionFilter{Next: true}})
			waiting <- err
		}()
		synctest.Wait()
		n, err := b.DetachReceivers(sub)
		must(t, err)
		if n != 1 {
			t.Errorf("detached: got %d, want 1", n)
		}
		_, err = r.Receive(t.Context(), 1)
		wantCondition(t, err, entity.ConditionDetachForced)
		wantCondition(t, r.Settle(d.LockToken, entity.Complete{}), entity.ConditionSessionLockLost)
		wantCondition(t, <-waiting, entity.ConditionDetachForced)
		wantIDs(t, receive(t, openNext(t, b, sub), 1), "a0")
	})
}

func TestFaults_LostSessionLocksCountNoDelivery(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		sendIDs(t, b, "changes", "a", "a0")
		sendIDs(t, b, "changes", "b", "b0")
		lose := func(want int, sessions ...string) {
			t.Helper()
			n, err := b.LoseSessionLocks(sub, sessions...)
			must(t, err)
			if n != want {
				t.Errorf("lost: got %d, want %d", n, want)
			}
		}
		first, second := openNext(t, b, sub), openNext(t, b, sub)
		receive(t, first, 1)
		lose(1, "a", "none")
		_, err := first.Receive(t.Context(), 1)
		wantCondition(t, err, entity.ConditionSessionLockLost)
		receive(t, second, 1)
		again := openNext(t, b, sub)
		if d := receive(t, again, 1)[0]; d.MessageID != "a0" || d.DeliveryCount != 0 {
			t.Errorf("redelivered: got %s with count %d, want a0 with 0", d.MessageID, d.DeliveryCount)
		}
		lose(2)
		lose(0)
	})
}

func TestFaults_ALostCompletionIsDeliveredAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeSessions(t, b)
		sendIDs(t, b, "changes", "a", "a0", "a1", "a2")
		must(t, b.Redeliver(sub, 1))
		r := openNext(t, b, sub)
		for i, want := range []string{"a0", "a0", "a1", "a2"} {
			d := receive(t, r, 1)[0]
			if d.MessageID != want || (i == 1) != (d.DeliveryCount == 1) {
				t.Errorf("delivery %d: got %s with count %d, want %s", i, d.MessageID, d.DeliveryCount, want)
			}
			must(t, r.Settle(d.LockToken, entity.Complete{}))
		}
		wantNothing(t, r)
	})
}
