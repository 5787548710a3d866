package mapping

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/relay"
)

// Documents maps the changes of plain collections. It implements relay.Mapper
// and may be used from any goroutine.
//
// An insert, update, replacement or deletion of a document is an event of the
// type <collection>.<operation>, ordered by its position. Its data is a
// document change of the contract (contract.DocumentChange). Anything else
// carries no event.
type Documents struct {
	common
	aggregateID []string
	qualified   bool
}

// NewDocuments returns a mapper of documents whose aggregate id is at the given
// path: _id, or a field that never changes. With qualified set, the ids begin
// with the collection's name and a slash, because documents of two collections
// may have one id.
func NewDocuments(o Options, aggregateID string, qualified bool) *Documents {
	return &Documents{common: newCommon(o), aggregateID: split(aggregateID), qualified: qualified}
}

// Map implements relay.Mapper.
func (m *Documents) Map(read relay.Change) (contract.Event, bool, error) {
	c, err := takeApart(read.Raw, m.collections)
	if err != nil {
		return contract.Event{}, false, m.astray(err)
	}
	switch c.operation {
	case insert, update, replace, remove, snapshot:
	default:
		return contract.Event{}, false, nil
	}
	event := contract.Event{
		Source:    m.source(c.collection),
		Type:      c.collection + "." + c.operation,
		Operation: contract.Operation(c.operation),
		Position:  read.Position,
		Time:      c.at,
	}
	var known bool
	if event.AggregateID, known, err = m.idOf(&c); err != nil && known {
		return contract.Event{}, false, m.astray(err)
	}
	if err != nil { // another partition may have been shown more, and have left it to this one
		return contract.Event{}, false, err
	}
	if !m.carried(event.AggregateID) {
		return contract.Event{}, false, nil
	}
	event.Data, event.ContentType, err = inJSONOrBSON(
		func() ([]byte, error) { return m.dataOf(&c) },
		func() ([]byte, error) { return c.inBSON(m.hidden) },
	)
	if err != nil {
		return contract.Event{}, false, &Unmappable{Problem: "the document " + err.Error()}
	}
	if event.Data == nil {
		event.ContentType = ""
	} else {
		event.DataSchema = contract.DocumentChange
	}
	m.fillTraceParent(&event, c.document)
	m.identify(&event, &c)
	return event, true, nil
}

// idOf looks for the aggregate id wherever the change shows the document, and reports
// whether it was there.
func (m *Documents) idOf(c *change) (id string, shown bool, err error) {
	for _, document := range [...][]byte{c.document, c.before, c.key} {
		v, found := at(document, m.aggregateID)
		if !found {
			continue
		}
		id, err := aggregateID(v, m.aggregateID)
		if err == nil && m.qualified {
			id = c.collection + "/" + id
		}
		return id, true, err
	}
	return "", false, problem(m.aggregateID, "is missing: this %s does not show the aggregate id; "+
		"for a field other than _id the source must keep pre-images (FULL_DOCUMENT_BEFORE_CHANGE)", c.operation)
}

// dataOf writes the document change; nil when there is nothing to say beyond the
// operation.
func (m *Documents) dataOf(c *change) ([]byte, error) {
	size := len(c.document) + len(c.before) + len(c.description)
	if size == 0 {
		return nil, nil
	}
	w := envelope{text: append(make([]byte, 0, size+size/4+64), '{'), hidden: m.hidden}
	if c.document != nil {
		w.document("document", c.document)
	}
	if c.description != nil {
		w.description(c.description)
	}
	if c.before != nil {
		w.document("before", c.before)
	}
	return append(w.text, '}'), w.err
}

// envelope writes the fields of a document change. After the first error it
// writes nothing more.
type envelope struct {
	text   []byte
	hidden *rule
	fields int
	err    error
}

// name begins a field.
func (w *envelope) name(name string) {
	if w.fields++; w.fields > 1 {
		w.text = append(w.text, ',')
	}
	w.text = append(w.text, '"')
	w.text = append(w.text, name...)
	w.text = append(w.text, '"', ':')
}

func (w *envelope) document(name string, document []byte) {
	if w.err == nil {
		w.name(name)
		w.text, w.err = appendJSON(w.text, document, w.hidden)
	}
}

// description writes what an update changed.
// See https://www.mongodb.com/docs/manual/reference/change-events/update/
func (w *envelope) description(document []byte) {
	e := walk(document)
	for w.err == nil && e.next() {
		switch {
		case e.kind == bson.TypeEmbeddedDocument && string(e.key) == "updatedFields":
			w.changed(e.data)
		case e.kind == bson.TypeArray && string(e.key) == "removedFields":
			w.removed(e.data)
		case e.kind == bson.TypeArray && string(e.key) == "truncatedArrays":
			w.truncated(e.data)
		}
	}
	if w.err == nil {
		w.err = e.err
	}
}

// changed writes the new values by their paths.
func (w *envelope) changed(fields []byte) {
	w.name("changed")
	w.text = append(w.text, '{')
	e := walk(fields)
	for first := true; e.next(); {
		field := w.hidden.underDotted(string(e.key))
		if field.drops() {
			continue
		}
		if ambiguous(e.key) {
			w.err = errNotInJSON
			return
		}
		if !first {
			w.text = append(w.text, ',')
		}
		first = false
		w.text = append(appendText(w.text, e.key), ':')
		if w.text, w.err = appendValue(w.text, e.value, field, 1); w.err != nil {
			return
		}
	}
	w.text, w.err = append(w.text, '}'), e.err
}

// removed writes the paths of fields that are gone.
func (w *envelope) removed(paths []byte) {
	w.list("removed", paths, removedPath)
}

func removedPath(v value) (value, bool) { return v, v.kind == bson.TypeString }

// truncated writes which arrays were cut, and to what length.
func (w *envelope) truncated(arrays []byte) {
	w.list("truncated", arrays, truncatedPath)
}

func truncatedPath(v value) (value, bool) {
	if v.kind != bson.TypeEmbeddedDocument {
		return value{}, false
	}
	path, found := find(v.data, "field")
	return path, found && path.kind == bson.TypeString
}

// list writes the values of an array whose path, which pathOf gives, is not
// dropped. An empty list is left out.
func (w *envelope) list(name string, array []byte, pathOf func(value) (value, bool)) {
	e := walk(array)
	begun := false
	for e.next() {
		path, ok := pathOf(e.value)
		if !ok || w.hidden.underDotted(string(path.text())).drops() {
			continue
		}
		if begun {
			w.text = append(w.text, ',')
		} else {
			w.name(name)
			w.text = append(w.text, '[')
			begun = true
		}
		if w.text, w.err = appendValue(w.text, e.value, nil, 1); w.err != nil {
			return
		}
	}
	if begun {
		w.text = append(w.text, ']')
	}
	w.err = e.err
}
