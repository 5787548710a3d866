package witness

import (
	"testing"

	"changerelay/services/e2e/internal/harness/cluster/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m) }
