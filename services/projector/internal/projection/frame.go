package projection

// frame is what declared projections and those in Go have alike: a name, documents of
// their own, and maybe versions.
type frame struct {
	name       string
	collection string
	// keyed: documents have another key than the aggregate's id.
	keyed bool
	// version is 0 for a projection that has none.
	version int
	// onError decides about no document, so it is no part of what tells projections apart.
	onError Policy
}

var (
	_ Guarded    = (*frame)(nil)
	_ Unchanging = (*frame)(nil)
)

// Name implements Projection.
func (f *frame) Name() string { return ofVersion(f.name, f.version) }

// Collections implements Projection.
func (f *frame) Collections() []string { return []string{f.place()} }

// place is the collection that is written.
func (f *frame) place() string { return ofVersion(f.collection, f.version) }

// Version implements Versioned.
func (f *frame) Version() (Version, bool) {
	return Version{Projection: f.name, View: f.collection, Number: f.version}, f.version > 0
}

// Keyed tells whether the documents have another key than the aggregate's id.
func (f *frame) Keyed() bool { return f.keyed }

// blank is a write of the aggregate's document that does nothing yet.
func (f *frame) blank(c *Change) Write {
	return Write{Projection: f.Name(), Collection: f.place(), ID: c.AggregateID, Event: &c.Event, Keyed: f.keyed}
}

// passed is what shows that an event was dealt with that changes no document, or may
// not: own, where the projection follows it, and a position where documents do not
// show it. How far a version has come must show when it is to be switched to.
func (f *frame) passed(c *Change, own *Write) []Write {
	var writes []Write
	if own != nil && !f.keyed {
		writes = append(writes, *own)
	}
	if f.version > 0 || own != nil && f.keyed {
		writes = append(writes, Write{Projection: f.Name(), Keyed: true, Passed: true, Event: &c.Event})
	}
	return writes
}

// Unchanged implements Unchanging.
func (f *frame) Unchanged(c *Change) []Write {
	w := f.blank(c)
	w.Kept = true
	return f.passed(c, &w)
}

// OnError implements Guarded.
func (f *frame) OnError() Policy { return f.onError }
