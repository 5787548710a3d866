// Package sandboxtest runs a sandbox for the time of a test:
//
//	func TestOrders(t *testing.T) {
//		s := sandboxtest.Start(t)
//		client, err := mongo.Connect(options.Client().ApplyURI(s.MongoURI()))
//		…
//		bus, err := azservicebus.NewClientFromConnectionString(s.ServiceBusConnectionString(), nil)
//		…
//	}
//
// Each sandbox listens on ports of its own and shares nothing with others, so
// tests may run in parallel. It is up when Start returns, and has ended, with all
// its connections and goroutines, before the test has.
package sandboxtest

import (
	"context"
	"testing"

	"changerelay/services/sandbox"
)

// Start runs a sandbox on free ports until the test and its subtests end. With
// no other entities named it has the topic "changes" with the subscriptions
// "projector", with sessions, and "observer".
func Start(t testing.TB) *sandbox.Sandbox {
	t.Helper()
	return StartWith(t, sandbox.Config{})
}

// StartWith is Start with a configuration. The test fails if the sandbox cannot
// be made of it, or ends by itself.
func StartWith(t testing.TB, config sandbox.Config) *sandbox.Sandbox {
	t.Helper()
	s, err := sandbox.New(config)
	if err != nil {
		t.Fatalf("start a sandbox: %v", err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the sandbox has failed: %v", err)
		}
	})
	return s
}
