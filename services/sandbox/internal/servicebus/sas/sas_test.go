package sas_test

import (
	"strings"
	"testing"
	"time"

	"changerelay/services/sandbox/internal/servicebus/sas"
	"changerelay/services/sandbox/internal/servicebus/sas/sastest"
)

func TestSAS_ATokenIsVerifiedInEveryPart(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	keys := sas.Keys{"root": {Secret: "secret", Rights: sas.All}, "a & b": {Secret: "other", Rights: sas.Send}}
	hour := now.Add(time.Hour)
	good := sastest.Sign("sb://host/orders", "root", "secret", hour)
	tests := map[string]struct {
		token, audience string
		refusal         string // empty: it is good
	}{
		"the resource itself":         {good, "amqp://host/orders", ""},
		"something below it":          {good, "amqp://host/Orders/Subscriptions/a/$management", ""},
		"a sibling with its prefix":   {good, "amqp://host/orders2", "InvalidAudience"},
		"another entity":              {good, "amqp://host/other", "InvalidAudience"},
		"a token for the namespace":   {sastest.Sign("sb://host/", "root", "secret", hour), "amqp://host/x", ""},
		"a token for a host alone":    {sastest.Sign("ns.servicebus.windows.net", "root", "secret", hour), "amqp://host/x", ""},
		"a token for a host and port": {sastest.Sign("localhost:5672", "root", "secret", hour), "amqp://host/x", ""},
		"a resource with a query":     {sastest.Sign("https://host:443/orders?api-version=1", "root", "secret", hour), "/orders", ""},
		"a name with signs in it":     {sastest.Sign("sb://host/", "a & b", "other", hour), "amqp://host/x", ""},
		"a token that has expired":    {sastest.Sign("sb://host/orders", "root", "secret", now), "amqp://host/orders", "ExpiredToken: The token is expired. Expiration time:"},
		"another secret":              {sastest.Sign("sb://host/orders", "root", "guess", hour), "amqp://host/orders", "InvalidSignature"},
		"another name":                {sastest.Sign("sb://host/orders", "guest", "secret", hour), "amqp://host/orders", "InvalidSignature"},
		"a later expiry":              {strings.Replace(good, "se=17", "se=18", 1), "amqp://host/orders", "InvalidSignature"},
		"another resource":            {strings.Replace(good, "orders", "others", 1), "amqp://host/others", "InvalidSignature"},
		"no signature at all":         {"Bearer abc", "amqp://host/orders", "InvalidSignature"},
		"nothing":                     {"", "amqp://host/orders", "InvalidSignature"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim, err := keys.Verify(test.token, test.audience, now)
			switch {
			case test.refusal == "" && (err != nil || !claim.Expires.Equal(hour) || claim.Rights == 0):
				t.Errorf("got claim %+v and error %v, want a claim for an hour", claim, err)
			case test.refusal != "" && (err == nil || !strings.HasPrefix(err.Error(), test.refusal)):
				t.Errorf("got error %v, want %s", err, test.refusal)
			}
		})
	}
}

func TestSAS_AClaimLastsAsLongAsItsToken(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	var c sas.Claims
	c.Put("amqp://host/orders", sas.Claim{Rights: sas.Send, Expires: now.Add(time.Minute)})
	tests := map[string]struct {
		path string
		at   time.Time
		want sas.Rights
	}{
		"while it lasts":          {"orders", now, sas.Send},
		"below it":                {"orders/subscriptions/a/$management", now, sas.Send},
		"after it":                {"orders", now.Add(time.Minute), 0},
		"for another":             {"other", now, 0},
		"for one with its prefix": {"orders2", now, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.Rights(test.path, test.at); got != test.want {
				t.Errorf("got rights %q, want %q", got, test.want)
			}
		})
	}
}

func TestSAS_RightsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]sas.Rights{
		"Listen": sas.Listen, "send": sas.Send, "Listen, Send": sas.Listen | sas.Send, "Manage": sas.All,
	} {
		if got, err := sas.ParseRights(list); err != nil || got != want {
			t.Errorf("%q: got %q and %v, want %q", list, got, err, want)
		}
	}
	if got, err := sas.ParseRights("Listen,Read"); err == nil || !strings.Contains(err.Error(), "Read") {
		t.Errorf("got %q and %v for an unknown right, want an error that names it", got, err)
	}
}
