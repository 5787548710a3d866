package contract_test

import (
	"strings"
	"testing"

	"changerelay/pkg/contract"
)

// resent is an event that is sent again, for a group.
func resent() contract.Event {
	e := newEvent()
	e.Resend = contract.Resend{ID: "k3v9q2mx", Group: "orders-2"}
	return e
}

func TestResend_AMessageHasAnIDOfItsOwnAndItsEventTheOneThatItAlwaysHad(t *testing.T) {
	t.Parallel()
	was := newEvent()
	m := mustEncode(t, resent(), contract.EncodeOptions{})
	if m.ID == was.ID || m.Properties["cloudEvents_id"] != m.ID || !strings.HasPrefix(m.ID, was.ID) {
		t.Errorf("the message's id is %s, that of its event %v, want one behind %s for both", m.ID, m.Properties["cloudEvents_id"], was.ID)
	}
	event, err := contract.Decode(m, contract.DecodeOptions{})
	checkProblems(t, err)
	if event.ID != was.ID || event.Sequence != was.Sequence || event.Resend != resent().Resend {
		t.Errorf("read are %s, %s, %+v, want id and sequence as ever", event.ID, event.Sequence, event.Resend)
	}
	m.Body = []byte("{")
	m.Properties["cloudEvents_specversion"] = "2.0"
	if placed, ok := contract.Place(m); !ok || placed.ID != was.ID || placed.Sequence != was.Sequence {
		t.Errorf("one that cannot be read is placed at %s, %s, %t, want id and sequence as ever", placed.ID, placed.Sequence, ok)
	}
}

func TestResend_WhatContradictsItselfIsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		edit func(map[string]any)
		want string
	}{
		"another change":  {func(p map[string]any) { p["cloudEvents_resendof"] = "other" }, "resendof"},
		"no change":       {func(p map[string]any) { delete(p, "cloudEvents_resendof") }, "resendof"},
		"another resend":  {func(p map[string]any) { p["cloudEvents_resend"] = "other" }, "resendof"},
		"no text":         {func(p map[string]any) { p["cloudEvents_resend"] = int64(3) }, "resend"},
		"a group, untold": {func(p map[string]any) { p["cloudEvents_resendgroup"] = 3 }, "resendgroup"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := mustEncode(t, resent(), contract.EncodeOptions{})
			tt.edit(m.Properties)
			if _, err := contract.Decode(m, contract.DecodeOptions{}); err == nil || !strings.Contains(err.Error(), tt.want+": ") {
				t.Errorf("got %v, want an error about %s", err, tt.want)
			}
		})
	}
	long := resent()
	long.Resend.ID = strings.Repeat("x", contract.MaxIDLength)
	if _, err := contract.Encode(long, contract.EncodeOptions{}); err == nil || !strings.Contains(err.Error(), "messageId") {
		t.Errorf("got %v, want an error about the message's id", err)
	}
}

func TestResend_IsForTheGroupThatItNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		resend contract.Resend
		group  string
		want   bool
	}{
		{contract.Resend{}, "orders", true},
		{contract.Resend{ID: "k3v9q2mx"}, "orders", true},
		{contract.Resend{ID: "k3v9q2mx", Group: "orders"}, "orders", true},
		{contract.Resend{ID: "k3v9q2mx", Group: "orders-2"}, "orders", false},
		{contract.Resend{ID: "k3v9q2mx", Group: "orders-2"}, "", false},
	} {
		e := newEvent()
		e.Resend = tt.resend
		of := contract.ResendOf(mustEncode(t, e, contract.EncodeOptions{}))
		if of != tt.resend || of.For(tt.group) != tt.want {
			t.Errorf("%+v is read as %+v, which is for group %q: %t, want %t", tt.resend, of, tt.group, of.For(tt.group), tt.want)
		}
	}
}
