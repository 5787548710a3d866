package amqpserver_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/amqpserver"
	"changerelay/services/sandbox/internal/servicebus/broker"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

// fill sends n messages to queue "plain".
func fill(t *testing.T, ns *namespace, n int) {
	t.Helper()
	for i := range n {
		m := &entity.Message{MessageID: fmt.Sprint(i), Payload: text(fmt.Sprint(i))}
		must(t, ns.broker.Send(t.Context(), "plain", []*entity.Message{m}))
	}
}

func TestLink_ATransferIsAcceptedWithItsDeliveryID(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := openWire(t, ns)
	w.attachSender()
	w.transfer(amqp.Transfer{DeliveryID: amqp.Some(41), DeliveryTag: []byte{1}}, text("x"))
	got := expect[*amqp.Disposition](w)
	equal(t, "first", got.First, 41)
	equal(t, "settled", got.Settled, true)
	equal(t, "state", got.State, amqp.State(amqp.Accepted{}))
	equal(t, "messages", counts(t, ns).Active, 1)
}

func TestLink_AnAbortedTransferIsForgotten(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := openWire(t, ns)
	w.attachSender()
	w.part(amqp.Transfer{DeliveryID: amqp.Some(0), DeliveryTag: []byte{1}}, text("half"))
	w.transfer(amqp.Transfer{Aborted: true}, nil)
	w.transfer(amqp.Transfer{DeliveryID: amqp.Some(1), DeliveryTag: []byte{2}}, text("whole"))
	equal(t, "first", expect[*amqp.Disposition](w).First, 1)
	equal(t, "messages", counts(t, ns).Active, 1)
}

func TestLink_ADeliveryThatBeginsWithinAnotherEndsTheLink(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := openWire(t, ns)
	w.attachSender()
	w.part(amqp.Transfer{DeliveryID: amqp.Some(0), DeliveryTag: []byte{1}}, text("half"))
	w.transfer(amqp.Transfer{DeliveryID: amqp.Some(1), DeliveryTag: []byte{2}}, text("whole"))
	equal(t, "condition", expect[*amqp.Detach](w).Error.Condition, amqp.ConditionNotAllowed)
	equal(t, "messages", counts(t, ns).Active, 0)
}

func TestLink_ASettledTransferGetsNoDisposition(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := openWire(t, ns)
	w.attachSender()
	w.transfer(amqp.Transfer{DeliveryID: amqp.Some(0), Settled: true}, text("a"))
	w.transfer(amqp.Transfer{DeliveryID: amqp.Some(1)}, text("b"))
	equal(t, "first", expect[*amqp.Disposition](w).First, 1)
	equal(t, "messages", counts(t, ns).Active, 2)
}

func TestLink_SettledTransfersAreKeptWhenTheLinkClosesRightBehindThem(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := openWire(t, ns)
	w.attachSender()
	for i := range uint32(50) {
		w.transfer(amqp.Transfer{DeliveryID: amqp.Some(i), Settled: true}, text("a"))
	}
	w.send(0, &amqp.Detach{Closed: true})
	expect[*amqp.Detach](w)
	equal(t, "messages", counts(t, ns).Active, 50)
}

func TestLink_ABadMessageIsRejected(t *testing.T) {
	t.Parallel()
	w := openWire(t, startNamespace(t))
	w.attachSender()
	w.transfer(amqp.Transfer{DeliveryID: amqp.Some(0)}, []byte("this is no message"))
	rejected, ok := expect[*amqp.Disposition](w).State.(amqp.Rejected)
	if !ok || rejected.Error == nil || rejected.Error.Condition != amqp.ConditionDecodeError {
		t.Errorf("got %#v, want a rejection with %s", rejected, amqp.ConditionDecodeError)
	}
}

