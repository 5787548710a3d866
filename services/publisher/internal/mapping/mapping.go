// Package mapping turns the changes of an append-only events collection into
// events: each inserted document is one event of one aggregate, and configured
// field paths say where its parts are.
//
// Which changes carry an event:
//
//   - insert: yes.
//   - delete: no, and it is passed over. Old events are deleted by retention (a
//     TTL index, an archive job); that does not undo them.
//   - drop, rename, dropDatabase, invalidate and the like: no, they say nothing
//     of an aggregate.
//   - update, replace: they should carry none, because events do not change. It
//     is not known what one that happens means, so it is unmappable, and an
//     operator sees it.
//
// An aggregate id may be a string, an integer, an ObjectId or a UUID. As text
// an integer is decimal, an ObjectId is 24 lower-case hex digits, and a UUID
// (binary subtype 4) is 8-4-4-4-12 lower-case hex digits.
//
// Data becomes relaxed MongoDB Extended JSON, written from the raw bytes.
package mapping

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/relay"
)

// None as a path says that the source has no such field.
const None = "-"

// Paths says where the parts of an event are in its document: field names,
// with dots between levels.
type Paths struct {
	AggregateID string
	Type        string
	// Version is the aggregate's version after the event. Where it is a path,
	// every event must have it: a sequence that rests on versions in some events
	// and on positions in others orders nothing. None when the source numbers none.
	Version string
	// Time is when the event happened; None, or an event without it, is unknown.
	Time string
	// Data is the payload, a document; None takes the whole event document.
	Data string
}

// Unmappable says why a change can not be mapped.
type Unmappable struct {
	// Field is the path of the field that is wrong; empty when it is no field.
	Field   string
	Problem string
}

func (e *Unmappable) Error() string {
	if e.Field == "" {
		return e.Problem
	}
	return fmt.Sprintf("field %q %s", e.Field, e.Problem)
}

// Events maps the changes of one events collection. It implements relay.Mapper
// and may be used from any goroutine.
type Events struct {
	source                                 string
	database, collection                   string
	aggregateID, kind, version, time, data []string
}

// NewEvents returns the mapper of a collection.
func NewEvents(database, collection string, paths Paths) *Events {
	return &Events{
		source:      contract.Source(database, collection),
		database:    database,
		collection:  collection,
		aggregateID: split(paths.AggregateID),
		kind:        split(paths.Type),
		version:     split(paths.Version),
		time:        split(paths.Time),
		data:        split(paths.Data),
	}
}

func split(path string) []string {
	if path == None {
		return nil
	}
	return strings.Split(path, ".")
}

// Map implements relay.Mapper.
func (m *Events) Map(change relay.Change) (contract.Event, bool, error) {
	operation, document, key, err := parts(change.Raw)
	if err != nil {
		return contract.Event{}, false, &Unmappable{Problem: "the change " + err.Error()}
	}
	switch operation {
	case "insert":
	case "update", "replace":
		return contract.Event{}, false, &Unmappable{Problem: "an event was changed by " + operation + "; events are only ever inserted"}
	default:
		return contract.Event{}, false, nil
	}
	event := contract.Event{
		Source:      m.source,
		Operation:   contract.Insert,
		Position:    change.Position,
		ContentType: contract.ContentTypeJSON,
	}
	for _, fill := range []func(*contract.Event, []byte) error{
		m.fillAggregateID, m.fillType, m.fillVersion, m.fillTime, m.fillData,
	} {
		if err := fill(&event, document); err != nil {
			return contract.Event{}, false, err
		}
	}
	event.Sequence = contract.SequenceOf(event.Version, event.Position)
	event.ID = contract.Identity{
		Database:    m.database,
		Collection:  m.collection,
		DocumentKey: key,
		Operation:   event.Operation,
		Version:     event.Version,
		Position:    event.Position,
	}.MessageID()
	return event, true, nil
}

// parts takes a change event apart.
// See https://www.mongodb.com/docs/manual/reference/change-events/
func parts(change []byte) (operation string, document, key []byte, err error) {
	e := walk(change)
	for e.next() {
		switch {
		case e.kind == bson.TypeString && string(e.key) == "operationType":
			operation = string(e.text())
		case e.kind == bson.TypeEmbeddedDocument && string(e.key) == "fullDocument":
			document = e.data
		case e.kind == bson.TypeEmbeddedDocument && string(e.key) == "documentKey":
			key = e.data
		}
	}
	return operation, document, key, e.err
}

