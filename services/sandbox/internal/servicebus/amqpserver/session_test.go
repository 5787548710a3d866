package amqpserver_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	goamqp "github.com/Azure/go-amqp"

	"changerelay/services/sandbox/internal/servicebus/amqpserver"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

func contextWithTimeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}

func sendTo(t *testing.T, s *azservicebus.Sender, session string, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		must(t, s.SendMessage(t.Context(), &azservicebus.Message{Body: []byte(body), SessionID: &session}, nil))
	}
}

func TestSession_SessionMessagesAreReceivedInOrderAndCompleted(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c := ns.client(t)
	sendTo(t, ns.sender(t, c, "changes"), "a", "one", "two", "three")
	before := time.Now()
	r, err := c.AcceptNextSessionForSubscription(t.Context(), "changes", "projector", nil)
	must(t, err)
	equal(t, "session", r.SessionID(), "a")
	if until := r.LockedUntil(); until.Before(before.Add(29*time.Second)) || until.After(time.Now().Add(31*time.Second)) {
		t.Errorf("got the lock until %v, want 30 s from %v", until, before)
	}
	got := receive(t, r, 3)
	for i, want := range []string{"one", "two", "three"} {
		equal(t, "body", string(got[i].Body), want)
		must(t, r.CompleteMessage(t.Context(), got[i], nil))
	}
	must(t, r.Close(t.Context()))
}

func TestSession_ANamedSessionIsHadOnceAtATime(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c := ns.client(t)
	r, err := c.AcceptSessionForQueue(t.Context(), "sessions", "a", nil)
	must(t, err)
	_, err = ns.client(t).AcceptSessionForQueue(t.Context(), "sessions", "a", nil)
	wantCondition(t, err, entity.ConditionSessionCannotBeLocked)
	must(t, r.Close(t.Context()))
	again, err := c.AcceptSessionForQueue(t.Context(), "sessions", "a", nil)
	must(t, err)
	must(t, again.Close(t.Context()))
}

func TestSession_WaitingForASessionEndsAfterTheClientsTimeout(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	conn, err := goamqp.Dial(t.Context(), "amqp://"+ns.addr, nil)
	must(t, err)
	session, err := conn.NewSession(t.Context(), nil)
	must(t, err)
	_, err = session.NewReceiver(t.Context(), "sessions", &goamqp.ReceiverOptions{
		Properties: map[string]any{"com.microsoft:timeout": uint32(20)},
		Filters:    []goamqp.LinkFilter{goamqp.NewLinkFilter("com.microsoft:session-filter", 0x137000000c, nil)},
	})
	wantCondition(t, err, entity.ConditionTimeout)
	must(t, conn.Close())
}

func TestSession_WaitingForASessionEndsAfterTheServersTimeout(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t, func(c *amqpserver.Config) { c.AcceptTimeout = 10 * time.Millisecond })
	_, err := ns.client(t).AcceptNextSessionForQueue(t.Context(), "sessions", nil)
	wantCode(t, err, azservicebus.CodeTimeout)
}

func TestSession_AWaitingAcceptGetsTheSessionThatArrives(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c := ns.client(t)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		r, err := c.AcceptNextSessionForQueue(t.Context(), "sessions", nil)
		if err != nil || r.SessionID() != "late" {
			t.Errorf("got receiver %v, error %v, want session late", r, err)
		}
	})
	eventually(t, "a waiting accept", func() bool { return waiting(ns, "sessions") == 1 })
	sendTo(t, ns.sender(t, ns.client(t), "sessions"), "late", "x")
}

// waiting counts the accepts that wait for a session of the entity.
func waiting(ns *namespace, path string) int {
	for _, e := range ns.broker.Snapshot().Entities {
		if e.Path == path {
			return e.Waiting
		}
	}
	return 0
}

func TestSession_ACancelledAcceptLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c := ns.client(t)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := c.AcceptNextSessionForQueue(ctx, "sessions", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v, want a cancellation", err)
		}
	})
	eventually(t, "a waiting accept", func() bool { return waiting(ns, "sessions") == 1 })
	cancel()
	wg.Wait()
	eventually(t, "the end of the wait", func() bool { return waiting(ns, "sessions") == 0 })
	sendTo(t, ns.sender(t, c, "sessions"), "a", "x")
	r, err := c.AcceptNextSessionForQueue(t.Context(), "sessions", nil)
	must(t, err)
	equal(t, "session", r.SessionID(), "a")
}

func TestSession_ClosingHandsTheSessionAndItsMessagesBackAsTheyWere(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c := ns.client(t)
	sendTo(t, ns.sender(t, c, "sessions"), "a", "one", "two")
	r, err := c.AcceptSessionForQueue(t.Context(), "sessions", "a", nil)
	must(t, err)
	receive(t, r, 2)
	must(t, r.Close(t.Context()))
	again, err := c.AcceptSessionForQueue(t.Context(), "sessions", "a", nil)
	must(t, err)
	for i, m := range receive(t, again, 2) {
		equal(t, "body", string(m.Body), []string{"one", "two"}[i])
		equal(t, "delivery count", m.DeliveryCount, 1)
	}
}

func TestSession_ALostConnectionHandsTheSessionBack(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c := ns.client(t)
	sendTo(t, ns.sender(t, c, "sessions"), "a", "one")
	r, err := c.AcceptSessionForQueue(t.Context(), "sessions", "a", nil)
	must(t, err)
	receive(t, r, 1)
	ns.server.Cut()
	eventually(t, "the end of the connection", func() bool { return ns.server.Stats().Connections == 0 })
	again, err := ns.client(t).AcceptNextSessionForQueue(t.Context(), "sessions", nil)
	must(t, err)
	equal(t, "delivery count", receive(t, again, 1)[0].DeliveryCount, 1)
}

