package orders

import "slices"

// Changes is the read model that documents.yaml declares, computed from the changes of a
// source in documents mode: aggregate to document.
type Changes map[string]Document

// Apply takes one change in: its operation, and what its message shows of the document
// after it. The changes of one aggregate must come in their order.
func (c Changes) Apply(aggregate, operation string, shown map[string]any) {
	if operation == "delete" {
		delete(c, aggregate)
		return
	}
	doc := c[aggregate]
	if doc == nil {
		doc = Document{}
		c[aggregate] = doc
	}
	kind, _ := shown["type"].(string)
	data, _ := shown["data"].(Data)
	doc["version"], doc["kind"] = integer(shown["version"]), kind
	increment(doc, operation+"s", 1)
	increment(doc, "amount", integer(data["price"]))
	push(doc, "history", operation, historyKept)
}

// WithoutAmounts takes the sums out of documents: of a document that is looked up later,
// nobody knows what it was at each change.
func WithoutAmounts(documents map[string]Document) {
	for _, doc := range documents {
		delete(doc, "amount")
	}
}

// Clone returns a copy whose documents are its own.
func (c Changes) Clone() map[string]Document {
	all := make(map[string]Document, len(c))
	for id, doc := range c {
		copied := Document{}
		for name, value := range doc {
			if list, ok := value.([]any); ok {
				value = slices.Clone(list)
			}
			copied[name] = value
		}
		all[id] = copied
	}
	return all
}
