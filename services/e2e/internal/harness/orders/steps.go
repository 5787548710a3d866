package orders

import (
	"fmt"
	"hash/crc32"
)

// Steps is the read model of the projection in Go, computed from events: two documents
// of each order for every event, by its type and by its version modulo three.
type Steps map[string]Document

// Apply takes one event in, whose message has that id, and returns the documents that it is
// in. The events of one order must come in the order of their versions.
func (s Steps) Apply(e Event, id string) []string {
	keys := []string{fmt.Sprintf("%s/%s", e.Aggregate, e.Type), fmt.Sprintf("%s/%d", e.Aggregate, e.Version%3)}
	for _, key := range keys {
		doc := s[key]
		if doc == nil {
			doc = Document{}
			s[key] = doc
		}
		increment(doc, "events", 1)
		increment(doc, "sum", e.Version)
		increment(doc, "ids", int64(crc32.ChecksumIEEE([]byte(id))))
		doc["latest"] = e.Version
	}
	return keys
}
