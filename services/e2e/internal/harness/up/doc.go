// Package up runs a whole relay for a person to try things with: a sandbox,
// publishers and projectors, until they are told to stop. Nothing is injected and
// nothing is judged; the demo does that.
package up
