package stream

import (
	"testing"

	"changerelay/services/publisher/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }
