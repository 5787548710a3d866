package command

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/resend"
)

// TestResendStatus_SaysThatDocumentsAreReadInVain has a partition whose leader lives.
func TestResendStatus_SaysThatDocumentsAreReadInVain(t *testing.T) {
	t.Parallel()
	c := config.Config{StreamName: "shop.events", Partitions: 1}
	scope := mongostate.Scope{Holders: []mongostate.Holder{{Stream: c.StreamName}}}
	for overrun, says := range map[int]bool{1: false, 2: true} {
		var view ResendView
		view.waits(&resend.Record{State: resend.Running, Parts: []resend.Part{{Overrun: overrun}}}, c, scope)
		if got := strings.Join(view.Warnings, "; "); strings.Contains(got, "create the index") != says {
			t.Errorf("after %d in a row it warns of %q, want the index named: %v", overrun, got, says)
		}
	}
}

// TestResendStatus_IsWhatTheContractSays reads what is printed as others do, who go by it.
func TestResendStatus_IsWhatTheContractSays(t *testing.T) {
	t.Parallel()
	c := config.Config{StreamName: "shop.events", SourceDatabase: "shop", SourceCollection: "events", Mode: config.ModeDocuments, Partitions: 1}
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := resend.Record{
		ID: "a", Number: 2, State: resend.Incomplete, Group: "/orders_v2", Selection: resend.Selection{Where: "{}"}, Why: "a test",
		BeganAt: began, EndedAt: began.Add(time.Minute), Total: 5, Parts: []resend.Part{{Read: 4, Sent: 3, Failed: 1, Done: true, Short: "one is gone"}},
	}
	var printed bytes.Buffer
	for _, state := range []resend.State{r.State, resend.Running} {
		r.State = state
		view := viewResend(&r, &c)
		view.Warnings = []string{"a warning"}
		if err := printView(&printed, true, view); err != nil {
			t.Fatal(err)
		}
	}
	all, err := contract.ReadResendStatus(&printed)
	if err != nil || len(all) != 2 || all[1].Ended() {
		t.Fatalf("read are %+v and %v, want both, the second not ended", all, err)
	}
	got := all[0]
	if got.ID != "a" || got.Number != 2 || got.Stream != c.StreamName || got.Source != "/shop/events" || got.Mode != contract.ResendOfDocuments ||
		got.State != contract.ResendIncomplete || got.Group != r.Group || string(got.Selection) != `{"where":"{}"}` || got.Why != r.Why ||
		!got.BeganAt.Equal(r.BeganAt) || !got.EndedAt.Equal(r.EndedAt) || time.Since(got.ReportedAt) > time.Hour || *got.Documents != 5 || got.Sent != 3 || got.Failed != 1 ||
		len(got.Short) != 1 || len(got.Warnings) != 1 {
		t.Errorf("read is %+v, want what is known of %+v", got, r)
	}
	for state, told := range map[resend.State]string{
		resend.Beginning: contract.ResendBeginning, resend.Running: contract.ResendRunning, resend.Paused: contract.ResendPaused,
		resend.Done: contract.ResendDone, resend.Incomplete: contract.ResendIncomplete, resend.Cancelled: contract.ResendCancelled,
	} {
		if s := (contract.ResendStatus{State: told}); string(state) != told || s.Ended() != state.Ended() {
			t.Errorf("state %s is told as %s, and has ended: %v", state, told, s.Ended())
		}
	}
}
