package expect

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// prefix is that of CloudEvents attributes among a message's properties.
const prefix = "cloudEvents_"

// attributes are the properties that are parts.
var attributes = map[string]Part{
	"specversion": SpecVersion, "contractversion": ContractVersion, "id": ID, "source": Source, "type": Type, "subject": Subject,
	"operation": Operation, "sequence": Sequence, "aggregateversion": Version, "time": Time, "dataschema": DataSchema,
}

// free are the properties that a message may have whatever its document says.
var free = []string{prefix + "position", prefix + "term", prefix + "traceparent", "Diagnostic-Id", "traceparent", "tracestate"}

// Seen returns the parts of a message that was received. One that was sent again has
// those of the message that it repeats.
func Seen(m *azservicebus.ReceivedMessage) Message {
	seen := Message{
		MessageID: m.MessageID, SessionID: text(m.SessionID), PartitionKey: text(m.PartitionKey), Label: text(m.Subject),
		ContentType: text(m.ContentType), Shown: none,
	}
	for name, part := range attributes {
		seen[part] = none
		if v, found := m.ApplicationProperties[prefix+name]; found {
			seen[part] = property(v)
		}
	}
	if seen[Operation] == property("snapshot") {
		seen[Operation] = property("insert")
	}
	if seen[ContentType] == "" { // to AMQP an empty one is there, to its readers it is not
		seen[ContentType] = none
	}
	seen[Others] = others(m, m.ApplicationProperties)
	original(m, &seen)
	seen[Data], seen[Shown] = body(m, seen[DataSchema] == property(documentChange))
	return seen
}

func text(s *string) string {
	if s == nil {
		return none
	}
	return *s
}

// others names what is set of the message beyond its parts, and the properties that are
// neither parts nor free.
func others(m *azservicebus.ReceivedMessage, properties map[string]any) string {
	var names []string
	for _, field := range [...]struct {
		name string
		is   *string
	}{{"correlation-id", m.CorrelationID}, {"reply-to", m.ReplyTo}, {"reply-to-group-id", m.ReplyToSessionID}, {"to", m.To}} {
		if text(field.is) != none {
			names = append(names, field.name)
		}
	}
	if encoding := encodingOf(m); encoding != none && encoding != packing {
		names = append(names, "content-encoding")
	}
	if m.ScheduledEnqueueTime != nil {
		names = append(names, "scheduled-enqueue-time")
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		attribute, prefixed := strings.CutPrefix(name, prefix)
		if _, part := attributes[attribute]; part && prefixed || slices.Contains(free, name) {
			continue
		}
		names = append(names, name)
	}
	if names == nil {
		return none
	}
	return strings.Join(names, " ")
}

// packing is the content encoding of a message whose body is packed, as that of any may be.
const packing = "gzip"

func encodingOf(m *azservicebus.ReceivedMessage) string {
	if m.RawAMQPMessage == nil || m.RawAMQPMessage.Properties == nil {
		return none
	}
	return text(m.RawAMQPMessage.Properties.ContentEncoding)
}

// body is the text of the message's data, of a document change but for the document
// after it; what cannot be read is told apart from anything that can.
func body(m *azservicebus.ReceivedMessage, change bool) (data, shown string) {
	content := m.Body
	if len(content) == 0 {
		return none, none
	}
	if encodingOf(m) == packing {
		unpacked, err := unpack(content)
		if err != nil {
			return "cannot be unpacked: " + err.Error(), none
		}
		content = unpacked
	}
	document := bson.Raw(content)
	if text(m.ContentType) != bsonContent {
		document = nil // what it is given is written to while content is still read
		if err := bson.UnmarshalExtJSON(content, false, &document); err != nil {
			return fmt.Sprintf("cannot be read: %v: %s", err, content), none
		}
	} else if err := document.Validate(); err != nil {
		return fmt.Sprintf("cannot be read: %v: %x", err, content), none
	}
	var err error
	if change {
		data, shown, err = parted(document)
	} else {
		data, err = Text(document, InOrder)
		shown = none
	}
	if err != nil {
		return fmt.Sprintf("cannot be read: %v: %s", err, content), none
	}
	return data, shown
}

func unpack(packed []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}
