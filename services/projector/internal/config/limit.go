package config

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// MemoryLimit is how much memory this process may take, in bytes: GOMEMLIMIT, or
// what its container has; 0 for no limit.
func MemoryLimit() int64 {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return limit
	}
	return containerLimit()
}

// containerLimit is the memory limit of the control group, 0 for none.
func containerLimit() int64 {
	limit, err := memlimit.FromCgroup()
	if err != nil || limit > math.MaxInt64 {
		return 0 // there is none, or this system has no control groups
	}
	return int64(limit)
}
