package backfill

// KeyOf is the key of a document in an order.
var KeyOf = keyOf

// TakeFullOfNothing has a copy take a chunk that is full and has no document, and
// reports whether that ends the order.
func TakeFullOfNothing(order []string) (ended bool, err error) {
	s := &Source{plan: Plan{Order: order}}
	err = s.take(chunk{})
	return s.rest.begun, err
}
