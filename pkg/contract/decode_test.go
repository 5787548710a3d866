package contract_test

import (
	"bytes"
	"compress/gzip"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"changerelay/pkg/contract"
)

// foreign is some sender's own type.
type foreign struct{ Text string }

func TestDecode_DecodeSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		edit func(*contract.Message)
		want []string
	}{
		{name: "a whole message is read", edit: func(*contract.Message) {}},
		{
			name: "a message of somebody else names every property that it lacks",
			edit: func(m *contract.Message) { *m = contract.Message{Body: []byte("hello")} },
			want: []string{
				"specversion: is missing (application property cloudEvents_specversion)",
				"contractversion: is missing (application property cloudEvents_contractversion)",
				"id: is missing (application property cloudEvents_id)",
				"source: is missing (application property cloudEvents_source)",
				"type: is missing (application property cloudEvents_type)",
				"subject: is missing (application property cloudEvents_subject)",
				"operation: is missing (application property cloudEvents_operation)",
				"sequence: is missing (application property cloudEvents_sequence)",
				"position: is missing (application property cloudEvents_position)",
				"contentType: is empty, but there is data",
			},
		},
		{
			name: "problems of reading and of the event come together",
			edit: func(m *contract.Message) {
				m.Properties["cloudEvents_time"] = 5
				m.Properties["cloudEvents_operation"] = "upsert"
			},
			want: []string{
				"time: is of type int, not a time",
				`operation: is "upsert", not one of insert, update, replace, delete, snapshot`,
			},
		},
		{
			name: "another CloudEvents version is refused",
			edit: func(m *contract.Message) { m.Properties["cloudEvents_specversion"] = "0.3" },
			want: []string{`specversion: is "0.3"; this reader knows 1.0`},
		},
		{
			name: "an empty CloudEvents version is refused",
			edit: func(m *contract.Message) { m.Properties["cloudEvents_specversion"] = "" },
			want: []string{`specversion: is ""; this reader knows 1.0`},
		},
		{
			name: "a newer contract is refused",
			edit: func(m *contract.Message) { m.Properties["cloudEvents_contractversion"] = "2" },
			want: []string{`contractversion: is "2"; this reader knows 1`},
		},
		{
			name: "an empty contract version is refused",
			edit: func(m *contract.Message) { m.Properties["cloudEvents_contractversion"] = "" },
			want: []string{`contractversion: is ""; this reader knows 1`},
		},
		{
			name: "a property without a value is missing",
			edit: func(m *contract.Message) { m.Properties["cloudEvents_type"] = nil },
			want: []string{"type: is missing (application property cloudEvents_type)"},
		},
		{
			name: "text is a string",
			edit: func(m *contract.Message) { m.Properties["cloudEvents_type"] = []byte("OrderPlaced") },
			want: []string{"type: is of type []uint8, not a string"},
		},
		{
			name: "text is UTF-8",
			edit: func(m *contract.Message) { m.Properties["cloudEvents_source"] = "/shop/\xff" },
			want: []string{"source: is not valid UTF-8"},
		},
		{
			name: "the message id is the event's",
			edit: func(m *contract.Message) { m.ID = "another" },
			want: []string{`messageId: is "another", but the event's id is "` + newEvent().ID + `"`},
		},
		{
			name: "the session is the aggregate's",
			edit: func(m *contract.Message) { m.SessionID = "" },
			want: []string{`sessionId: is "", but the event's subject is "order-000123"`},
		},
		{
			name: "huge values are quoted in part",
			edit: func(m *contract.Message) { m.ID = strings.Repeat("é", 1<<20) },
			want: []string{`messageId: is "` + strings.Repeat("é", 32) + `"…, but the event's id is "` + newEvent().ID + `"`},
		},
		{
			name: "a time is RFC 3339",
			edit: func(m *contract.Message) { m.Properties["cloudEvents_time"] = "yesterday" },
			want: []string{`time: is "yesterday", not an RFC 3339 time`},
		},
		{
			name: "a time beyond year 9999 is refused, however it is written",
			edit: func(m *contract.Message) {
				m.Properties["cloudEvents_time"] = time.Date(292_277_000, 1, 1, 0, 0, 0, 0, time.UTC)
			},
			want: []string{"time: is outside the years 0000 to 9999"},
		},
		{
			name: "a time that its zone moves out of range is refused",
			edit: func(m *contract.Message) { m.Properties["cloudEvents_time"] = "0000-01-01T00:00:00+01:00" },
			want: []string{"time: is outside the years 0000 to 9999"},
		},
		{
			name: "a version is not NaN",
			edit: func(m *contract.Message) { m.Properties["cloudEvents_aggregateversion"] = math.NaN() },
			want: []string{"aggregateversion: is NaN (float64), not a 64-bit integer"},
		},
		{
			name: "a version is not a fraction, not even a whole one",
			edit: func(m *contract.Message) { m.Properties["cloudEvents_aggregateversion"] = 42.0 },
			want: []string{"aggregateversion: is 42 (float64), not a 64-bit integer"},
		},
		{
			name: "a version fits 64 bits with a sign",
			edit: func(m *contract.Message) { m.Properties["cloudEvents_aggregateversion"] = uint64(math.MaxInt64 + 1) },
			want: []string{"aggregateversion: is 9223372036854775808 (uint64), not a 64-bit integer"},
		},
		{
			name: "a version's text fits 64 bits",
			edit: func(m *contract.Message) { m.Properties["cloudEvents_aggregateversion"] = strings.Repeat("9", 1<<20) },
			want: []string{`aggregateversion: is "` + strings.Repeat("9", 64) + `"…, not a 64-bit integer`},
		},
		{
			name: "a version that disagrees with the sequence makes the sequence wrong",
			edit: func(m *contract.Message) { m.Properties["cloudEvents_aggregateversion"] = int64(43) },
			want: []string{`sequence: is "0000000000000000042", but version and position make it "0000000000000000043"`},
		},
		{
			name: "a term is an integer, and a foreign type is named, not printed",
			edit: func(m *contract.Message) {
				m.Properties["cloudEvents_term"] = foreign{Text: strings.Repeat("x", 1<<20)}
			},
			want: []string{"term: is of type contract_test.foreign, not a 64-bit integer"},
		},
		{
			name: "a term counts from 0",
			edit: func(m *contract.Message) { m.Properties["cloudEvents_term"] = int8(-1) },
			want: []string{"term: is -1, below 0"},
		},
		{
			name: "an unknown content encoding is refused",
			edit: func(m *contract.Message) { m.ContentEncoding = "br" },
			want: []string{`contentEncoding: is "br", not gzip`},
		},
		{
			name: "gzip that is none is refused",
			edit: func(m *contract.Message) { m.ContentEncoding = "gzip" },
			want: []string{"body: is not gzip: gzip: invalid header"},
		},
		{
			name: "gzip that breaks off is refused",
			edit: func(m *contract.Message) { gzipBody(m, m.Body); m.Body = m.Body[:len(m.Body)-1] },
			want: []string{"body: is not gzip: unexpected EOF"},
		},
		{
			name: "gzip with a wrong checksum is refused",
			edit: func(m *contract.Message) { gzipBody(m, m.Body); m.Body[len(m.Body)-5] ^= 1 },
			want: []string{"body: is not gzip: gzip: invalid checksum"},
		},
		{
			name: "gzip of nothing has no data",
			edit: func(m *contract.Message) { gzipBody(m, nil) },
			want: []string{"body: is empty, but the content type is application/json"},
		},
		{
			name: "a content type with parameters is refused",
			edit: func(m *contract.Message) { m.ContentType = "application/json; charset=utf-8" },
			want: []string{`contentType: is "application/json; charset=utf-8", not application/json or application/bson`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := mustEncode(t, newEvent(), contract.EncodeOptions{})
			tt.edit(&m)
			e, err := contract.Decode(m, contract.DecodeOptions{})
			checkProblems(t, err, tt.want...)
			if whole := e.ID != ""; whole != (err == nil) {
				t.Errorf("got event %+v with error %v, want one of the two", e, err)
			}
		})
	}
}

