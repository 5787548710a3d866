package orders

import "fmt"

// Steps is the read model of the projection in Go, computed from events: two documents
// of each order for every event, by its type and by its version modulo three.
type Steps map[string]Document

// Apply takes one event in, and returns the documents that it is in. The events of one
// order must come in the order of their versions.
func (s Steps) Apply(e Event) []string {
	ids := []string{fmt.Sprintf("%s/%s", e.Aggregate, e.Type), fmt.Sprintf("%s/%d", e.Aggregate, e.Version%3)}
	for _, id := range ids {
		doc := s[id]
		if doc == nil {
			doc = Document{}
			s[id] = doc
		}
		increment(doc, "events", 1)
		increment(doc, "sum", e.Version)
		doc["latest"] = e.Version
	}
	return ids
}
