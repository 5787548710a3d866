// Package report holds what a run found out and writes it down: as JSON for
// programs, as a page for people. Every check says what it got and what it was
// allowed; none passes without having been made.
package report
