package expect

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Part names one part of a message.
type Part int

// The parts that are compared.
const (
	MessageID Part = iota
	SessionID
	PartitionKey
	Label
	ContentType
	SpecVersion
	ContractVersion
	ID
	Source
	Type
	Subject
	Operation
	Sequence
	Version
	Time
	DataSchema
	Others
	Data
	// Shown is the document after the change in a document change, which is no part of
	// Data there.
	Shown
	parts
)

var partNames = [parts]string{
	"message id", "session id", "partition key", "label", "content type", "specversion", "contractversion", "id", "source",
	"type", "subject", "operation", "sequence", "aggregateversion", "time", "dataschema", "set of further properties", "data", "document after the change",
}

func (p Part) String() string { return partNames[p] }

// Message is a message part by part, each as text that says value and type.
type Message [parts]string

// none is the text of a part that is not there.
const none = "nothing"

// Print is a message in little room: parts that differ have different prints,
// but for one in four thousand million.
type Print [parts]uint32

// Print returns the message's print.
func (m *Message) Print() Print {
	var p Print
	for i, text := range m {
		h := fnv.New32a()
		_, _ = h.Write([]byte(text))
		p[i] = h.Sum32()
	}
	return p
}

// Differences returns the parts in which two prints differ.
func (p Print) Differences(other Print) []Part {
	var differing []Part
	for i := range p {
		if p[i] != other[i] {
			differing = append(differing, Part(i))
		}
	}
	return differing
}

// Of returns the message that is owed for the document of an event, as the
// publisher's defaults name its fields.
func Of(database, collection string, document bson.Raw) (Message, error) {
	aggregate, known := document.Lookup("aggregateId").StringValueOK()
	version, numbered := document.Lookup("version").AsInt64OK()
	kind, typed := document.Lookup("type").StringValueOK()
	if !known || !numbered || !typed {
		return Message{}, errors.New("is no event: aggregateId, version or type is missing")
	}
	id, err := messageID(database, collection, document, version)
	if err != nil {
		return Message{}, err
	}
	data, content, err := dataOf(document)
	if err != nil {
		return Message{}, err
	}
	return Message{
		MessageID:       id,
		SessionID:       aggregate,
		PartitionKey:    aggregate,
		Label:           kind,
		ContentType:     content,
		SpecVersion:     property("1.0"),
		ContractVersion: property("1"),
		ID:              property(id),
		Source:          property("/" + url.PathEscape(database) + "/" + url.PathEscape(collection)),
		Type:            property(kind),
		Subject:         property(aggregate),
		Operation:       property("insert"),
		Sequence:        property(digits(version)),
		Version:         property(version),
		Time:            timeOf(document),
		DataSchema:      none,
		Others:          none,
		Data:            data,
		Shown:           none,
	}, nil
}

// digits writes a version with as many digits as the highest has.
func digits(version int64) string { return fmt.Sprintf("%019d", version) }

// messageID is the SHA-256, as unpadded base64url, of five parts, each after its
// length in eight bytes, high ones first.
func messageID(database, collection string, document bson.Raw, version int64) (string, error) {
	key, err := bson.Marshal(bson.D{{Key: "_id", Value: document.Lookup("_id")}})
	if err != nil {
		return "", fmt.Errorf("take the key of a document: %w", err)
	}
	hash := sha256.New()
	for _, part := range []string{database, collection, string(key), "insert", digits(version)} {
		_ = binary.Write(hash, binary.BigEndian, uint64(len(part)))
		_, _ = hash.Write([]byte(part))
	}
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil)), nil
}

func timeOf(document bson.Raw) string {
	at, known := document.Lookup("time").DateTimeOK()
	if !known {
		return none
	}
	return property(time.UnixMilli(at).UTC().Format(time.RFC3339Nano))
}

// The content types of data.
const (
	jsonContent = "application/json"
	bsonContent = "application/bson"
)

// dataOf returns the data's text, and its content type: BSON where a field of it
// has a name that Extended JSON keeps for types.
func dataOf(document bson.Raw) (text, content string, err error) {
	data, found := document.Lookup("data").DocumentOK()
	if !found {
		return "{}", jsonContent, nil
	}
	if text, err = Text(data, InOrder); err != nil {
		return "", "", err
	}
	if keptByJSON(data) {
		return text, bsonContent, nil
	}
	return text, jsonContent, nil
}

// keptByJSON says whether a document, or array, has such a name at any depth.
func keptByJSON(document bson.Raw) bool {
	fields, _ := document.Elements() // Text has read them
	return slices.ContainsFunc(fields, func(field bson.RawElement) bool {
		name, value := field.Key(), field.Value()
		switch {
		case strings.HasPrefix(name, "$") && name != "$ref" && name != "$id" && name != "$db":
			return true
		case value.Type == bson.TypeEmbeddedDocument, value.Type == bson.TypeArray:
			return keptByJSON(value.Value)
		}
		return false
	})
}

// property writes a property with its type.
func property(v any) string {
	if text, ok := v.(string); ok {
		return strconv.Quote(text)
	}
	return fmt.Sprintf("%T %v", v, v)
}