func TestLink_LinkViolationsDetachTheLinkOnly(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do   func(*wire)
		want string
	}{
		"a message above the limit": {
			func(w *wire) {
				for range 6 {
					w.part(amqp.Transfer{DeliveryID: amqp.Some(0)}, make([]byte, 60_000))
				}
			}, amqp.ConditionMessageSizeExceeded,
		},
		"a delivery without an id": {
			func(w *wire) { w.transfer(amqp.Transfer{}, text("x")) }, amqp.ConditionInvalidField,
		},
		"a transfer to a link for receiving": {
			func(w *wire) {
				w.attachReceiver(amqp.ReceiverFirst)
				w.transfer(amqp.Transfer{Handle: 1, DeliveryID: amqp.Some(0)}, text("x"))
			}, amqp.ConditionNotAllowed,
		},
	}
	ns := startNamespace(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openWire(t, ns)
			w.attachSender()
			test.do(w)
			got := expect[*amqp.Detach](w)
			if got.Error == nil || got.Error.Condition != test.want {
				t.Fatalf("got detach with %v, want %s", got.Error, test.want)
			}
			w.send(0, &amqp.Detach{Handle: got.Handle, Closed: true})
			w.send(0, &amqp.End{})
			expect[*amqp.End](w)
		})
	}
}

func TestLink_CreditIsGivenAgain(t *testing.T) {
	t.Parallel()
	w := openWire(t, startNamespace(t))
	w.attachSender()
	credit := uint32(1000)
	for sent := range uint32(5000) {
		for credit == 0 {
			if f := await[*amqp.Flow](w); f.Handle.Set {
				credit = f.DeliveryCount.Value + f.LinkCredit.Value - sent
			}
		}
		w.transfer(amqp.Transfer{DeliveryID: amqp.Some(sent), Settled: true}, text("x"))
		credit--
	}
}

func TestLink_CreditIsHeldByWhatTheBrokerHasNotTaken(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := openWire(t, ns)
	w.attachSender()
	must(t, ns.broker.Delay("plain", 100*time.Microsecond))
	const n = 2000
	allowed, settled := uint32(1000), uint32(0)
	for sent := uint32(0); settled < n; {
		for ; sent < min(allowed, n); sent++ {
			w.transfer(amqp.Transfer{DeliveryID: amqp.Some(sent)}, text("x"))
		}
		switch p, _ := w.next(); p := p.(type) {
		case *amqp.Disposition:
			settled++
		case *amqp.Flow:
			if p.Handle.Set {
				allowed = p.DeliveryCount.Value + p.LinkCredit.Value
			}
		}
		// The flow may come just before the disposition that freed its credit.
		if allowed > settled+1000+1 {
			t.Fatalf("got credit up to delivery %d with %d settled, want at most 1000 ahead", allowed, settled)
		}
	}
}

func TestLink_ASenderThatIgnoresItsCreditIsDetached(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := openWire(t, ns)
	w.attachSender()
	must(t, ns.broker.Delay("plain", time.Hour))
	for i := range uint32(1001) {
		w.transfer(amqp.Transfer{DeliveryID: amqp.Some(i)}, text("x"))
	}
	equal(t, "condition", await[*amqp.Detach](w).Error.Condition, amqp.ConditionTransferLimitExceeded)
}

func TestLink_NothingIsAcceptedBeforeTheBrokerHasIt(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := openWire(t, ns)
	w.attachSender()
	must(t, ns.broker.Delay("plain", 50*time.Millisecond))
	for i := range uint32(3) {
		w.transfer(amqp.Transfer{DeliveryID: amqp.Some(i)}, text("x"))
	}
	for i := range uint32(3) {
		equal(t, "first", await[*amqp.Disposition](w).First, i)
		if got := counts(t, ns).Active; got < int64(i)+1 {
			t.Errorf("got %d messages after acceptance %d, want at least %d", got, i, i+1)
		}
	}
}

