package suite

import (
	"testing"

	"changerelay/services/e2e/internal/cluster/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m) }
