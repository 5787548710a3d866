package amqpserver_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	goamqp "github.com/Azure/go-amqp"

	"changerelay/services/sandbox/internal/amqp"
	"changerelay/services/sandbox/internal/amqpserver"
)

// withKey has tokens verified against key "root", whose secret the tests' connection string has.
func withKey(c *amqpserver.Config) { c.Keys = map[string]string{"root": "secret"} }

func TestATokenOfAKnownKeyIsLetIn(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t, withKey)
	c := ns.client(t)
	sendTo(t, ns.sender(t, c, "changes"), "a", "x")
	r, err := c.AcceptNextSessionForSubscription(t.Context(), "changes", "projector", nil)
	must(t, err)
	must(t, r.RenewSessionLock(t.Context(), nil))
}

func TestAWrongKeyIsUnauthorized(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t, withKey)
	for name, credentials := range map[string]string{
		"wrong secret": "SharedAccessKeyName=root;SharedAccessKey=guess",
		"unknown name": "SharedAccessKeyName=guest;SharedAccessKey=secret",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := azservicebus.NewClientFromConnectionString(
				fmt.Sprintf("Endpoint=sb://%s;%s;UseDevelopmentEmulator=true;", ns.server.Addr(), credentials), nil)
			must(t, err)
			t.Cleanup(func() { _ = c.Close(t.Context()) })
			s, err := c.NewSender("plain", nil)
			must(t, err)
			wantCode(t, s.SendMessage(t.Context(), &azservicebus.Message{}, nil), azservicebus.CodeUnauthorizedAccess)
		})
	}
}

func TestALinkWithoutATokenIsUnauthorized(t *testing.T) {
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

func TestSASLPlainWithAKeyNeedsNoToken(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t, withKey)
	address := "amqp://" + ns.server.Addr().String()
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

func TestAClaimLastsAsLongAsItsToken(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	var c amqpserver.Claims
	c.Put("amqp://host/orders", now.Add(time.Minute))
	tests := map[string]struct {
		path string
		at   time.Time
		want bool
	}{
		"while it lasts":          {"orders", now, true},
		"below it":                {"orders/subscriptions/a/$management", now, true},
		"after it":                {"orders", now.Add(time.Minute), false},
		"for another":             {"other", now, false},
		"for one with its prefix": {"orders2", now, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			equal(t, "allowed", c.Allow(test.path, test.at), test.want)
		})
	}
}

func TestATokenIsVerifiedInEveryPart(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	keys := map[string]string{"root": "secret"}
	good := amqpserver.SignSAS("sb://host/orders", "root", "secret", now.Add(time.Hour))
	tests := map[string]struct {
		token, audience string
		ok              bool
	}{
		"the resource itself":       {good, "amqp://host/orders", true},
		"something below it":        {good, "amqp://host/Orders/Subscriptions/a/$management", true},
		"a sibling with its prefix": {good, "amqp://host/orders2", false},
		"another entity":            {good, "amqp://host/other", false},
		"a token for the namespace": {amqpserver.SignSAS("sb://host/", "root", "secret", now.Add(time.Hour)), "amqp://host/x", true},
		"a token that has expired":  {amqpserver.SignSAS("sb://host/orders", "root", "secret", now), "amqp://host/orders", false},
		"another secret":            {amqpserver.SignSAS("sb://host/orders", "root", "guess", now.Add(time.Hour)), "amqp://host/orders", false},
		"another name":              {amqpserver.SignSAS("sb://host/orders", "guest", "secret", now.Add(time.Hour)), "amqp://host/orders", false},
		"no signature at all":       {"Bearer abc", "amqp://host/orders", false},
		"nothing":                   {"", "amqp://host/orders", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := amqpserver.VerifySAS(keys, test.token, test.audience, now)
			if (err == nil) != test.ok {
				t.Errorf("got error %v, want success %t", err, test.ok)
			}
		})
	}
}
