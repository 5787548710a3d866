package amqpserver_test

import (
	"testing"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/amqpserver"
)

func TestProtocol_EachSASLMechanismIsLetIn(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	for _, mechanism := range []string{"ANONYMOUS", "PLAIN", "MSSBCBS", "EXTERNAL"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			w := dialWire(t, ns)
			w.header(amqp.HeaderSASL)
			expect[*amqp.SASLMechanisms](w)
			w.write(amqp.AppendFrame(nil, amqp.FrameSASL, 0, &amqp.SASLInit{Mechanism: mechanism, InitialResponse: []byte("\x00a\x00b")}))
			equal(t, "outcome", expect[*amqp.SASLOutcome](w).Code, amqp.SASLOK)
		})
	}
}

func TestProtocol_AnUnknownSASLMechanismIsRefused(t *testing.T) {
	t.Parallel()
	w := dialWire(t, startNamespace(t))
	w.header(amqp.HeaderSASL)
	expect[*amqp.SASLMechanisms](w)
	w.write(amqp.AppendFrame(nil, amqp.FrameSASL, 0, &amqp.SASLInit{Mechanism: "CRAM-MD5"}))
	equal(t, "outcome", expect[*amqp.SASLOutcome](w).Code, amqp.SASLAuth)
	w.closed()
}

func TestProtocol_AnotherProtocolIsAnsweredWithTheRightHeaderAndClosed(t *testing.T) {
	t.Parallel()
	w := dialWire(t, startNamespace(t))
	w.write([]byte("GET / HTTP/1.1\r\n\r\n"))
	var got amqp.ProtocolHeader
	_, err := w.nc.Read(got[:])
	must(t, err)
	equal(t, "header", got, amqp.HeaderSASL)
	w.closed()
}

func TestProtocol_ProtocolViolationsCloseTheConnection(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do   func(*wire)
		want string
	}{
		"a frame larger than was agreed": {
			func(w *wire) { w.write([]byte{0x7f, 0xff, 0xff, 0xff, 2, 0, 0, 0}) }, amqp.ConditionFramingError,
		},
		"a data offset within the header": {
			func(w *wire) { w.write([]byte{0, 0, 0, 16, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}) }, amqp.ConditionFramingError,
		},
		"a frame of another type": {
			func(w *wire) { w.write([]byte{0, 0, 0, 9, 2, 7, 0, 0, 0x40}) }, amqp.ConditionFramingError,
		},
		"a body that is no performative": {
			func(w *wire) { w.write([]byte{0, 0, 0, 12, 2, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}) }, amqp.ConditionDecodeError,
		},
		"a channel that has no session": {
			func(w *wire) { w.send(7, &amqp.Flow{}) }, amqp.ConditionNotAllowed,
		},
		"a session that is begun twice": {
			func(w *wire) { w.send(0, &amqp.Begin{}) }, amqp.ConditionNotAllowed,
		},
		"a channel above the maximum": {
			func(w *wire) { w.send(101, &amqp.Begin{}) }, amqp.ConditionFramingError,
		},
		"a second open": {
			func(w *wire) { w.send(0, &amqp.Open{}) }, amqp.ConditionNotAllowed,
		},
	}
	ns := startNamespace(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openWire(t, ns)
			test.do(w)
			got := expect[*amqp.Close](w)
			if got.Error == nil || got.Error.Condition != test.want {
				t.Errorf("got close with %v, want %s", got.Error, test.want)
			}
		})
	}
}

func TestProtocol_ASessionMayBeEndedTwice(t *testing.T) {
	t.Parallel()
	w := openWire(t, startNamespace(t))
	w.send(0, &amqp.End{})
	expect[*amqp.End](w)
	w.send(0, &amqp.Detach{Handle: 0})
	w.send(0, &amqp.End{})
	w.send(0, &amqp.Begin{})
	expect[*amqp.Begin](w)
}

