package contract

import (
	"net/url"
	"time"
)

// Content types of Event.Data.
const (
	// ContentTypeJSON is relaxed MongoDB Extended JSON v2, with integers of 64 bits
	// as {"$numberLong": "5"}, so that they are read back as such.
	ContentTypeJSON = "application/json"
	// ContentTypeBSON is one BSON document. It carries what Extended JSON cannot:
	// documents with fields that look like a type, such as $oid.
	ContentTypeBSON = "application/bson"
)

// DocumentChange is the DataSchema of a change of a document that is not an event
// itself. Its data is a JSON object whose fields are all optional:
//
//   - document: the document after the change, or as the source looked it up
//     some time after.
//   - changed: of an update, the new values by their paths, dots between levels.
//   - removed: of an update, the paths of fields that are gone.
//   - truncated: of an update, arrays that were cut: objects of field and newSize.
//   - before: the document before the change, where the source keeps it.
const DocumentChange = "urn:changerelay:document-change:1"

// Operation says what happened to the source document.
type Operation string

// The operations of a change. Snapshot stands for a document that was there
// before the stream began.
const (
	Insert   Operation = "insert"
	Update   Operation = "update"
	Replace  Operation = "replace"
	Delete   Operation = "delete"
	Snapshot Operation = "snapshot"
)

func (o Operation) valid() bool {
	switch o {
	case Insert, Update, Replace, Delete, Snapshot:
		return true
	}
	return false
}

// Version is an aggregate's version as its source numbers it. The zero Version
// is unknown: the source numbers none.
type Version struct {
	Number int64
	Known  bool
}

// VersionOf returns the known version n.
func VersionOf(n int64) Version { return Version{Number: n, Known: true} }

// Event is one change of one aggregate.
type Event struct {
	// ID names the change: see Identity.MessageID. With that of a resend behind it,
	// at most MaxIDLength characters.
	ID string
	// Source is the CloudEvents source, a URI reference: see Source.
	Source string
	// Type is the event's type, e.g. OrderPlaced.
	Type string
	// AggregateID is the aggregate the event belongs to. At most
	// MaxAggregateIDLength characters.
	AggregateID string
	// Time is when the event happened, by its source; zero where unknown.
	Time time.Time
	// Operation is what happened to the source document.
	Operation Operation
	// Sequence orders the aggregate's events bytewise: see SequenceOf.
	Sequence Sequence
	// Position is where the change stands in its stream.
	Position Position
	// Version is the aggregate's version after the event, where the source numbers them.
	Version Version
	// Term is the sender's term of leadership. It says who sent, and orders nothing.
	Term int64
	// TraceParent is a W3C trace context, or empty. A malformed one is left out
	// of a message and ignored in one: tracing never holds up a change.
	TraceParent string
	// DataSchema says what Data is where it is not the event's own payload:
	// DocumentChange, or empty.
	DataSchema string
	// Resend says for which resend the change is sent again; zero where it is sent as
	// it comes.
	Resend Resend
	// ContentType is the format of Data; empty when there is no data (a delete).
	ContentType string
	// Data is the event's payload.
	Data []byte
}

// Source returns the CloudEvents source of a collection: a URI reference of two
// path segments, escaped where a name needs it.
func Source(database, collection string) string {
	return "/" + url.PathEscape(database) + "/" + url.PathEscape(collection)
}
