// Package statuspage shows what the sandbox holds and does: a page that a
// person can read at /, the same as JSON at /status, and /healthz for whoever
// starts it. The page is one embedded file that asks for /status every second.
// The API of package faults is at /faults.
package statuspage
