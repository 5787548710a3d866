// Package scenario holds no code, only the tests of the whole system: the real
// binaries as processes over the sandbox, under load and under faults. Each waits
// on states that it can see, and ends with the verdict of the same witness that
// the demo has.
package scenario
