package app_test

import (
	"slices"
	"strings"
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/sandboxtest"
)

// A message that the transport cannot decode keeps its session at its place: what stands
// before it is applied and settled, and an operator is told.
func TestUndecodable_WhatStandsBeforeIsAppliedAndItIsSaid(t *testing.T) {
	t.Parallel()
	text := func(t *testing.T, topic string, m contract.Message) {
		sandboxtest.SendUndecodable(t, servers, topic, m)
	}
	// A footer with a list for a key, at which go-amqp by itself ends the process.
	key := func(t *testing.T, topic string, m contract.Message) {
		sandboxtest.SendWithSections(t, servers, topic, m, []byte{0, 0x53, 0x78, 0xc1, 3, 2, 0x45, 0x40})
	}
	// At which the official client panics.
	property := func(t *testing.T, topic string, m contract.Message) {
		m.Properties["DeadLetterReason"] = int64(1)
		sandboxtest.Send(t, servers, topic, m)
	}
	for topic, c := range map[string]struct {
		receiver string
		sendBad  func(t *testing.T, topic string, m contract.Message)
	}{
		"undecodable-amqp":         {config.ReceiverAMQP, text},
		"undecodable-sdk":          {config.ReceiverSDK, text},
		"undecodable-key-amqp":     {config.ReceiverAMQP, key},
		"undecodable-key-sdk":      {config.ReceiverSDK, key},
		"undecodable-property-sdk": {config.ReceiverSDK, property},
	} {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			undecodable(t, topic, c.receiver, c.sendBad)
		})
	}
}

func undecodable(t *testing.T, topic, receiver string, sendBad func(t *testing.T, topic string, m contract.Message)) {
	t.Helper()
	_, database := servers.Mongo(t, nil)
	send(t, topic, happened("a", 1, 2)...)
	m, err := contract.Encode(event("a", 3, "Happened", `{}`), contract.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sendBad(t, topic, m)
	send(t, topic, happened("a", 4, 4)...)
	send(t, topic, happened("b", 1, 1)...)
	cfg := configured(t, topic, database)
	cfg.Receiver = receiver
	p := start(t, cfg, parse(t))
	manager := management(t)
	until(t, "what stands before it and others are settled", func() bool { // whether or not an answer said so, as the link ends
		left, err := manager.GetSubscriptionRuntimeProperties(t.Context(), topic, cfg.Subscription, nil)
		return err == nil && left.ActiveMessageCount == 2
	})
	until(t, "it is said", func() bool { return slices.Equal(p.Status().Undecodable, []string{"a"}) })
	until(t, "the session is left alone", func() bool { return p.Status().Resting == 1 })
	if s := p.Status(); s.LagSeconds == nil || *s.LagSeconds <= 0 || s.Applied != 3 {
		t.Errorf("got %+v, want a lag, and three events applied", s)
	}
	if text := scraped(t, p); !strings.Contains(text, "projector_sessions_undecodable 1") {
		t.Errorf("got %s, want one session counted", text)
	}
	if logs := p.logs.String(); !strings.Contains(logs, "cannot be decoded, and all that follow it wait") {
		t.Errorf("got %s, want that it is said", logs)
	}
}
