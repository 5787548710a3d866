package orders

import (
	"fmt"
	"slices"
	"sort"
)

// historyKept is how many of an order's latest event types its document keeps.
const historyKept = 10

// Document is one document of the read model that orders.yaml declares, without
// the projector's bookkeeping. Values are strings, int64 and []any.
type Document = map[string]any

// Model is the read model computed from events: order id to document.
type Model map[string]Document

// SortSets sorts the document's arrays whose order says nothing, so that two
// documents can be compared.
func SortSets(doc Document) {
	for _, set := range []string{"skus", "channels"} {
		if list, ok := doc[set].([]any); ok {
			sort.Slice(list, func(i, j int) bool { return fmt.Sprint(list[i]) < fmt.Sprint(list[j]) })
		}
	}
}

// Apply takes one event in. The events of one order must come in the order of
// their versions. A type that orders.yaml does not name is passed over.
func (m Model) Apply(e Event) {
	data, _ := e.Data.(Data)
	doc := m[e.Aggregate]
	if doc == nil {
		doc = Document{}
	}
	switch e.Type {
	case Placed:
		doc["status"] = "placed"
		doc["customer"] = data["customer"]
		doc["channel"] = data["channel"]
		increment(doc, "rounds", 1)
		for _, field := range []string{"method", "carrier", "tracking", "reason"} {
			delete(doc, field)
		}
	case Added:
		price := integer(data["price"])
		increment(doc, "items", 1)
		increment(doc, "total", price)
		lower(doc, "cheapest", price)
		raise(doc, "dearest", price)
		addToSet(doc, "skus", data["sku"])
	case Removed:
		increment(doc, "items", -1)
		increment(doc, "total", -integer(data["price"]))
	case Paid:
		doc["status"] = "paid"
		doc["method"] = data["method"]
		increment(doc, "paid", integer(data["amount"]))
	case Shipped:
		doc["status"] = "shipped"
		doc["carrier"] = data["carrier"]
		doc["tracking"] = data["tracking"]
	case Cancelled:
		doc["status"] = "cancelled"
		doc["reason"] = data["reason"]
	case Erased:
		delete(m, e.Aggregate)
		return
	default:
		return
	}
	increment(doc, "events", 1)
	push(doc, "history", e.Type, historyKept)
	m[e.Aggregate] = doc
}

func increment(doc Document, field string, by int64) { doc[field] = integer(doc[field]) + by }

func lower(doc Document, field string, v int64) {
	if old, found := doc[field]; !found || v < integer(old) {
		doc[field] = v
	}
}

func raise(doc Document, field string, v int64) {
	if old, found := doc[field]; !found || v > integer(old) {
		doc[field] = v
	}
}

func push(doc Document, field string, v any, last int) {
	list, _ := doc[field].([]any)
	list = append(list, v)
	if len(list) > last {
		list = slices.Clone(list[len(list)-last:])
	}
	doc[field] = list
}

func addToSet(doc Document, field string, v any) {
	list, _ := doc[field].([]any)
	if !slices.Contains(list, v) {
		doc[field] = append(list, v)
	}
}

func integer(v any) int64 {
	n, _ := v.(int64)
	return n
}
