// Package stage gives one measurement servers of its own: a fresh sandbox, or
// databases and topics of its own on servers that were named. What is measured
// is laid out the same way on both, through the management API that both speak,
// and is gone afterwards.
package stage
