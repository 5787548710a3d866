package orders

// Latest is the projector's default projection computed from events: aggregate
// id to the data of its latest event.
type Latest map[string]any

// Apply takes one event in; the events of one aggregate must come in the order
// of their versions.
func (l Latest) Apply(e Event) { l[e.Aggregate] = e.Data }