func TestLink_TransfersOfALinkKeepTheirOrder(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := openWire(t, ns)
	w.attachSender()
	const n = 500
	for i := range uint32(n) {
		w.transfer(amqp.Transfer{DeliveryID: amqp.Some(i)}, text(fmt.Sprint(i)))
	}
	for range n {
		await[*amqp.Disposition](w)
	}
	found, err := ns.broker.Peek("plain", 0, n, nil)
	must(t, err)
	equal(t, "messages", len(found), n)
	for i, d := range found {
		equal(t, "body", string(amqp.CutProperties(d.Payload)), string(text(fmt.Sprint(i))))
	}
}

func TestLink_DeliveriesStopAtTheCredit(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	fill(t, ns, 5)
	w := openWire(t, ns)
	w.attachReceiver(amqp.ReceiverFirst)
	w.credit(2)
	equal(t, "delivery", expect[*amqp.Transfer](w).DeliveryID.Value, 0)
	equal(t, "delivery", expect[*amqp.Transfer](w).DeliveryID.Value, 1)
	// An echo is answered after whatever was sent before it, so a third transfer would come first.
	w.send(0, &amqp.Flow{NextIncomingID: amqp.Some(2), IncomingWindow: 100, Echo: true})
	expect[*amqp.Flow](w)
}

func TestLink_DeliveriesStopAtTheSessionsWindow(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	fill(t, ns, 3)
	w := openWire(t, ns)
	w.attachReceiver(amqp.ReceiverFirst)
	w.send(0, &amqp.Flow{NextIncomingID: amqp.Some(0), IncomingWindow: 1, Handle: amqp.Some(1), DeliveryCount: amqp.Some(0), LinkCredit: amqp.Some(3)})
	expect[*amqp.Transfer](w)
	w.send(0, &amqp.Flow{NextIncomingID: amqp.Some(1), IncomingWindow: 0, Echo: true})
	expect[*amqp.Flow](w)
	w.send(0, &amqp.Flow{NextIncomingID: amqp.Some(1), IncomingWindow: 10})
	expect[*amqp.Transfer](w)
	expect[*amqp.Transfer](w)
}

func TestLink_DrainUsesUpTheCredit(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	fill(t, ns, 1)
	w := openWire(t, ns)
	w.attachReceiver(amqp.ReceiverFirst)
	w.send(0, &amqp.Flow{
		NextIncomingID: amqp.Some(0), IncomingWindow: 100, Handle: amqp.Some(1),
		DeliveryCount: amqp.Some(0), LinkCredit: amqp.Some(10), Drain: true,
	})
	expect[*amqp.Transfer](w)
	got := expect[*amqp.Flow](w)
	equal(t, "drain", got.Drain, true)
	equal(t, "credit", got.LinkCredit.Value, 0)
	equal(t, "delivery count", got.DeliveryCount.Value, 10)
}

func TestLink_DrainEndsAWaitThatIsUnderWay(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := openWire(t, ns)
	fill(t, ns, 1)
	w.attachReceiver(amqp.ReceiverFirst)
	w.credit(5)
	expect[*amqp.Transfer](w)
	w.send(0, &amqp.Flow{NextIncomingID: amqp.Some(1), IncomingWindow: 100, Echo: true})
	expect[*amqp.Flow](w)
	w.send(0, &amqp.Flow{
		NextIncomingID: amqp.Some(1), IncomingWindow: 100, Handle: amqp.Some(1),
		DeliveryCount: amqp.Some(1), LinkCredit: amqp.Some(4), Drain: true,
	})
	equal(t, "delivery count", expect[*amqp.Flow](w).DeliveryCount.Value, 5)
}

func TestLink_TheOfficialLibraryDrainsAndGoesOn(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	conn, err := goamqp.Dial(t.Context(), "amqp://"+ns.addr, nil)
	must(t, err)
	session, err := conn.NewSession(t.Context(), nil)
	must(t, err)
	r, err := session.NewReceiver(t.Context(), "plain", &goamqp.ReceiverOptions{Credit: -1})
	must(t, err)
	must(t, r.IssueCredit(5))
	must(t, r.DrainCredit(t.Context(), nil))
	must(t, r.IssueCredit(1))
	fill(t, ns, 1)
	m, err := r.Receive(t.Context(), nil)
	must(t, err)
	must(t, r.AcceptMessage(t.Context(), m))
	must(t, conn.Close())
}

