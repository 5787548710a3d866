package orders

import (
	"fmt"
	"time"
)

// The event types of an order.
const (
	Placed    = "OrderPlaced"
	Added     = "ItemAdded"
	Removed   = "ItemRemoved"
	Paid      = "OrderPaid"
	Shipped   = "OrderShipped"
	Cancelled = "OrderCancelled"
	Erased    = "OrderErased"
)

// Data is the payload of an order's event. Values are strings and int64 only: money is in
// cents, so that sums are exact in whatever order they are taken.
type Data = map[string]any

// Event is one event of an aggregate, as the events collection holds it.
type Event struct {
	Aggregate string
	Version   int64
	Type      string
	Time      time.Time
	// Data is the payload: a Data in every event that a generator makes.
	Data any
}

// ID returns the document id of the event: the same event always has the same,
// so a repeated insert is refused and not doubled, and ids of one aggregate
// sort by version.
func (e Event) ID() string { return fmt.Sprintf("%s/%019d", e.Aggregate, e.Version) }