func TestDecode_DecodeIsTolerant(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		edit func(*contract.Message)
		want func(*contract.Event)
	}{
		{
			name: "properties that it does not know are passed over",
			edit: func(m *contract.Message) { m.Properties["cloudEvents_region"], m.Properties["Diagnostic-Id"] = "eu", 5 },
		},
		{
			name: "attributes may have the binding's other prefix",
			edit: func(m *contract.Message) {
				for name, value := range m.Properties {
					delete(m.Properties, name)
					m.Properties[strings.Replace(name, "_", ":", 1)] = value
				}
			},
		},
		{
			name: "a time may be an AMQP timestamp in any zone",
			edit: func(m *contract.Message) {
				m.Properties["cloudEvents_time"] = newEvent().Time.In(time.FixedZone("", -7*3600))
			},
		},
		{
			name: "a time may be missing",
			edit: func(m *contract.Message) { delete(m.Properties, "cloudEvents_time") },
			want: func(e *contract.Event) { e.Time = time.Time{} },
		},
		{
			name: "a version may be any integer, here a short one",
			edit: func(m *contract.Message) { m.Properties["cloudEvents_aggregateversion"] = uint8(42) },
		},
		{
			name: "a version may be decimal text",
			edit: func(m *contract.Message) { m.Properties["cloudEvents_aggregateversion"] = "42" },
		},
		{
			name: "a term may be missing",
			edit: func(m *contract.Message) { delete(m.Properties, "cloudEvents_term") },
			want: func(e *contract.Event) { e.Term = 0 },
		},
		{
			name: "a malformed trace context is ignored",
			edit: func(m *contract.Message) { m.Properties["cloudEvents_traceparent"] = "00-xyz" },
		},
		{
			name: "a trace context of another type is ignored",
			edit: func(m *contract.Message) { m.Properties["cloudEvents_traceparent"] = 5 },
		},
		{
			name: "a body may be compressed in several members",
			edit: func(m *contract.Message) {
				first, second := m.Body[:10], m.Body[10:]
				gzipBody(m, first)
				head := m.Body
				gzipBody(m, second)
				m.Body = append(head, m.Body...)
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := mustEncode(t, newEvent(), contract.EncodeOptions{})
			tt.edit(&m)
			want := newEvent()
			if tt.want != nil {
				tt.want(&want)
			}
			got, err := contract.Decode(m, contract.DecodeOptions{})
			checkProblems(t, err)
			checkEvent(t, got, want)
		})
	}
}