func TestProtocol_SessionViolationsEndTheSessionOnly(t *testing.T) {
	t.Parallel()
	attach := &amqp.Attach{Name: "x", Handle: 3, Role: amqp.RoleReceiver, Source: &amqp.Source{Address: "$cbs"}, Target: &amqp.Target{}}
	tests := map[string]struct {
		do   func(*wire)
		want string
	}{
		"a flow for a handle that is not attached": {
			func(w *wire) { w.send(0, &amqp.Flow{Handle: amqp.Some(9)}) }, amqp.ConditionUnattachedHandle,
		},
		"a transfer for a handle that is not attached": {
			func(w *wire) { w.transfer(amqp.Transfer{Handle: 9, DeliveryID: amqp.Some(0)}, nil) }, amqp.ConditionUnattachedHandle,
		},
		"a detach for a handle that is not attached": {
			func(w *wire) { w.send(0, &amqp.Detach{Handle: 9}) }, amqp.ConditionUnattachedHandle,
		},
		"a handle that is attached twice": {
			func(w *wire) {
				w.send(0, attach)
				expect[*amqp.Attach](w)
				w.send(0, attach)
			}, amqp.ConditionHandleInUse,
		},
		"a handle above the maximum": {
			func(w *wire) { w.send(0, &amqp.Attach{Name: "x", Handle: 1 << 20}) }, amqp.ConditionNotAllowed,
		},
	}
	ns := startNamespace(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openWire(t, ns)
			test.do(w)
			got := expect[*amqp.End](w)
			if got.Error == nil || got.Error.Condition != test.want {
				t.Fatalf("got end with %v, want %s", got.Error, test.want)
			}
			// What was under way is discarded, and after its own end the peer may use the channel again.
			w.send(0, &amqp.Flow{Handle: amqp.Some(77)})
			w.send(0, &amqp.End{})
			w.send(0, &amqp.Begin{})
			expect[*amqp.Begin](w)
		})
	}
}

func TestProtocol_TooManyLinksEndTheSession(t *testing.T) {
	t.Parallel()
	w := openWire(t, startNamespace(t, func(c *amqpserver.Config) { c.MaxConnectionLinks = 2 }))
	for i := range uint32(3) {
		w.send(0, &amqp.Attach{Name: "x", Handle: i, Role: amqp.RoleReceiver, Source: &amqp.Source{Address: "$cbs"}, Target: &amqp.Target{}})
	}
	got := await[*amqp.End](w)
	equal(t, "condition", got.Error.Condition, amqp.ConditionResourceLimitExceeded)
}

func TestProtocol_MoreConnectionsThanAllowedAreRefused(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t, func(c *amqpserver.Config) { c.MaxConnections = 1 })
	first := openWire(t, ns)
	dialWire(t, ns).closed()
	first.send(0, &amqp.Close{})
	expect[*amqp.Close](first)
	first.closed()
	eventually(t, "room for another connection", func() bool { return ns.server.Stats().Connections == 0 })
	openWire(t, ns)
}

func TestProtocol_TransactionsAndDynamicNodesAreRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]*amqp.Attach{
		"a coordinator":    {Name: "x", Role: amqp.RoleSender, Target: &amqp.Target{Coordinator: true}},
		"a dynamic target": {Name: "x", Role: amqp.RoleSender, Target: &amqp.Target{Dynamic: true}},
		"no target":        {Name: "x", Role: amqp.RoleSender},
		"a dynamic source": {Name: "x", Role: amqp.RoleReceiver, Source: &amqp.Source{Dynamic: true}},
		"no source":        {Name: "x", Role: amqp.RoleReceiver},
	}
	ns := startNamespace(t)
	for name, attach := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openWire(t, ns)
			w.send(0, attach)
			expect[*amqp.Attach](w)
			got := expect[*amqp.Detach](w)
			equal(t, "condition", got.Error.Condition, amqp.ConditionNotImplemented)
			w.send(0, &amqp.Detach{Closed: true})
			w.send(0, &amqp.End{})
			expect[*amqp.End](w)
		})
	}
}
