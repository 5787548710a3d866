package witness

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/expect"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/plain"
	"changerelay/services/e2e/internal/harness/source"
)

// Documents is a source whose changes are its events (MODE=documents). The nth change of
// a document counts as version n of its aggregate.
type Documents struct {
	expect.Images
	// Keeps says that the changes are kept for Forgive, which needs every one.
	Keeps bool
}

// documents gathers the changes of such a source, as a change stream of the witness's
// own shows them. The source itself has no more than where they led.
type documents struct {
	Documents
	names cluster.Names

	mu      sync.Mutex // guards what follows
	into    *record    // takes in what is not kept
	kept    []changed
	counts  map[string]int64
	total   int
	numbers map[validate.Event]int64     // the version of each change, by its fingerprint
	ids     map[string]int64             // the same of those that are kept, by the message id
	times   map[validate.Event]time.Time // the cluster times of those that are kept
	// shown are the prints of the document after each change, where documents are looked
	// up, updates the changes that show what was looked up.
	shown   map[string][]uint32
	updates map[validate.Event]bool
	failed  error // the first change that could not be taken in
}

// changed is a change with its number.
type changed struct {
	expect.Change
	version int64
}

func newDocuments(of Documents, names cluster.Names, into *record) *documents {
	return &documents{
		Documents: of, names: names, into: into, counts: make(map[string]int64), numbers: make(map[validate.Event]int64), ids: make(map[string]int64), times: make(map[validate.Event]time.Time),
		shown: make(map[string][]uint32), updates: make(map[validate.Event]bool),
	}
}

// add takes in a change as the stream shows it.
func (d *documents) add(raw bson.Raw) {
	if d.Keeps {
		raw = slices.Clone(raw)
	}
	c, is, err := expect.OfChange(d.names.SourceDatabase, d.names.SourceCollection, raw, d.Images)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil && is {
		err = d.take(c)
	}
	if err != nil && d.failed == nil {
		d.failed = fmt.Errorf("change %v: %w", raw, err)
	}
}

// take takes in the next change. The caller holds mu.
func (d *documents) take(c expect.Change) error {
	d.counts[c.Aggregate]++
	d.total++
	this := changed{Change: c, version: d.counts[c.Aggregate]}
	d.numbers[validate.Event{Aggregate: c.Aggregate, Version: validate.Fingerprint(c.Sequence)}] = this.version
	if d.Full == expect.LookedUp {
		after, err := expect.ShownOf(c.After)
		if err != nil {
			return err
		}
		d.shown[c.Aggregate] = append(d.shown[c.Aggregate], after)
		if c.Operation == "update" {
			d.updates[this.event()] = true
		}
	}
	if d.Keeps {
		d.ids[c.Message[expect.MessageID]] = this.version
		d.times[this.event()] = c.At
		d.kept = append(d.kept, this)
		return nil
	}
	return d.into.addChange(this)
}

// seen is how many changes were seen.
func (d *documents) seen() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.total
}

// each calls each for the changes that were kept, which may ask for more of them.
func (d *documents) each(each func(changed) error) error {
	d.mu.Lock()
	kept, failed := d.kept, d.failed
	d.mu.Unlock()
	if failed != nil {
		return failed
	}
	for _, c := range kept {
		if err := each(c); err != nil {
			return err
		}
	}
	return nil
}

// writtenAt is the cluster time of a change, in whole seconds; false where it is not kept.
func (d *documents) writtenAt(e validate.Event) (time.Time, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, known := d.times[e]
	return at, known
}

// VersionOf is the version of the event with a message id, where the source is in
// documents mode and its changes are kept; 0 where it is not known.
func (w *Witness) VersionOf(id string) int64 {
	if w.documents == nil {
		return 0
	}
	w.documents.mu.Lock()
	defer w.documents.mu.Unlock()
	return w.documents.ids[id]
}

// marked is the event that a number in the shadow stands for.
func (w *Witness) marked(aggregate string, mark int64) validate.Event {
	e := validate.Event{Aggregate: aggregate, Version: mark}
	if w.documents == nil {
		return e
	}
	w.documents.mu.Lock()
	defer w.documents.mu.Unlock()
	return validate.Event{Aggregate: aggregate, Version: w.documents.numbers[e]}
}

// numbered gives sends the version of the change that their sequence names. One that
// names none keeps a number that no change has.
func (d *documents) numbered(sends []validate.Send) []validate.Send {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range sends {
		if version, found := d.numbers[sends[i].Event]; found {
			sends[i].Version = version
		}
	}
	return sends
}

// excused returns the sends as if an update showed the document that is owed, where it
// shows it as it was some time after: that is what looking it up means.
func (d *documents) excused(owed map[validate.Event]expect.Print, sends []validate.Send) []validate.Send {
	d.mu.Lock()
	defer d.mu.Unlock()
	sends = slices.Clone(sends)
	for i := range sends {
		e := sends[i].Event
		if d.updates[e] && slices.Contains(d.shown[e.Aggregate][e.Version-1:], sends[i].Print[expect.Shown]) {
			sends[i].Print[expect.Shown] = owed[e][expect.Shown]
		}
	}
	return sends
}

// stored is the change as an event of the source.
func (c *changed) stored() source.Stored {
	return source.Stored{Event: orders.Event{Aggregate: c.Aggregate, Version: c.version, Type: c.Operation, Time: c.Time}}
}

func (c *changed) event() validate.Event {
	return validate.Event{Aggregate: c.Aggregate, Version: c.version}
}

// oweChange takes in that a change must be on the topic.
func (r *record) oweChange(c changed) {
	r.owed[c.event()] = c.Message.Print()
	r.owing[c.Aggregate] = append(r.owing[c.Aggregate], c.version)
}

// addChange is add for a change.
func (r *record) addChange(c changed) error {
	r.oweChange(c)
	document := c.Document
	if r.projection.Documents.Full == expect.LookedUp {
		document = c.After // as it is looked up after the last change
	}
	data, err := hashOf(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: document})
	if err != nil {
		return err
	}
	r.events[c.Aggregate] = append(r.events[c.Aggregate], c.version)
	r.marks[c.Aggregate] = append(r.marks[c.Aggregate], validate.Fingerprint(c.Sequence))
	r.last[c.Aggregate] = last{data: data, Position: validate.Position{
		ID: c.Message[expect.MessageID], Type: c.Message[expect.Label], Sequence: c.Sequence, Time: c.Time.UnixMilli(),
	}}
	if r.projection.Keyed != "" {
		r.keyed.addChange(&c)
	}
	if r.projection.InGo {
		// To a projection in Go a change without a version has version 0.
		r.stepped.add(source.Stored{Event: orders.Event{Aggregate: c.Aggregate, Type: c.Message[expect.Label]}}, r.last[c.Aggregate].Position)
	}
	var shown map[string]any
	if document != nil {
		if shown, err = plain.Document(document); err != nil {
			return err
		}
	}
	r.changes.Apply(c.Aggregate, c.Operation, shown)
	return nil
}

// recompute takes in a change that was kept, but for what need not have come.
func (r *record) recompute(c changed, forgiven func(source.Stored) pardon) error {
	pardoned := due
	if forgiven != nil {
		pardoned = forgiven(c.stored())
	}
	switch pardoned {
	case due:
		return r.addChange(c)
	case late, without:
		r.oweChange(c)
	case unsent:
	}
	r.forgiven++
	return nil
}

// goOn has what is not kept taken in by another record.
func (d *documents) goOn(into *record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.into = into
}
