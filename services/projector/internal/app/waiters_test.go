package app_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"changerelay/services/projector/internal/projection"
)

// More than 64 requests that wait are turned away, and none once they have gone.
func TestWait_TurnsAwayWhoeverIsTooMany(t *testing.T) {
	t.Parallel()
	_, database := servers.Mongo(t, nil)
	p := start(t, configured(t, "waiters", database), projection.Projections{projection.Latest{Collection: "latest"}})
	until(t, "the projector runs", func() bool { return p.Status().State == "running" })
	ctx, leave := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range 64 {
		waiting.Go(func() {
			for ctx.Err() == nil {
				_, _ = ask(ctx, p, "aggregate=nobody&version=1&timeout=25s")
			}
		})
	}
	until(t, "one is too many", func() bool {
		code, err := ask(t.Context(), p, "aggregate=nobody&version=1&timeout=1ms")
		return err == nil && code == http.StatusTooManyRequests
	})
	leave()
	waiting.Wait()
	until(t, "there is room again", func() bool {
		code, err := ask(t.Context(), p, "aggregate=nobody&version=1&timeout=1ms")
		return err == nil && code == http.StatusGatewayTimeout
	})
}
