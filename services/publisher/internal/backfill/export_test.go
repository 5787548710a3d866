package backfill

// KeyOf is the key of a document in an order.
var KeyOf = keyOf
