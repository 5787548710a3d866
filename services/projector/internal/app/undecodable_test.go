package app_test

import (
	"slices"
	"strings"
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/sandboxtest"
)

// A message that the transport cannot decode keeps its session at its place: what stands
// before it is applied and settled, and an operator is told.
func TestUndecodable_WhatStandsBeforeIsAppliedAndItIsSaid(t *testing.T) {
	t.Parallel()
	const topic = "undecodable"
	_, database := servers.Mongo(t, nil)
	send(t, topic, happened("a", 1, 2)...)
	m, err := contract.Encode(event("a", 3, "Happened", `{}`), contract.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.SendUndecodable(t, servers, topic, m)
	send(t, topic, happened("a", 4, 4)...)
	send(t, topic, happened("b", 1, 1)...)
	p := start(t, configured(t, topic, database), parse(t))
	until(t, "what stands before it and others are settled", func() bool { return p.Status().Completed == 3 })
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
