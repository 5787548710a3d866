package expect

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// What an update shows of its document, as the publisher's FULL_DOCUMENT has it.
const (
	LookedUp  = "updateLookup"
	Required  = "required"
	Available = "whenAvailable"
	Nothing   = "off"
)

// Images say what a publisher in documents mode shows of documents.
type Images struct {
	// Full is what an update shows of the document after it.
	Full string
	// Before says that changes show the document before them.
	Before bool
	// Hidden is what they do not show of documents.
	Hidden Hidden
}

// Change is one change of a document, as a change stream shows it that asks for the
// document before and after it.
type Change struct {
	Aggregate string
	// Sequence is the change's position, which is its sequence as well.
	Sequence  string
	Operation string
	Time      time.Time
	// At is the cluster time of the change, in whole seconds.
	At time.Time
	// Document is what the message shows of the document after the change; nil where it
	// shows none. After is the document after the change without what is hidden, nil of a
	// deletion.
	Document, After bson.Raw
	Message         Message
}

// OfChange returns the message that is owed for a change; false where it is none of a
// document whose id is a text.
func OfChange(database, collection string, raw bson.Raw, images Images) (Change, bool, error) {
	var c Change
	c.Operation, _ = raw.Lookup("operationType").StringValueOK()
	if !slices.Contains([]string{"insert", "update", "replace", "delete"}, c.Operation) {
		return c, false, nil
	}
	key, keyed := raw.Lookup("documentKey").DocumentOK()
	token, told := raw.Lookup("_id", "_data").StringValueOK()
	seconds, increment, timed := raw.Lookup("clusterTime").TimestampOK()
	wall, dated := raw.Lookup("wallTime").DateTimeOK()
	c.Aggregate, _ = key.Lookup("_id").StringValueOK()
	if c.Aggregate == "" {
		return c, false, nil
	}
	if !keyed || !told || !timed {
		return c, false, errors.New("has no key, no token or no cluster time")
	}
	c.Sequence = fmt.Sprintf("%08x%08x.%s", seconds, increment, strings.ToUpper(token))
	c.At = time.Unix(int64(seconds), 0)
	c.Time = c.At
	if dated {
		c.Time = time.UnixMilli(wall)
	}
	after, err := images.Hidden.in(raw, "fullDocument")
	if err != nil {
		return c, false, err
	}
	c.After = after
	if c.Operation != "update" || images.Full == Required || images.Full == Available {
		c.Document = c.After
	}
	fields, err := c.envelope(raw, images)
	if err != nil {
		return c, false, err
	}
	envelope, err := bson.Marshal(fields)
	if err != nil {
		return c, false, fmt.Errorf("write a document change: %w", err)
	}
	id := changeID(database, collection, key, c.Operation, c.Sequence)
	kind := collection + "." + c.Operation
	c.Message = Message{
		MessageID: id, SessionID: c.Aggregate, PartitionKey: c.Aggregate, Label: kind,
		SpecVersion: property("1.0"), ContractVersion: property("1"), ID: property(id),
		Source: property("/" + url.PathEscape(database) + "/" + url.PathEscape(collection)),
		Type:   property(kind), Subject: property(c.Aggregate), Operation: property(c.Operation),
		Sequence: property(c.Sequence), Version: none, Time: property(c.Time.UTC().Format(time.RFC3339Nano)),
		DataSchema: property(documentChange), Others: none,
	}
	c.Message[Data], c.Message[Shown], err = parted(envelope)
	switch {
	case len(envelope) == emptyDocument && c.Message[Shown] == none:
		c.Message[ContentType], c.Message[DataSchema], c.Message[Data] = none, none, none
	case keptByJSON(envelope):
		c.Message[ContentType] = bsonContent
	default:
		c.Message[ContentType] = jsonContent
	}
	return c, true, err
}

// documentChange is the schema of data that is a document change.
const documentChange = "urn:changerelay:document-change:1"

// emptyDocument is the length of a document without fields.
const emptyDocument = 5

// envelope is the data of the change's message.
func (c *Change) envelope(raw bson.Raw, images Images) (bson.D, error) {
	d := bson.D{}
	if c.Document != nil {
		d = append(d, bson.E{Key: shownField, Value: c.Document})
	}
	described, err := images.Hidden.described(raw)
	if err != nil {
		return nil, err
	}
	d = append(d, described...)
	before, err := images.Hidden.in(raw, "fullDocumentBeforeChange")
	if before != nil && images.Before {
		d = append(d, bson.E{Key: "before", Value: before})
	}
	return d, err
}

// shownField is the field of a document change with the document after it.
const shownField = "document"

// parted returns the text of a document change without the document, and that of the
// document, which one that was looked up may have younger than the change.
func parted(envelope bson.Raw) (rest, shown string, err error) {
	fields, err := envelope.Elements()
	if err != nil {
		return "", "", fmt.Errorf("read a document change: %w", err)
	}
	others := bson.D{}
	shown = none
	for _, field := range fields {
		document, whole := field.Value().DocumentOK()
		if field.Key() != shownField || !whole {
			others = append(others, bson.E{Key: field.Key(), Value: field.Value()})
			continue
		}
		if shown, err = Text(document, InOrder); err != nil {
			return "", "", err
		}
	}
	raw, err := bson.Marshal(others)
	if err != nil {
		return "", "", fmt.Errorf("write a document change: %w", err)
	}
	rest, err = Text(raw, InOrder)
	return rest, shown, err
}

// ShownOf is the print of the part Shown where it is a document; nil is none.
func ShownOf(document bson.Raw) (uint32, error) {
	text := none
	if document != nil {
		var err error
		if text, err = Text(document, InOrder); err != nil {
			return 0, err
		}
	}
	m := Message{Shown: text}
	return m.Print()[Shown], nil
}

// changeID is messageID of a change that has no version.
func changeID(database, collection string, key bson.Raw, operation, position string) string {
	hash := sha256.New()
	for _, part := range []string{database, collection, string(key), operation, position} {
		_ = binary.Write(hash, binary.BigEndian, uint64(len(part)))
		_, _ = hash.Write([]byte(part))
	}
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil))
}
