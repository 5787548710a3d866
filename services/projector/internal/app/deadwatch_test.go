package app_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// deadLetter has the broker dead-letter the next message of a session, which is
// abandoned until it has been delivered too often.
func deadLetter(t *testing.T, topic, session string) {
	t.Helper()
	receiver, err := servers.Client(t).AcceptSessionForSubscription(t.Context(), topic, "projector", session, nil)
	if err != nil {
		t.Fatalf("accept session %q: %v", session, err)
	}
	defer func() { _ = receiver.Close(t.Context()) }()
	for range 10 { // the subscription's most deliveries
		messages, err := receiver.ReceiveMessages(t.Context(), 1, nil)
		if err != nil || len(messages) != 1 {
			t.Fatalf("receive from session %q: got %d and %v", session, len(messages), err)
		}
		if err := receiver.AbandonMessage(t.Context(), messages[0], nil); err != nil {
			t.Fatalf("abandon a message of session %q: %v", session, err)
		}
	}
}

// answer is what a projector's admin port answers.
func answer(t *testing.T, p *projector, path string) (code int, text string) {
	t.Helper()
	resp, err := http.Get("http://" + p.AdminAddr() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// scraped is what a projector's admin port says to Prometheus.
func scraped(t *testing.T, p *projector) string {
	t.Helper()
	_, text := answer(t, p, "/metrics")
	return text
}

func TestDeadLetters_WhatTheBrokerDeadLettersIsSeen(t *testing.T) {
	t.Parallel()
	_, database := servers.Mongo(t, nil)
	send(t, "deadwatch", event("a", 1, "Happened", `{}`))
	deadLetter(t, "deadwatch", "a")
	p := start(t, configured(t, "deadwatch", database), parse(t))
	until(t, "the dead letters are looked at", func() bool { return p.Status().DeadLetters != nil })
	seen := p.Status().DeadLetters
	if seen.Error != "" || seen.More || len(seen.ByReason) != 1 || seen.ByReason["MaxDeliveryCountExceeded"] != 1 {
		t.Errorf("status: got %+v, want one that was delivered too often", seen)
	}
	metrics := scraped(t, p)
	for _, want := range []string{
		`projector_dead_letters{reason="MaxDeliveryCountExceeded"} 1`, `projector_dead_letters{reason="TTLExpiredException"} 0`, `projector_dead_letters_seen 1`,
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("metrics: there is no %s", want)
		}
	}
	if !strings.Contains(p.logs.String(), `"reason":"MaxDeliveryCountExceeded"`) {
		t.Error("the log does not name the dead letter's reason")
	}
}

// Nobody knows whether there are any where the queue cannot be looked at.
func TestDeadLetters_AQueueThatCannotBeLookedAtIsNotEmpty(t *testing.T) {
	t.Parallel()
	_, database := servers.Mongo(t, nil)
	cfg := configured(t, "deadwatch", database)
	cfg.Subscription = "missing"
	p := start(t, cfg, parse(t))
	until(t, "the dead letters are looked at", func() bool { return p.Status().DeadLetters != nil })
	if seen := p.Status().DeadLetters; seen.Error == "" || seen.ByReason != nil {
		t.Errorf("status: got %+v, want an error and no counts", seen)
	}
	metrics := scraped(t, p)
	if !strings.Contains(metrics, "projector_dead_letters_seen 0\n") || strings.Contains(metrics, "projector_dead_letters{") {
		t.Error("metrics: want projector_dead_letters_seen 0, and no projector_dead_letters")
	}
	if !strings.Contains(p.logs.String(), "cannot be looked at") {
		t.Error("the log does not say that the queue cannot be looked at")
	}
}
