package sessionlink

import (
	"testing"
	"time"

	"changerelay/services/projector/internal/sandboxtest"
)

// A link for requests that has ended, while the one for their answers has not, is not
// asked over for ever: the next request opens another pair.
func TestRequests_GoOnWhenOneLinkOfThePairHasEnded(t *testing.T) {
	t.Parallel()
	sandboxtest.Send(t, servers, "requests", messages("a", 1, 1)...)
	r := mustAccept(t, open(t, at(t, servers, "requests")))
	w := r.wire
	for name, n := range map[string]*node{"$management": w.management, "$cbs": w.claims.cbs} {
		p, err := n.open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := p.out.Close(t.Context()); err != nil {
			t.Fatalf("end the link for requests to %s: %v", name, err)
		}
	}
	for range 2 {
		if _, err := r.RenewLock(t.Context()); err != nil {
			t.Errorf("renew over a pair of which one link has ended: %v", err)
		}
		if err := w.claims.put(t.Context(), w.cfg.entity(), time.Now()); err != nil {
			t.Errorf("claim over a pair of which one link has ended: %v", err)
		}
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