func TestSession_SessionStateIsKept(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	r, err := ns.client(t).AcceptSessionForQueue(t.Context(), "sessions", "a", nil)
	must(t, err)
	state, err := r.GetSessionState(t.Context(), nil)
	must(t, err)
	if state != nil {
		t.Errorf("got state %q of a new session, want nil", state)
	}
	must(t, r.SetSessionState(t.Context(), []byte("half way"), nil))
	state, err = r.GetSessionState(t.Context(), nil)
	must(t, err)
	equal(t, "state", string(state), "half way")
	must(t, r.SetSessionState(t.Context(), nil, nil))
	state, err = r.GetSessionState(t.Context(), nil)
	must(t, err)
	equal(t, "length of a cleared state", len(state), 0)
}

func TestSession_RenewingASessionLockMovesItsEnd(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	r, err := ns.client(t).AcceptSessionForQueue(t.Context(), "sessions", "a", nil)
	must(t, err)
	before := r.LockedUntil()
	eventually(t, "a later end of the lock", func() bool {
		must(t, r.RenewSessionLock(t.Context(), nil))
		return r.LockedUntil().After(before)
	})
}

func TestSession_ALostSessionLockIsNoticed(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c := ns.client(t)
	sendTo(t, ns.sender(t, c, "sessions"), "a", "one", "two")
	r, err := c.AcceptSessionForQueue(t.Context(), "sessions", "a", nil)
	must(t, err)
	m := receive(t, r, 1)[0]
	lost, err := ns.broker.LoseSessionLocks("sessions", "a")
	must(t, err)
	equal(t, "locks lost", lost, 1)
	thief, err := ns.client(t).AcceptSessionForQueue(t.Context(), "sessions", "a", nil)
	must(t, err)
	ctx, cancel := contextWithTimeout(t, 5*time.Second)
	defer cancel()
	if err := r.CompleteMessage(ctx, m, nil); err == nil {
		t.Error("got no error for a message of a lost session, want one")
	}
	equal(t, "body", string(receive(t, thief, 1)[0].Body), "one")
}

func TestSession_ADeferredSessionMessageIsForTheHolderOnly(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c := ns.client(t)
	sendTo(t, ns.sender(t, c, "sessions"), "a", "one")
	r, err := c.AcceptSessionForQueue(t.Context(), "sessions", "a", nil)
	must(t, err)
	m := receive(t, r, 1)[0]
	must(t, r.DeferMessage(t.Context(), m, nil))
	got, err := r.ReceiveDeferredMessages(t.Context(), []int64{*m.SequenceNumber}, nil)
	must(t, err)
	must(t, r.CompleteMessage(t.Context(), got[0], nil))
}

func TestSession_SessionsAreListedPageByPage(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c := ns.client(t)
	sender := ns.sender(t, c, "sessions")
	const n = 230
	for i := range n {
		sendTo(t, sender, fmt.Sprintf("s%03d", i), "x")
	}
	seen := map[string]bool{}
	for pager := c.NewListSessionsForQueuePager("sessions", nil); pager.More(); {
		page, err := pager.NextPage(t.Context())
		must(t, err)
		for _, id := range page.Sessions {
			seen[id] = true
		}
	}
	equal(t, "sessions", len(seen), n)
}

func TestSession_AnEntityWithoutSessionsListsNone(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	page, err := ns.client(t).NewListSessionsForQueuePager("sessions", nil).NextPage(t.Context())
	must(t, err)
	equal(t, "sessions", len(page.Sessions), 0)
}

func TestSession_ManySessionsAtOnceStayApart(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	sender := ns.sender(t, ns.client(t), "sessions")
	const sessions, each = 40, 5
	for i := range each {
		for s := range sessions {
			sendTo(t, sender, fmt.Sprint(s), fmt.Sprintf("%d/%d", s, i))
		}
	}
	c := ns.client(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := map[string]int{}
	for range 8 {
		wg.Go(func() {
			for range sessions / 8 {
				id, n, err := consume(t.Context(), c, each)
				if err != nil {
					t.Errorf("consume a session: %v", err)
					return
				}
				mu.Lock()
				done[id] += n
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	equal(t, "sessions consumed", len(done), sessions)
	for id, n := range done {
		equal(t, "messages of session "+id, n, each)
	}
}

// consume takes the next session, checks the order of its messages and completes them.
func consume(ctx context.Context, c *azservicebus.Client, n int) (string, int, error) {
	r, err := c.AcceptNextSessionForQueue(ctx, "sessions", nil)
	if err != nil {
		return "", 0, err
	}
	got := 0
	for got < n {
		// Surplus credit would have the SDK hand messages back out of order.
		messages, err := r.ReceiveMessages(ctx, n-got, &azservicebus.ReceiveMessagesOptions{TimeAfterFirstMessage: time.Minute})
		if err != nil {
			return "", 0, err
		}
		for _, m := range messages {
			if want := fmt.Sprintf("%s/%d", r.SessionID(), got); string(m.Body) != want {
				return "", 0, fmt.Errorf("got %q, want %q", m.Body, want)
			}
			if err := r.CompleteMessage(ctx, m, nil); err != nil {
				return "", 0, err
			}
			got++
		}
	}
	return r.SessionID(), got, r.Close(ctx)
}
