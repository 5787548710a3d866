package contract

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// DecodeOptions bound what Decode takes.
type DecodeOptions struct {
	// MaxDataBytes bounds the data after decompression. 0 means 100 MiB, the
	// largest message Service Bus carries.
	MaxDataBytes int64
}

func (o DecodeOptions) maxDataBytes() int64 {
	if o.MaxDataBytes > 0 {
		return o.MaxDataBytes
	}
	return 100 << 20
}

// Decode reads a message back. It takes hostile input: it never panics, unpacks
// no more data than the bound, and returns the joined *FieldErrors of a message
// that breaks the contract, short whatever the message holds. Properties that
// it does not know are ignored, so a newer sender may add some. The event's
// data may share memory with m.Body.
func Decode(m Message, o DecodeOptions) (Event, error) {
	r := reader{properties: m.Properties}
	r.constant(attrSpecVersion, specVersion)
	r.constant(attrContract, ContractVersion)
	e := Event{
		ID:          r.text(attrID),
		Source:      r.text(attrSource),
		Type:        r.text(attrType),
		AggregateID: r.text(attrSubject),
		Time:        r.time(attrTime),
		Operation:   Operation(r.text(attrOperation)),
		Sequence:    Sequence(r.text(attrSequence)),
		Position:    Position(r.text(attrPosition)),
		TraceParent: r.traceParent(),
		DataSchema:  r.optionalText(attrDataSchema),
		ContentType: m.ContentType,
		Data:        r.data(m, o.maxDataBytes()),
	}
	e.Version.Number, e.Version.Known = r.integer(attrVersion)
	e.Term, _ = r.integer(attrTerm)
	id := e.ID
	r.resend(&e)
	if m.ID != id && !r.has(attrID) {
		r.add(partMessageID, "is %s, but the event's id is %s", quote(m.ID), quote(id))
	}
	if m.SessionID != e.AggregateID && !r.has(attrSubject) {
		r.add(partSessionID, "is %s, but the event's subject is %s", quote(m.SessionID), quote(e.AggregateID))
	}
	r.check(&e)
	if err := r.err(); err != nil {
		return Event{}, err
	}
	return e, nil
}

// MessageVersion is the aggregate's version that a message states, for telling
// messages' order before they are decoded. Nothing else of the message is looked at.
func MessageVersion(m Message) Version {
	r := reader{properties: m.Properties}
	number, known := r.integer(attrVersion)
	return Version{Number: number, Known: known}
}

// reader takes attributes out of application properties and gathers what is
// wrong with them.
type reader struct {
	problems
	properties map[string]any
}

func (r *reader) value(attr string) (any, bool) {
	v, found := r.properties[prefix+attr]
	if !found {
		v, found = r.properties[prefixAlt+attr]
	}
	return v, found && v != nil
}

// text reads a required text.
func (r *reader) text(attr string) string {
	v, found := r.value(attr)
	if !found {
		r.add(attr, "is missing (application property %s%s)", prefix, attr)
		return ""
	}
	s, ok := v.(string)
	if !ok {
		r.add(attr, "is of type %T, not a string", v)
	}
	return s
}

// optionalText reads a text that may be absent.
func (r *reader) optionalText(attr string) string {
	if _, found := r.value(attr); !found {
		return ""
	}
	return r.text(attr)
}

func (r *reader) constant(attr, want string) {
	if v := r.text(attr); v != want {
		r.add(attr, "is %s; this reader knows %s", quote(v), want)
	}
}

func (r *reader) traceParent() string {
	v, _ := r.value(attrTraceParent)
	if s, ok := v.(string); ok && validTraceParent(s) {
		return s
	}
	return ""
}

func (r *reader) time(attr string) time.Time {
	v, found := r.value(attr)
	if !found {
		return time.Time{}
	}
	switch v := v.(type) {
	case time.Time:
		return v.UTC()
	case string:
		t, err := time.Parse(time.RFC3339Nano, v)
		if err != nil {
			r.add(attr, "is %s, not an RFC 3339 time", quote(v))
		}
		return t.UTC()
	}
	r.add(attr, "is of type %T, not a time", v)
	return time.Time{}
}

// integer takes any AMQP integer, and a decimal string, as CloudEvents asks of
// numbers beyond 32 bits.
func (r *reader) integer(attr string) (int64, bool) {
	v, found := r.value(attr)
	if !found {
		return 0, false
	}
	switch v := v.(type) {
	case int64:
		return v, true
	case int32:
		return int64(v), true
	case int16:
		return int64(v), true
	case int8:
		return int64(v), true
	case int:
		return int64(v), true
	case uint8:
		return int64(v), true
	case uint16:
		return int64(v), true
	case uint32:
		return int64(v), true
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v), true
		}
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n, true
		}
	}
	r.add(attr, "is %s, not a 64-bit integer", describe(v))
	return 0, false
}

func (r *reader) data(m Message, limit int64) []byte {
	data := m.Body
	if m.OtherBody != "" {
		r.add(partBody, "is an AMQP value or sequence, not data")
	}
	switch m.ContentEncoding {
	case "":
	case encodingGzip:
		unpacked, err := decompress(m.Body, limit)
		if err != nil {
			r.add(partBody, "%s", err)
		}
		data = unpacked
	default:
		r.add(partContentEncoding, "is %s, not gzip", quote(m.ContentEncoding))
	}
	if int64(len(data)) > limit {
		r.add(partBody, "has %d bytes, more than %d", len(data), limit)
	}
	return data
}

// describe says a value of a wrong kind, in few words whatever it holds.
func describe(v any) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case bool, float32, float64, uint64:
		return fmt.Sprintf("%v (%T)", v, v)
	}
	return fmt.Sprintf("of type %T", v)
}
