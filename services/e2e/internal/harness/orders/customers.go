package orders

import "fmt"

// Customers is the read model that keyed.yaml declares, computed from events: customer,
// or customer and channel, to document. Events may come in any order.
type Customers map[string]Document

// Apply takes one event in. Only those by which an order is placed are a customer's.
func (c Customers) Apply(e Event) {
	data, _ := e.Data.(Data)
	customer, known := data["customer"].(string)
	if e.Type != Placed || !known {
		return
	}
	for _, id := range []string{customer, fmt.Sprintf("%s/%s", customer, data["channel"])} {
		doc := c[id]
		if doc == nil {
			doc = Document{}
			c[id] = doc
		}
		increment(doc, "orders", 1)
		increment(doc, "sum", e.Version)
		lower(doc, "lowest", e.Version)
		raise(doc, "highest", e.Version)
		addToSet(doc, "channels", data["channel"])
	}
}