func TestLink_DrainWaitsForTheWindow(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	fill(t, ns, 2)
	w := openWire(t, ns)
	w.attachReceiver(amqp.ReceiverFirst)
	w.send(0, &amqp.Flow{
		NextIncomingID: amqp.Some(0), IncomingWindow: 1, Handle: amqp.Some(1),
		DeliveryCount: amqp.Some(0), LinkCredit: amqp.Some(2), Drain: true,
	})
	expect[*amqp.Transfer](w)
	w.send(0, &amqp.Flow{NextIncomingID: amqp.Some(1), IncomingWindow: 10})
	expect[*amqp.Transfer](w)
	got := expect[*amqp.Flow](w)
	equal(t, "drain", got.Drain, true)
	equal(t, "delivery count", got.DeliveryCount.Value, 2)
}

func TestLink_MessagesThatWaitedForTheWindowAreFreeWhenTheLinkCloses(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	fill(t, ns, 3)
	w := openWire(t, ns)
	w.attachReceiver(amqp.ReceiverFirst)
	w.send(0, &amqp.Flow{NextIncomingID: amqp.Some(0), IncomingWindow: 1, Handle: amqp.Some(1), DeliveryCount: amqp.Some(0), LinkCredit: amqp.Some(3)})
	expect[*amqp.Transfer](w)
	w.send(0, &amqp.Detach{Handle: 1, Closed: true})
	expect[*amqp.Detach](w)
	other, err := ns.broker.OpenReceiver(t.Context(), "plain", broker.ReceiverOptions{})
	must(t, err)
	defer other.Close()
	for got := 0; got < 2; {
		some, err := other.Receive(t.Context(), 2)
		must(t, err)
		got += len(some)
	}
}

func TestLink_CreditWithdrawnBeforeTheWindowOpensSendsNothingMore(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	fill(t, ns, 3)
	w := openWire(t, ns)
	w.attachReceiver(amqp.ReceiverFirst)
	flow := func(window, credit uint32) {
		w.send(0, &amqp.Flow{
			NextIncomingID: amqp.Some(1), IncomingWindow: window, Handle: amqp.Some(1),
			DeliveryCount: amqp.Some(1), LinkCredit: amqp.Some(credit), Echo: true,
		})
	}
	w.send(0, &amqp.Flow{NextIncomingID: amqp.Some(0), IncomingWindow: 1, Handle: amqp.Some(1), DeliveryCount: amqp.Some(0), LinkCredit: amqp.Some(3)})
	expect[*amqp.Transfer](w)
	flow(0, 2)
	expect[*amqp.Flow](w)
	flow(10, 0)
	equal(t, "credit", expect[*amqp.Flow](w).LinkCredit.Value, 0)
	// The two that had waited for the window are free for others.
	other, err := ns.broker.OpenReceiver(t.Context(), "plain", broker.ReceiverOptions{})
	must(t, err)
	defer other.Close()
	for got := 0; got < 2; {
		some, err := other.Receive(t.Context(), 2)
		must(t, err)
		got += len(some)
	}
}

