package management_test

import (
	"net/http"
	"strings"
	"testing"

	"changerelay/services/sandbox/internal/servicebus/entity"
	"changerelay/services/sandbox/internal/servicebus/management"
	"changerelay/services/sandbox/internal/servicebus/sas"
)

// withKeys has a key "root" that may manage and a key "worker" that may not.
func withKeys(c *management.Config) {
	c.Keys = sas.Keys{"root": {Secret: "r", Rights: sas.All}, "worker": {Secret: "w", Rights: sas.Listen | sas.Send}}
}

func TestAuthorize_AKeyThatMayManageIsServed(t *testing.T) {
	t.Parallel()
	_, s := serve(t, withKeys)
	client := newClientWithKey(t, s, "root", "r")
	_, err := client.CreateQueue(t.Context(), "queue", nil)
	must(t, err)
	_, err = client.GetQueue(t.Context(), "queue", nil)
	must(t, err)
}

func TestAuthorize_AKeyThatMayNotManageIsToldWhatItLacks(t *testing.T) {
	t.Parallel()
	b, s := serve(t, withKeys)
	_, err := b.CreateQueue("queue", entity.QueueProperties{})
	must(t, err)
	_, err = b.CreateTopic("topic", entity.TopicProperties{})
	must(t, err)
	client := newClientWithKey(t, s, "worker", "w")
	want := func(err error, text string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got error %v, want %q", err, text)
		}
	}
	_, err = client.GetQueue(t.Context(), "queue", nil)
	want(err, "Manage,EntityRead claims required")
	_, err = client.NewListQueuesPager(nil).NextPage(t.Context())
	want(err, "Manage,EntityRead claims required")
	_, err = client.CreateQueue(t.Context(), "other", nil)
	want(err, "Manage,EntityWrite")
	_, err = client.DeleteQueue(t.Context(), "queue", nil)
	want(err, "Manage,EntityDelete")
	_, err = client.GetSubscription(t.Context(), "topic", "sub", nil)
	want(err, "'GetSubscription'")
	_, err = client.DeleteRule(t.Context(), "topic", "sub", "rule", nil)
	want(err, "'DeleteRule'")
	_, err = client.NewListRulesPager("topic", "sub", nil).NextPage(t.Context())
	want(err, "'EnumerateRules'")
	if none, err := client.GetQueue(t.Context(), "none", nil); none != nil || err != nil {
		t.Errorf("got %v and %v for a queue that is not there, want neither", none, err)
	}
}

func TestAuthorize_ARequestWithoutAGoodTokenIsUnauthorized(t *testing.T) {
	t.Parallel()
	_, s := serve(t, withKeys)
	_, err := newClientWithKey(t, s, "root", "guess").GetNamespaceProperties(t.Context(), nil)
	wantStatus(t, err, http.StatusUnauthorized)
	if status, text := request(t, s, "GET", "/$namespaceinfo", "", nil); status != http.StatusUnauthorized || !strings.Contains(text, "MissingToken") {
		t.Errorf("got %d %s without a token, want 401", status, text)
	}
	if status, _ := request(t, s, "GET", "/$certificate", "", nil); status != http.StatusOK {
		t.Errorf("got status %d for the certificate, want it given to all", status)
	}
}
