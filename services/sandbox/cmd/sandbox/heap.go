package main

import "os"

// headroom is how far the heap may grow over twice of what is alive.
const headroom = 64 << 20

// paceCollector has the collector run less often while the heap is small: a sandbox that
// keeps little would be collected dozens of times a second under load. Who sets GOGC
// or GOMEMLIMIT decides instead. What is returned must be kept: it is never touched, so it
// takes no memory, and counts as alive when the next collection is scheduled.
func paceCollector() []byte {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	return make([]byte, headroom)
}
