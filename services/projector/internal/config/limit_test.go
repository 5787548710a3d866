package config

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestMemoryLimit_IsTheOneThatIsSet(t *testing.T) {
	before := debug.SetMemoryLimit(300 << 20)
	defer debug.SetMemoryLimit(before)
	if got := MemoryLimit(); got != 300<<20 {
		t.Errorf("got %d, want that of GOMEMLIMIT", got)
	}
	debug.SetMemoryLimit(math.MaxInt64)
	if got := MemoryLimit(); got != containerLimit() {
		t.Errorf("got %d, want that of the container", got)
	}
}
