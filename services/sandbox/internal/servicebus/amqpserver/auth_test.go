package amqpserver_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	goamqp "github.com/Azure/go-amqp"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/amqpserver"
	"changerelay/services/sandbox/internal/servicebus/sas"
	"changerelay/services/sandbox/internal/servicebus/sas/sastest"
)

// withKey has tokens verified against key "root", whose secret the tests' connection string has.
func withKey(c *amqpserver.Config) { c.Keys = sas.Keys{"root": {Secret: "secret", Rights: sas.All}} }

func TestAuth_ATokenOfAKnownKeyIsLetIn(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t, withKey)
	c := ns.client(t)
	sendTo(t, ns.sender(t, c, "changes"), "a", "x")
	r, err := c.AcceptNextSessionForSubscription(t.Context(), "changes", "projector", nil)
	must(t, err)
	must(t, r.RenewSessionLock(t.Context(), nil))
}

func TestAuth_AWrongKeyIsUnauthorized(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t, withKey)
	for name, credentials := range map[string]string{
		"wrong secret": "SharedAccessKeyName=root;SharedAccessKey=guess",
		"unknown name": "SharedAccessKeyName=guest;SharedAccessKey=secret",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := azservicebus.NewClientFromConnectionString(
				fmt.Sprintf("Endpoint=sb://%s;%s;UseDevelopmentEmulator=true;", ns.addr, credentials), nil)
			must(t, err)
			t.Cleanup(func() { _ = c.Close(t.Context()) })
			s, err := c.NewSender("plain", nil)
			must(t, err)
			wantCode(t, s.SendMessage(t.Context(), &azservicebus.Message{}, nil), azservicebus.CodeUnauthorizedAccess)
		})
	}
}

func TestAuth_ALinkWithoutATokenIsUnauthorized(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t, withKey)
	attaches := map[string]*amqp.Attach{
		"to send":    {Name: "x", Role: amqp.RoleSender, Target: &amqp.Target{Address: "plain"}},
		"to receive": {Name: "x", Role: amqp.RoleReceiver, Source: &amqp.Source{Address: "plain"}},
		"to manage":  {Name: "x", Role: amqp.RoleSender, Target: &amqp.Target{Address: "plain/$management"}},
	}
	for name, attach := range attaches {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openWire(t, ns)
			w.send(0, attach)
			expect[*amqp.Attach](w)
			equal(t, "condition", expect[*amqp.Detach](w).Error.Condition, amqp.ConditionUnauthorized)
		})
	}
}

func TestAuth_SASLPlainWithAKeyNeedsNoToken(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t, withKey)
	address := "amqp://" + ns.addr
	conn, err := goamqp.Dial(t.Context(), address, &goamqp.ConnOptions{SASLType: goamqp.SASLTypePlain("root", "secret")})
	must(t, err)
	session, err := conn.NewSession(t.Context(), nil)
	must(t, err)
	_, err = session.NewSender(t.Context(), "plain", nil)
	must(t, err)
	must(t, conn.Close())

	if _, err := goamqp.Dial(t.Context(), address, &goamqp.ConnOptions{SASLType: goamqp.SASLTypePlain("root", "guess")}); err == nil {
		t.Error("got no error for a wrong password, want one")
	}
}

func TestAuth_AKeyAllowsWhatItHasTheRightFor(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t, func(c *amqpserver.Config) {
		c.Keys = sas.Keys{"sender": {Secret: "s", Rights: sas.Send}, "listener": {Secret: "l", Rights: sas.Listen}}
	})
	client := func(credentials string) *azservicebus.Client {
		c, err := azservicebus.NewClientFromConnectionString(
			fmt.Sprintf("Endpoint=sb://%s;%s;UseDevelopmentEmulator=true;", ns.addr, credentials), nil)
		must(t, err)
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		return c
	}
	sender, listener := client("SharedAccessKeyName=sender;SharedAccessKey=s"), client("SharedAccessKeyName=listener;SharedAccessKey=l")
	must(t, ns.sender(t, sender, "plain").SendMessage(t.Context(), &azservicebus.Message{}, nil))
	err := ns.sender(t, listener, "plain").SendMessage(t.Context(), &azservicebus.Message{}, nil)
	wantCode(t, err, azservicebus.CodeUnauthorizedAccess)
	receive := func(c *azservicebus.Client) error {
		r, err := c.NewReceiverForQueue("plain", nil)
		must(t, err)
		_, err = r.ReceiveMessages(t.Context(), 1, nil)
		return err
	}
	must(t, receive(listener))
	wantCode(t, receive(sender), azservicebus.CodeUnauthorizedAccess)
}

func TestAuth_ALinkEndsWithItsToken(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t, withKey, func(c *amqpserver.Config) { c.IdleTimeout, c.LinkIdleTimeout = 9*time.Hour, 9*time.Hour })
	w := openWire(t, ns)
	w.attachRequests(0, "$cbs", "")
	w.transfer(amqp.Transfer{Handle: 10, DeliveryID: amqp.Some(0)}, amqp.AppendBodyValue(
		amqp.AppendApplicationProperties(nil, amqp.Map{{Key: "operation", Value: "put-token"}, {Key: "name", Value: "sb://host/plain"}}),
		sastest.Sign("sb://host/", "root", "secret", time.Now().Add(time.Hour))))
	expect[*amqp.Disposition](w)
	expect[*amqp.Transfer](w)
	w.attachSender()
	ns.server.SweepAt(time.Now().Add(2 * time.Hour))
	equal(t, "condition", expect[*amqp.Detach](w).Error.Condition, amqp.ConditionUnauthorized)
}
