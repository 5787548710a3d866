package modify

import (
	"maps"
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

// Sizes in the server's own form of a difference. It reports what a pipeline
// changed by path only where that takes less than the new document.
const (
	sizeOfEntry     = 15 // what an oplog entry has around a difference
	sizeOfDocument  = 5
	sizeOfArray     = 9
	sizeOfSection   = 8 // around the first field of a kind
	sizeOfName      = 2 // beside the name itself
	sizeOfTruncated = 7
)

// maxTold bounds the paths by which a change is told. The sizes above count a name
// once, however many paths it is a part of.
const maxTold = bsonkit.MaxDocument

// diff compares two versions of a document as the server does after a pipeline
// (https://github.com/mongodb/mongo/blob/v5.0/src/mongo/db/update/document_diff_calculator.cpp).
// It is nil where the new document is the shorter description, and where the paths
// are longer than maxTold.
func diff(before, after bson.Raw) *Delta {
	d := diffDocuments(before, after, sizeOfEntry)
	if d == nil {
		return nil
	}
	r := &report{updated: bsonkit.NewBuilder(make([]byte, 0, 128)), ambiguous: bsonkit.NewBuilder(nil), left: maxTold}
	r.describe(d, nil)
	if r.left < 0 {
		return nil
	}
	delta := &Delta{Updated: r.updated.Finish(), Removed: r.removed, Truncated: r.truncated}
	if ambiguous := r.ambiguous.Finish(); len(ambiguous) > len(bsonkit.Empty) {
		delta.Ambiguous = ambiguous
	}
	return delta
}

// difference is that of two documents or of two arrays.
type difference struct {
	// updated are fields and elements with a new value, inserted new fields.
	updated, inserted []changedField
	deleted           []string
	// inside are documents and arrays of which something changed.
	inside []changedField
	// elements are those of an array, as they come: updated or inside.
	elements []changedField
	// truncated is the new length of an array that lost its end, -1 for none.
	truncated int
	size      int
}

// changedField is a field or element with its new value or what changed in it.
type changedField struct {
	at    step
	value bson.RawValue
	inner *difference
}

// step is a part of a path: a field's name or an element's index.
type step struct {
	name  string
	index bool
}

func diffDocuments(before, after bson.Raw, padding int) *difference {
	d := &difference{truncated: -1, size: sizeOfDocument + padding}
	missing := map[string]bool{} // from where it was; it may come later
	old, now := bsonkit.Iterate(before), bsonkit.Iterate(after)
	hasOld, hasNow := old.Next(), now.Next()
	for hasOld && hasNow {
		if len(after) < d.size {
			return nil
		}
		name := string(old.Key())
		if name != string(now.Key()) {
			missing[name] = true
			hasOld = old.Next()
			continue
		}
		d.field(name, old.Value(), now.Value())
		hasOld, hasNow = old.Next(), now.Next()
	}
	for ; hasOld; hasOld = old.Next() {
		d.remove(string(old.Key()))
	}
	for ; hasNow; hasNow = now.Next() {
		name := string(now.Key())
		delete(missing, name)
		d.grow(len(name), len(now.Value().Value), len(d.inserted) == 0)
		d.inserted = append(d.inserted, changedField{at: step{name: name}, value: now.Value()})
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		d.remove(name)
	}
	if len(after) <= d.size {
		return nil
	}
	return d
}

// field compares two values of a field.
func (d *difference) field(name string, old, now bson.RawValue) {
	if old.Equal(now) {
		return
	}
	changed := changedField{at: step{name: name}, value: now, inner: diffValues(old, now)}
	if changed.inner != nil {
		d.size += len(name) + sizeOfName + changed.inner.size + 1
		d.inside = append(d.inside, changed)
		return
	}
	d.grow(len(name), len(now.Value), len(d.updated) == 0)
	d.updated = append(d.updated, changed)
}

func (d *difference) remove(name string) {
	d.grow(len(name), 1, len(d.deleted) == 0)
	d.deleted = append(d.deleted, name)
}

func (d *difference) grow(name, value int, first bool) {
	d.size += name + sizeOfName + value
	if first {
		d.size += sizeOfSection
	}
}

// diffValues is nil where the new value is the shorter description.
func diffValues(old, now bson.RawValue) *difference {
	switch {
	case old.Type != now.Type:
		return nil
	case now.Type == bson.TypeEmbeddedDocument:
		return diffDocuments(old.Value, now.Value, 0)
	case now.Type == bson.TypeArray:
		return diffArrays(old.Value, now.Value)
	}
	return nil
}

func diffArrays(before, after bson.Raw) *difference {
	d := &difference{truncated: -1, size: sizeOfArray}
	old, now := bsonkit.Iterate(before), bsonkit.Iterate(after)
	hasOld, hasNow := old.Next(), now.Next()
	i := 0
	for ; hasNow; i++ {
		if hasOld && len(after) < d.size {
			return nil
		}
		if !hasOld || !old.Value().Equal(now.Value()) {
			d.element(i, old.Value(), now.Value(), hasOld)
		}
		hasOld, hasNow = hasOld && old.Next(), now.Next()
	}
	if hasOld {
		d.truncated = i
		d.size += sizeOfTruncated
	}
	if len(after) <= d.size {
		return nil
	}
	return d
}

func (d *difference) element(i int, old, now bson.RawValue, hasOld bool) {
	changed := changedField{at: step{name: strconv.Itoa(i), index: true}, value: now}
	if hasOld {
		changed.inner = diffValues(old, now)
	}
	d.size += 1 + len(changed.at.name) + sizeOfName
	if changed.inner != nil {
		d.size += changed.inner.size
	} else {
		d.size += len(now.Value)
	}
	d.elements = append(d.elements, changed)
}

// report turns a difference into what an event tells of it, in the server's
// order.
type report struct {
	updated, ambiguous *bsonkit.Builder
	removed            []string
	truncated          []Truncation
	// left is what its paths may still take. Below zero it is worth nothing.
	left int
}

func (r *report) describe(d *difference, at []step) {
	if d.truncated >= 0 {
		r.truncated = append(r.truncated, Truncation{Path: r.path(at), Size: d.truncated})
	}
	for _, fields := range [][]changedField{d.updated, d.inserted} {
		for _, field := range fields {
			r.update(field, at)
		}
	}
	for _, name := range d.deleted {
		r.removed = append(r.removed, r.path(slices.Concat(at, []step{{name: name}})))
	}
	for _, fields := range [][]changedField{d.inside, d.elements} {
		for _, field := range fields {
			r.update(field, at)
		}
	}
}

func (r *report) update(field changedField, at []step) {
	path := slices.Concat(at, []step{field.at})
	if field.inner != nil {
		r.describe(field.inner, path)
		return
	}
	r.updated.Append(r.path(path), field.value)
}

// path writes a path with dots, and takes it apart where that can be read in two
// ways.
func (r *report) path(path []step) string {
	for _, s := range path {
		r.left -= len(s.name) + 1
	}
	if r.left < 0 {
		return ""
	}
	name := dotted(path)
	if parts, needed := steps(path); needed {
		r.left -= len(name) + len(parts.Value)
		r.ambiguous.Append(name, parts)
	}
	return name
}