// at returns the value at a path, and false where it is missing or null.
func at(document []byte, path []string) (value, bool) {
	for i, name := range path {
		v, found := find(document, name)
		switch {
		case !found || v.kind == bson.TypeNull || v.kind == bson.TypeUndefined:
			return value{}, false
		case i == len(path)-1:
			return v, true
		case v.kind != bson.TypeEmbeddedDocument:
			return value{}, false
		}
		document = v.data
	}
	return value{}, false
}

func problem(path []string, format string, args ...any) error {
	return &Unmappable{Field: strings.Join(path, "."), Problem: fmt.Sprintf(format, args...)}
}

func (m *Events) fillAggregateID(event *contract.Event, document []byte) error {
	v, found := at(document, m.aggregateID)
	if !found {
		return problem(m.aggregateID, "is missing: the event has no aggregate id")
	}
	id, ok := idText(v)
	switch {
	case !ok:
		return problem(m.aggregateID, "is of type %s, not a string, integer, ObjectId or UUID", v.kind)
	case id == "":
		return problem(m.aggregateID, "is empty: the event has no aggregate id")
	}
	event.AggregateID = id
	return nil
}

// idText returns an id as text, the same text for the same value always.
func idText(v value) (string, bool) {
	switch v.kind {
	case bson.TypeString:
		return string(v.text()), true
	case bson.TypeInt32:
		return strconv.FormatInt(int64(v.int32()), 10), true
	case bson.TypeInt64:
		return strconv.FormatInt(v.int64(), 10), true
	case bson.TypeObjectID:
		return hex.EncodeToString(v.data), true
	case bson.TypeBinary:
		subtype, data, ok := v.binary()
		if !ok || subtype != bson.TypeBinaryUUID || len(data) != 16 {
			return "", false
		}
		return fmt.Sprintf("%x-%x-%x-%x-%x", data[:4], data[4:6], data[6:8], data[8:10], data[10:]), true
	default:
		return "", false
	}
}

func (m *Events) fillType(event *contract.Event, document []byte) error {
	v, found := at(document, m.kind)
	switch {
	case !found:
		return problem(m.kind, "is missing: the event has no type")
	case v.kind != bson.TypeString:
		return problem(m.kind, "is of type %s, not a string", v.kind)
	}
	event.Type = string(v.text())
	return nil
}

func (m *Events) fillVersion(event *contract.Event, document []byte) error {
	if m.version == nil {
		return nil
	}
	v, found := at(document, m.version)
	if !found {
		return problem(m.version, "is missing: the event has no version; set FIELD_VERSION=%s if the source numbers none", None)
	}
	var number int64
	switch v.kind {
	case bson.TypeInt32:
		number = int64(v.int32())
	case bson.TypeInt64:
		number = v.int64()
	case bson.TypeDouble:
		f := math.Float64frombits(uint64(v.int64()))
		if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return problem(m.version, "is %v, not a whole number", f)
		}
		number = int64(f)
	default:
		return problem(m.version, "is of type %s, not a whole number", v.kind)
	}
	if number < 0 {
		return problem(m.version, "is %d, below 0", number)
	}
	event.Version = contract.VersionOf(number)
	return nil
}

func (m *Events) fillTime(event *contract.Event, document []byte) error {
	v, found := at(document, m.time)
	if !found {
		return nil
	}
	switch v.kind {
	case bson.TypeDateTime:
		event.Time = time.UnixMilli(v.int64()).UTC()
	case bson.TypeString:
		t, err := time.Parse(time.RFC3339Nano, string(v.text()))
		if err != nil {
			return problem(m.time, "is %q, not an RFC 3339 time", v.text())
		}
		event.Time = t.UTC()
	default:
		return problem(m.time, "is of type %s, not a date", v.kind)
	}
	if year := event.Time.Year(); year < 0 || year > 9999 {
		return problem(m.time, "is in the year %d, which RFC 3339 can not write", year)
	}
	return nil
}

// emptyDocument is the data of an event that has none.
var emptyDocument = []byte("{}")

func (m *Events) fillData(event *contract.Event, document []byte) error {
	data := document
	if m.data != nil {
		v, found := at(document, m.data)
		switch {
		case !found:
			event.Data = bytes.Clone(emptyDocument)
			return nil
		case v.kind != bson.TypeEmbeddedDocument:
			return problem(m.data, "is of type %s, not a document", v.kind)
		}
		data = v.data
	}
	text, err := appendJSON(make([]byte, 0, len(data)+len(data)/4), data)
	if err != nil {
		return problem(m.data, "%s", err)
	}
	event.Data = text
	return nil
}