func TestLink_WithdrawnCreditSendsNothingMore(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := openWire(t, ns)
	w.attachReceiver(amqp.ReceiverFirst)
	w.credit(5)
	w.credit(0)
	w.send(0, &amqp.Flow{NextIncomingID: amqp.Some(0), IncomingWindow: 100, Handle: amqp.Some(1), DeliveryCount: amqp.Some(0), LinkCredit: amqp.Some(0), Echo: true})
	equal(t, "credit", expect[*amqp.Flow](w).LinkCredit.Value, 0)
	fill(t, ns, 1)
	w.send(0, &amqp.Flow{NextIncomingID: amqp.Some(0), IncomingWindow: 100, Echo: true})
	expect[*amqp.Flow](w)
	// Whatever the wait that was under way had taken is handed back, and comes uncounted with new credit.
	w.credit(1)
	p, payload := w.next()
	equal(t, "delivery", p.(*amqp.Transfer).DeliveryID.Value, 0)
	m, err := amqp.ReadMessage(payload)
	must(t, err)
	equal(t, "delivery count", m.Header.DeliveryCount, 0)
}

func TestLink_ARangeOfDeliveriesIsSettledAtOnce(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	fill(t, ns, 5)
	w := openWire(t, ns)
	w.attachReceiver(amqp.ReceiverSecond)
	w.credit(5)
	for range 5 {
		expect[*amqp.Transfer](w)
	}
	w.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, First: 1, Last: amqp.Some(3), State: amqp.Accepted{}})
	for id := uint32(1); id <= 3; id++ {
		got := expect[*amqp.Disposition](w)
		equal(t, "first", got.First, id)
		equal(t, "settled", got.Settled, true)
		equal(t, "role", got.Role, amqp.RoleSender)
	}
	equal(t, "messages left", counts(t, ns).Active, 2)
}

func TestLink_ARangeFarLargerThanWhatIsUnsettledIsCheap(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	fill(t, ns, 2)
	w := openWire(t, ns)
	w.attachReceiver(amqp.ReceiverSecond)
	w.credit(2)
	expect[*amqp.Transfer](w)
	expect[*amqp.Transfer](w)
	w.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, First: 0, Last: amqp.Some(1<<31 - 1), State: amqp.Accepted{}})
	equal(t, "first", expect[*amqp.Disposition](w).First, 0)
	equal(t, "second", expect[*amqp.Disposition](w).First, 1)
}

func TestLink_AReceiverThatSettlesFirstGetsNoAnswer(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	const n = 90
	fill(t, ns, n)
	w := openWire(t, ns)
	w.attachReceiver(amqp.ReceiverFirst)
	w.credit(n)
	for range n {
		expect[*amqp.Transfer](w)
	}
	for id := range uint32(n) {
		w.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, First: id, Settled: true, State: amqp.Accepted{}})
	}
	// The detach is answered when all settlements have been carried out.
	w.send(0, &amqp.Detach{Handle: 1, Closed: true})
	expect[*amqp.Detach](w)
	equal(t, "counts", counts(t, ns), entity.Counts{})
}

// sessionAttach asks for session "a" of queue "sessions" on handle 1.
func sessionAttach() *amqp.Attach {
	return &amqp.Attach{
		Name: "in", Handle: 1, Role: amqp.RoleReceiver, ReceiverMode: amqp.ReceiverSecond, Target: &amqp.Target{},
		Source: &amqp.Source{Address: "sessions", Filter: amqp.Map{{Key: amqp.Symbol("com.microsoft:session-filter"), Value: "a"}}},
	}
}

// wantFree checks that nobody holds session "a".
func wantFree(t *testing.T, ns *namespace) {
	t.Helper()
	r, err := ns.broker.OpenReceiver(t.Context(), "sessions", broker.ReceiverOptions{Session: &broker.SessionFilter{ID: "a"}})
	must(t, err)
	r.Close()
}

func TestLink_ASessionIsFreeOnceTheDetachIsAnswered(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := openWire(t, ns)
	for range 300 {
		w.send(0, sessionAttach())
		expect[*amqp.Attach](w)
		w.send(0, &amqp.Detach{Handle: 1, Closed: true})
		expect[*amqp.Detach](w)
		wantFree(t, ns)
	}
}

