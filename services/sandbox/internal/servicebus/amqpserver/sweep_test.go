package amqpserver_test

import (
	"testing"
	"time"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/amqpserver"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

func TestSweep_APeerWithAnIdleTimeoutGetsHeartbeats(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := dialWire(t, ns)
	w.header(amqp.HeaderAMQP)
	w.send(0, &amqp.Open{ContainerID: "wire", MaxFrameSize: 512, IdleTimeout: 60_000})
	expect[*amqp.Open](w)
	ns.server.SweepAt(time.Now().Add(10 * time.Second))
	ns.server.SweepAt(time.Now().Add(40 * time.Second))
	frame, err := w.frames.Read()
	must(t, err)
	equal(t, "length of the body", len(frame.Body), 0)
	w.send(0, &amqp.Close{})
	// One heartbeat only: ten seconds were too soon.
	expect[*amqp.Close](w)
}

func TestSweep_AHeartbeatFromThePeerIsNothingToAnswer(t *testing.T) {
	t.Parallel()
	w := openWire(t, startNamespace(t))
	w.write(amqp.Heartbeat[:])
	w.send(0, &amqp.End{})
	expect[*amqp.End](w)
}

func TestSweep_ASilentPeerLosesItsConnection(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := openWire(t, ns)
	ns.server.SweepAt(time.Now().Add(3 * time.Minute))
	equal(t, "condition", expect[*amqp.Close](w).Error.Condition, amqp.ConditionConnectionForced)
	w.closed()
}

func TestSweep_AConnectionWithoutLinksIsClosed(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t, func(c *amqpserver.Config) { c.IdleTimeout = time.Hour })
	linked, bare := openWire(t, ns), openWire(t, ns)
	linked.attachSender()
	ns.server.SweepAt(time.Now().Add(6 * time.Minute))
	equal(t, "condition", expect[*amqp.Close](bare).Error.Condition, amqp.ConditionConnectionForced)
	linked.send(0, &amqp.End{})
	expect[*amqp.End](linked)
}

func TestSweep_AnIdleLinkIsDetached(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t, func(c *amqpserver.Config) { c.IdleTimeout = time.Hour })
	w := openWire(t, ns)
	w.attachSender()
	ns.server.SweepAt(time.Now().Add(11 * time.Minute))
	equal(t, "condition", expect[*amqp.Detach](w).Error.Condition, amqp.ConditionDetachForced)
}

func TestSweep_ALinkWhoseSessionLockRanOutIsDetached(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := openWire(t, ns)
	w.send(0, sessionAttach())
	expect[*amqp.Attach](w)
	ns.server.SweepAt(time.Now().Add(20 * time.Second))
	ns.server.SweepAt(time.Now().Add(31 * time.Second))
	equal(t, "condition", expect[*amqp.Detach](w).Error.Condition, entity.ConditionSessionLockLost)
}
