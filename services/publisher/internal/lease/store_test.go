package lease_test

import (
	"testing"

	"go.uber.org/goleak"

	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/lease/leasetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore_TheFakeStoreConforms(t *testing.T) {
	t.Parallel()
	leasetest.Conform(t, func(*testing.T) lease.Store { return &leasetest.Store{} })
	t.Run("watch", func(t *testing.T) {
		t.Parallel()
		leasetest.ConformWatcher(t, &leasetest.Store{})
	})
}
