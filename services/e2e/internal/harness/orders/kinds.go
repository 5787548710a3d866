package orders

// Kinds is the read model that documents_keyed.yaml declares, computed from the changes of
// a source in documents mode: kind of change, or that and the end of the aggregate's id,
// to document. Changes may come in any order.
type Kinds map[string]Document

// Apply takes one change in.
func (k Kinds) Apply(aggregate, operation string) {
	for _, id := range []string{operation, operation + "/" + aggregate[max(0, len(aggregate)-2):]} {
		doc := k[id]
		if doc == nil {
			doc = Document{}
			k[id] = doc
		}
		increment(doc, "changes", 1)
	}
}
