package command

import (
	"strings"
	"testing"

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
