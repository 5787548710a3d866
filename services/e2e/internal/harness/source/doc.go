// Package source writes events to the events collection and reads them back,
// with the official driver, as an application that knows nothing of the relay.
package source