func TestLink_AnAttachThatIsTakenBackHoldsNothing(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := openWire(t, ns)
	both := amqp.AppendFrame(nil, amqp.FrameAMQP, 0, sessionAttach())
	both = amqp.AppendFrame(both, amqp.FrameAMQP, 0, &amqp.Detach{Handle: 1, Closed: true})
	for range 300 {
		w.write(both)
		expect[*amqp.Attach](w)
		expect[*amqp.Detach](w)
		wantFree(t, ns)
	}
}

func TestLink_AnAnswerDoesNotWaitForTheRestOfTheNextFrame(t *testing.T) {
	t.Parallel()
	w := openWire(t, startNamespace(t))
	b := amqp.AppendFrame(nil, amqp.FrameAMQP, 0, &amqp.End{})
	w.write(append(b, b[:9]...))
	expect[*amqp.End](w)
}

func TestLink_ATransactionalSettlementIsRefused(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	fill(t, ns, 1)
	w := openWire(t, ns)
	w.attachReceiver(amqp.ReceiverSecond)
	w.credit(1)
	expect[*amqp.Transfer](w)
	w.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, First: 0, State: amqp.Transactional{}})
	rejected, ok := expect[*amqp.Disposition](w).State.(amqp.Rejected)
	if !ok || rejected.Error.Condition != amqp.ConditionNotImplemented {
		t.Errorf("got %#v, want a rejection with %s", rejected, amqp.ConditionNotImplemented)
	}
}

func TestLink_SmallFramesCarryLargeMessagesBothWays(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t, func(c *amqpserver.Config) { c.MaxFrameBytes = 512 })
	conn, err := goamqp.Dial(t.Context(), "amqp://"+ns.addr, &goamqp.ConnOptions{MaxFrameSize: 600})
	must(t, err)
	session, err := conn.NewSession(t.Context(), nil)
	must(t, err)
	s, err := session.NewSender(t.Context(), "plain", nil)
	must(t, err)
	body := bytes.Repeat([]byte("0123456789"), 5000)
	must(t, s.Send(t.Context(), goamqp.NewMessage(body), nil))
	r, err := session.NewReceiver(t.Context(), "plain", nil)
	must(t, err)
	m, err := r.Receive(t.Context(), nil)
	must(t, err)
	equal(t, "body", string(m.GetData()), string(body))
	must(t, r.AcceptMessage(t.Context(), m))
	must(t, conn.Close())
}

func TestLink_AnAddressMayBeAWholeURI(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	fill(t, ns, 1)
	w := openWire(t, ns)
	w.send(0, &amqp.Attach{Name: "in", Handle: 1, Role: amqp.RoleReceiver, Source: &amqp.Source{Address: "amqp://host:5672/PLAIN/"}, Target: &amqp.Target{}})
	expect[*amqp.Attach](w)
	w.credit(1)
	expect[*amqp.Transfer](w)
}

// A handle may be taken again as soon as both sides have detached, whatever the
// server still has to do for the link that had it.
func TestHandle_IsFreeOnceBothSidesHaveDetached(t *testing.T) {
	t.Parallel()
	w := openWire(t, startNamespace(t))
	attach := &amqp.Attach{
		Name: "in", Handle: 1, Role: amqp.RoleReceiver, Target: &amqp.Target{},
		Source: &amqp.Source{Address: "sessions", Filter: amqp.Map{{
			Key: amqp.Symbol("com.microsoft:session-filter"), Value: amqp.Described{Descriptor: uint64(0x137000000c)},
		}}},
		Properties: amqp.Map{{Key: amqp.Symbol("com.microsoft:timeout"), Value: uint32(0)}},
	}
	w.send(0, attach)
	for range 2000 {
		expect[*amqp.Attach](w)
		expect[*amqp.Detach](w)
		again := amqp.AppendFrame(nil, amqp.FrameAMQP, 0, &amqp.Detach{Handle: 1, Closed: true})
		w.write(amqp.AppendFrame(again, amqp.FrameAMQP, 0, attach))
	}
}
