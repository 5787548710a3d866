package contract_test

import (
	"strings"
	"testing"

	"changerelay/pkg/contract"
)

func TestResendStatus_IsReadWithFieldsThatAreNotKnown(t *testing.T) {
	t.Parallel()
	const said = `{"id":"a","number":2,"state":"running","group":"/orders_v2","rate":500,"later":{"x":[1]},"sent":5,"failed":0}
{
  "id": "b", "number": 1, "state": "incomplete", "selection": {"where": "{}"}, "sent": 1, "failed": 2,
  "began_at": "2026-01-02T03:04:05Z", "ended_at": "2026-01-02T03:05:05Z", "short": ["some are gone"]
}
`
	all, err := contract.ReadResendStatus(strings.NewReader(said))
	if err != nil || len(all) != 2 {
		t.Fatalf("got %+v and %v, want both", all, err)
	}
	last, first := all[0], all[1]
	if last.ID != "a" || last.Ended() || last.Sent != 5 || last.Selection != nil || !last.EndedAt.IsZero() {
		t.Errorf("the last one is read as %+v", last)
	}
	if !first.Ended() || first.Failed != 2 || string(first.Selection) != `{"where": "{}"}` || first.EndedAt.Sub(first.BeganAt).Seconds() != 60 || len(first.Short) != 1 {
		t.Errorf("the first one is read as %+v", first)
	}
	if all, err := contract.ReadResendStatus(strings.NewReader("\n")); err != nil || len(all) != 0 {
		t.Errorf("of nothing: got %+v and %v, want none", all, err)
	}
}

func TestResendStatus_WhatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	const one = `{"id":"a","state":"done","sent":1,"failed":0}` + "\n"
	for name, said := range map[string]string{
		"cut short":  one + `{"id":"b","state":"do`,
		"no JSON":    one + "id: b",
		"an array":   one + "[" + one + "]",
		"no id":      one + `{"state":"done"}`,
		"no state":   one + `{"id":"b"}`,
		"other JSON": one + `{"stream":"shop.events","warnings":[]}`,
	} {
		if all, err := contract.ReadResendStatus(strings.NewReader(said)); err == nil || !strings.Contains(err.Error(), "resend 2 of") {
			t.Errorf("%s: got %+v and %v, want it refused", name, all, err)
		}
	}
}