func TestDecode_DecodeTakesEveryIntegerType(t *testing.T) {
	t.Parallel()
	for _, version := range []any{int(42), int8(42), int16(42), int32(42), int64(42), uint8(42), uint16(42), uint32(42), uint64(42)} {
		m := mustEncode(t, newEvent(), contract.EncodeOptions{})
		m.Properties["cloudEvents_aggregateversion"] = version
		if got, err := contract.Decode(m, contract.DecodeOptions{}); err != nil || got.Version != contract.VersionOf(42) {
			t.Errorf("%T: got %+v, %v, want version 42", version, got.Version, err)
		}
	}
}

func TestDecode_DecodeBoundsTheData(t *testing.T) {
	t.Parallel()
	data := []byte(`{"a":"` + strings.Repeat("a", 1000) + `"}`)
	tests := []struct {
		name  string
		edit  func(*contract.Message)
		limit int64
		want  []string
	}{
		{name: "plain data at the bound is read", limit: 1008},
		{name: "plain data above it is refused", limit: 1007, want: []string{"body: has 1008 bytes, more than 1007"}},
		{name: "compressed data at the bound is read", limit: 1008, edit: func(m *contract.Message) { gzipBody(m, data) }},
		{
			name: "compressed data above it is refused", limit: 1007, edit: func(m *contract.Message) { gzipBody(m, data) },
			want: []string{"body: unpacks to more than 1007 bytes"},
		},
		{name: "the highest bound is one", limit: math.MaxInt64, edit: func(m *contract.Message) { gzipBody(m, data) }},
		{
			name: "a trailer that promises less than there is changes nothing", limit: 1008,
			edit: func(m *contract.Message) { gzipBody(m, data); m.Body[len(m.Body)-4] = 1 },
			want: []string{"body: is not gzip: gzip: invalid checksum"},
		},
		{
			name: "without a bound of its own a reader takes 100 MiB",
			edit: func(m *contract.Message) { gzipBody(m, make([]byte, 1<<20)); m.Body = bytes.Repeat(m.Body, 101) },
			want: []string{"body: unpacks to more than 104857600 bytes"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := newEvent()
			e.Data = data
			m := mustEncode(t, e, contract.EncodeOptions{})
			if tt.edit != nil {
				tt.edit(&m)
			}
			_, err := contract.Decode(m, contract.DecodeOptions{MaxDataBytes: tt.limit})
			checkProblems(t, err, tt.want...)
		})
	}
}

// It measures what the whole process allocates, so it runs alone.
func TestDecode_UnpackingCostsNoMoreThanTheBound(t *testing.T) {
	tests := []struct {
		name  string
		edit  func(*contract.Message)
		limit int64
		most  uint64
		want  string
	}{
		{
			name:  "a bomb of 1 GiB",
			edit:  func(m *contract.Message) { gzipBody(m, make([]byte, 1<<20)); m.Body = bytes.Repeat(m.Body, 1<<10) },
			limit: 1 << 20, most: 4 << 20,
			want: "body: unpacks to more than 1048576 bytes",
		},
		{
			name: "a trailer that promises 4 GiB",
			edit: func(m *contract.Message) { gzipBody(m, []byte("{}")); copy(m.Body[len(m.Body)-4:], "\xff\xff\xff\xff") },
			most: 4 << 20,
			want: "body: is not gzip: gzip: invalid checksum",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := mustEncode(t, newEvent(), contract.EncodeOptions{})
			tt.edit(&m)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := contract.Decode(m, contract.DecodeOptions{MaxDataBytes: tt.limit})
			runtime.ReadMemStats(&after)
			checkProblems(t, err, tt.want)
			if got := after.TotalAlloc - before.TotalAlloc; got > tt.most {
				t.Errorf("got %d bytes allocated, want %d at most", got, tt.most)
			}
		})
	}
}

// gzipBody compresses data into the message's body.
func gzipBody(m *contract.Message, data []byte) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(data)
	_ = w.Close()
	m.Body, m.ContentEncoding = packed.Bytes(), "gzip"
}
