// Package mapping turns changes of MongoDB collections into events of the
// contract, in one of two ways.
//
// Events is for append-only events collections: each inserted document is one
// event of one aggregate, and configured field paths say where its parts are.
// What other operations mean is the policy OtherOperations.
//
// Documents is for plain collections: each insert, update, replacement and
// deletion of a document is one event, whose data says what the document is
// now, what changed, and, where the source keeps it, what it was before.
//
// An aggregate id may be a string, an integer, an ObjectId or a UUID. As text
// an integer is decimal, an ObjectId is 24 lower-case hex digits, and a UUID
// (binary subtype 4) is 8-4-4-4-12 lower-case hex digits.
//
// Data becomes relaxed MongoDB Extended JSON, written from the raw bytes.
package mapping

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/pkg/contract"
)

// None as a path says that the source has no such field.
const None = "-"

// Options are what both kinds of mappers need to know.
type Options struct {
	Database string
	// Collections are the names of those that are known; others may come.
	Collections []string
	// Hidden says which fields do not leave the source as they are.
	Hidden *Hidden
	// TraceParent is the path of a W3C trace context in a document, or None.
	TraceParent string
	// Keep says whether this stream carries an aggregate; of the empty id, whether
	// it sees to changes whose aggregate is not known. Nil carries all.
	Keep func(aggregateID string) bool
}

// Unmappable says why a change cannot be mapped.
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

func problem(path []string, format string, args ...any) error {
	return &Unmappable{Field: strings.Join(path, "."), Problem: fmt.Sprintf(format, args...)}
}

// common is what both kinds of mappers have.
type common struct {
	database    string
	collections []string
	sources     map[string]string // CloudEvents sources by collection
	hidden      *rule
	traceParent []string
	keep        func(aggregateID string) bool
}

func newCommon(o Options) common {
	c := common{
		database:    o.Database,
		collections: o.Collections,
		sources:     make(map[string]string, len(o.Collections)),
		hidden:      o.Hidden.root(),
		traceParent: split(o.TraceParent),
		keep:        o.Keep,
	}
	for _, name := range o.Collections {
		c.sources[name] = contract.Source(o.Database, name)
	}
	return c
}

func (c *common) source(collection string) string {
	if known, ok := c.sources[collection]; ok {
		return known
	}
	return contract.Source(c.database, collection)
}

func (c *common) carried(aggregateID string) bool { return c.keep == nil || c.keep(aggregateID) }

// astray is an error about a change whose aggregate is not known: nil where
// another stream sees to it.
func (c *common) astray(err error) error {
	if !c.carried("") {
		return nil
	}
	return err
}

// fillTraceParent takes a trace context from the document. The contract leaves
// out what is none.
func (c *common) fillTraceParent(event *contract.Event, document []byte) {
	if v, found := at(document, c.traceParent); found && v.kind == bson.TypeString {
		event.TraceParent = string(v.text())
	}
}

// identify gives the event its sequence and id.
func (c *common) identify(event *contract.Event, of *change) {
	event.Sequence = contract.SequenceOf(event.Version, event.Position)
	key := of.key
	if event.Version.Known {
		key = unsharded(key)
	}
	event.ID = contract.Identity{
		Database:    c.database,
		Collection:  of.collection,
		DocumentKey: key,
		Operation:   event.Operation,
		Version:     event.Version,
		Position:    event.Position,
	}.MessageID()
}

// unsharded is a document's key without the fields of a shard key: a change stream shows
// those, and a copy of the document does not. A key without an _id stays as it is.
func unsharded(key []byte) []byte {
	id, found := find(key, "_id")
	if alone := 4 + 1 + len("_id") + 1 + len(id.data) + 1; !found || len(key) == alone {
		return key
	}
	return bsoncore.NewDocumentBuilder().AppendValue("_id", bsoncore.Value{Type: bsoncore.Type(id.kind), Data: id.data}).Build()
}

// change is a change event taken apart. Documents that are not there are nil.
type change struct {
	operation   string
	collection  string
	document    []byte
	before      []byte
	key         []byte
	description []byte // of an update
	at          time.Time
}

// Operation types of change events. Snapshot is not one of the server's: it is
// a document that was there before the stream began.
const (
	insert   = "insert"
	update   = "update"
	replace  = "replace"
	remove   = "delete"
	snapshot = "snapshot"
)

var operations = []string{insert, update, replace, remove, snapshot}

// takeApart reads a change event.
// See https://www.mongodb.com/docs/manual/reference/change-events/
func takeApart(raw []byte, collections []string) (change, error) {
	var c change
	var clusterTime, wallTime time.Time
	e := walk(raw)
	for e.next() {
		name := string(e.key) // does not allocate: it does not outlive the comparison
		switch {
		case e.kind == bson.TypeString && name == "operationType":
			c.operation = interned(operations, e.text())
		case e.kind == bson.TypeEmbeddedDocument && name == "ns":
			if v, found := find(e.data, "coll"); found && v.kind == bson.TypeString {
				c.collection = interned(collections, v.text())
			}
		case e.kind == bson.TypeEmbeddedDocument && name == "fullDocument":
			c.document = e.data
		case e.kind == bson.TypeEmbeddedDocument && name == "fullDocumentBeforeChange":
			c.before = e.data
		case e.kind == bson.TypeEmbeddedDocument && name == "documentKey":
			c.key = e.data
		case e.kind == bson.TypeEmbeddedDocument && name == "updateDescription":
			c.description = e.data
		case e.kind == bson.TypeTimestamp && name == "clusterTime":
			clusterTime = time.Unix(int64(uint64(e.int64())>>32), 0).UTC()
		case e.kind == bson.TypeDateTime && name == "wallTime":
			wallTime = time.UnixMilli(e.int64()).UTC()
		}
	}
	if c.at = wallTime; c.at.IsZero() {
		c.at = clusterTime
	}
	if e.err != nil {
		return change{}, &Unmappable{Problem: "the change " + e.err.Error()}
	}
	return c, nil
}

// interned returns text as a string, without allocating where it is known.
func interned(known []string, text []byte) string {
	for _, name := range known {
		if name == string(text) {
			return name
		}
	}
	return string(text)
}

func split(path string) []string {
	if path == None || path == "" {
		return nil
	}
	return strings.Split(path, ".")
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

// aggregateID returns the text of a value found at path.
func aggregateID(v value, path []string) (string, error) {
	id, ok := idText(v)
	switch {
	case !ok:
		return "", problem(path, "is %s, not a string, integer, ObjectId or UUID", named(v))
	case id == "":
		return "", problem(path, "is empty: the change has no aggregate id")
	}
	return id, nil
}

// named names the type of a value that is no id.
func named(v value) string {
	if v.kind == bson.TypeBinary {
		return fmt.Sprintf("of type binary, subtype %d", v.data[4])
	}
	return "of type " + v.kind.String()
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
