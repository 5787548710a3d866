package mongowire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/mongowire"
)

func document(t testing.TB, fields ...any) bson.Raw {
	t.Helper()
	d := bson.D{}
	for i := 0; i < len(fields); i += 2 {
		d = append(d, bson.E{Key: fields[i].(string), Value: fields[i+1]})
	}
	raw, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// frame puts a header before a payload.
func frame(code mongowire.OpCode, payload ...[]byte) []byte {
	body := bytes.Join(payload, nil)
	out := binary.LittleEndian.AppendUint32(nil, uint32(16+len(body)))
	out = binary.LittleEndian.AppendUint32(out, 7)
	out = binary.LittleEndian.AppendUint32(out, 0)
	out = binary.LittleEndian.AppendUint32(out, uint32(code))
	return append(out, body...)
}

func flags(f mongowire.Flags) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(f)) }

func body(doc bson.Raw) []byte { return append([]byte{0}, doc...) }

func sequence(name string, docs ...[]byte) []byte {
	content := append([]byte(name), 0)
	content = append(content, bytes.Join(docs, nil)...)
	out := binary.LittleEndian.AppendUint32([]byte{1}, uint32(4+len(content)))
	return append(out, content...)
}

func withChecksum(message []byte) []byte {
	binary.LittleEndian.PutUint32(message, uint32(len(message)+4))
	sum := crc32.Checksum(message, crc32.MakeTable(crc32.Castagnoli))
	return binary.LittleEndian.AppendUint32(message, sum)
}

func query(namespace string, rest ...[]byte) []byte {
	payload := append(make([]byte, 4), namespace...)
	payload = append(payload, 0)
	payload = append(payload, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff)
	return frame(mongowire.OpQuery, append([][]byte{payload}, rest...)...)
}

func TestReadRequest_TooDeepIsARequestThatIsRefused(t *testing.T) {
	t.Parallel()
	tooDeep := document(t)
	for range 200 {
		tooDeep = document(t, "a", tooDeep)
	}
	for name, message := range map[string][]byte{
		"an OP_MSG":   frame(mongowire.OpMsg, flags(0), body(tooDeep)),
		"an OP_QUERY": query("db.$cmd", tooDeep),
	} {
		got, err := mongowire.ReadRequest(bytes.NewReader(message))
		if err != nil || got.Refused == "" || got.Body != nil || got.ID != 7 {
			t.Errorf("%s: got %+v and %v, want a request with the reason why it is refused", name, got, err)
		}
	}
}

func TestRead_ReadRequest(t *testing.T) {
	t.Parallel()
	ping := document(t, "ping", int32(1), "$db", "admin")
	one, two := document(t, "_id", int32(1)), document(t, "_id", int32(2))
	for name, c := range map[string]struct {
		message []byte
		want    mongowire.Request
	}{
		"a body alone": {
			frame(mongowire.OpMsg, flags(0), body(ping)),
			mongowire.Request{ID: 7, Body: ping},
		},
		"a body between two document sequences": {
			frame(mongowire.OpMsg, flags(0), sequence("documents", one, two), body(ping), sequence("more")),
			mongowire.Request{ID: 7, Body: ping, Sequences: []mongowire.Sequence{
				{Name: "documents", Documents: []bson.Raw{one, two}}, {Name: "more"},
			}},
		},
		"optional flag bits are let through": {
			frame(mongowire.OpMsg, flags(mongowire.ExhaustAllowed|mongowire.MoreToCome|1<<20), body(ping)),
			mongowire.Request{ID: 7, Flags: mongowire.ExhaustAllowed | mongowire.MoreToCome | 1<<20, Body: ping},
		},
		"a checksum that matches": {
			withChecksum(frame(mongowire.OpMsg, flags(mongowire.ChecksumPresent), body(ping))),
			mongowire.Request{ID: 7, Flags: mongowire.ChecksumPresent, Body: ping},
		},
		"a command in an OP_QUERY": {
			query("admin.$cmd", ping),
			mongowire.Request{ID: 7, Legacy: true, Database: "admin", Body: ping},
		},
		"a command wrapped in $query": {
			query("admin.$cmd", document(t, "$query", ping, "$readPreference", document(t, "mode", "primary"))),
			mongowire.Request{ID: 7, Legacy: true, Database: "admin", Body: ping},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := mongowire.ReadRequest(iotest.OneByteReader(bytes.NewReader(c.message)))
			if err != nil {
				t.Fatal(err)
			}
			if !same(*got, c.want) {
				t.Errorf("got %+v, want %+v", *got, c.want)
			}
		})
	}
}

func same(a, b mongowire.Request) bool {
	equal := a.ID == b.ID && a.Flags == b.Flags && a.Legacy == b.Legacy && a.Database == b.Database &&
		bytes.Equal(a.Body, b.Body) && len(a.Sequences) == len(b.Sequences)
	for i := range a.Sequences {
		equal = equal && a.Sequences[i].Name == b.Sequences[i].Name &&
			len(a.Sequences[i].Documents) == len(b.Sequences[i].Documents)
		for j := range a.Sequences[i].Documents {
			equal = equal && bytes.Equal(a.Sequences[i].Documents[j], b.Sequences[i].Documents[j])
		}
	}
	return equal
}

func TestRead_ReadRequestRefusesWhatBreaksTheProtocol(t *testing.T) {
	t.Parallel()
	ping := document(t, "ping", int32(1))
	unterminated := append([]byte{}, ping...)
	unterminated[len(unterminated)-1] = 1
	for name, c := range map[string]struct {
		message []byte
		reason  string
	}{
		"a message longer than allowed":   {header(mongowire.MaxMessageBytes+1, mongowire.OpMsg), "message length"},
		"a message shorter than a header": {header(15, mongowire.OpMsg), "message length"},
		"a negative length":               {header(-5, mongowire.OpMsg), "message length"},
		"an op code that was removed":     {frame(2003), "op code 2003"},
		"compression":                     {frame(2012), "op code 2012"},
		"no flag bits":                    {frame(mongowire.OpMsg, []byte{0}), "without flag bits"},
		"an unknown required flag bit":    {frame(mongowire.OpMsg, flags(1<<3), body(ping)), "unknown required flag bits"},
		"no body":                         {frame(mongowire.OpMsg, flags(0)), "without a body"},
		"two bodies":                      {frame(mongowire.OpMsg, flags(0), body(ping), body(ping)), "two bodies"},
		"a section of unknown kind":       {frame(mongowire.OpMsg, flags(0), body(ping), []byte{2}), "unknown kind 2"},
		"a checksum that does not match": {
			frame(mongowire.OpMsg, flags(mongowire.ChecksumPresent), body(ping), []byte{1, 2, 3, 4}), "checksum does not match",
		},
		"a checksum that is not there": {
			frame(mongowire.OpMsg, flags(mongowire.ChecksumPresent), []byte{1, 2}), "without its checksum",
		},
		"a field in body and sequence": {
			frame(mongowire.OpMsg, flags(0), body(ping), sequence("ping")), "in the body and in a document sequence",
		},
		"two sequences of one name": {
			frame(mongowire.OpMsg, flags(0), body(ping), sequence("d"), sequence("d")), `two document sequences are named "d"`,
		},
		"a sequence longer than the message": {
			frame(mongowire.OpMsg, flags(0), body(ping), []byte{1, 0xff, 0, 0, 0, 'd', 0}), "document sequence of length",
		},
		"a sequence without the end of its name": {
			frame(mongowire.OpMsg, flags(0), body(ping), []byte{1, 6, 0, 0, 0, 'd', 'd'}), "whose name does not end",
		},
		"a sequence with half a document": {
			frame(mongowire.OpMsg, flags(0), body(ping), sequence("d", ping[:8])), "document of length",
		},
		"a document that does not end":          {frame(mongowire.OpMsg, flags(0), body(unterminated)), "zero byte"},
		"an OP_GET_MORE without its cursor":     {frame(mongowire.OpGetMore, []byte("0000db.c\x001234")), "instead of a number"},
		"an OP_GET_MORE that is cut off":        {frame(mongowire.OpGetMore, []byte("00")), "cut off"},
		"an OP_KILL_CURSORS of wrong length":    {frame(mongowire.OpKillCursors, []byte("0000\x02\x00\x00\x0012345678")), "of 16 bytes"},
		"an OP_QUERY with bytes after its end":  {query("db.$cmd", ping, ping, ping), "document cut off|after its end"},
		"an OP_QUERY without its document":      {query("db.$cmd"), "document cut off"},
		"an OP_QUERY whose namespace goes on":   {frame(mongowire.OpQuery, []byte("0000db.$cmd")), "does not end"},
		"an OP_QUERY that ends in its numbers":  {frame(mongowire.OpQuery, []byte("0000db.$cmd\x00123")), "without numbers"},
		"an OP_QUERY that ends before its name": {frame(mongowire.OpQuery, []byte("00")), "without flags"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := mongowire.ReadRequest(bytes.NewReader(c.message))
			var protocol *mongowire.ProtocolError
			if !errors.As(err, &protocol) || !containsAny(err.Error(), strings.Split(c.reason, "|")) {
				t.Errorf("got error %v, want a protocol error saying %q", err, c.reason)
			}
		})
	}
}

func header(length int32, code mongowire.OpCode) []byte {
	out := frame(code)
	binary.LittleEndian.PutUint32(out, uint32(length))
	return out
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

func TestRead_ReadRequestTellsTheEndOfTheStreamFromACutMessage(t *testing.T) {
	t.Parallel()
	whole := frame(mongowire.OpMsg, flags(0), body(document(t, "ping", int32(1))))
	if _, err := mongowire.ReadRequest(bytes.NewReader(nil)); !errors.Is(err, io.EOF) {
		t.Errorf("between messages: got %v, want io.EOF", err)
	}
	for cut := 1; cut < len(whole); cut++ {
		if _, err := mongowire.ReadRequest(bytes.NewReader(whole[:cut])); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("after %d bytes: got %v, want io.ErrUnexpectedEOF", cut, err)
		}
	}
}

// TestRead_ReadRequestTakesNoMemoryForALengthAlone sends only the header of the
// largest message.
func TestRead_ReadRequestTakesNoMemoryForALengthAlone(t *testing.T) {
	message := header(mongowire.MaxMessageBytes, mongowire.OpMsg)
	got := testing.Benchmark(func(b *testing.B) {
		for range b.N {
			_, _ = mongowire.ReadRequest(bytes.NewReader(message))
		}
	}).AllocedBytesPerOp()
	if want := int64(2 << 20); got > want {
		t.Errorf("got %d bytes allocated, want at most %d", got, want)
	}
}

func TestRead_DocumentsCannotReachTheirNeighbour(t *testing.T) {
	t.Parallel()
	one, two := document(t, "_id", int32(1)), document(t, "_id", int32(2))
	req, err := mongowire.ReadRequest(bytes.NewReader(
		frame(mongowire.OpMsg, flags(0), body(document(t, "insert", "c")), sequence("documents", one, two))))
	if err != nil {
		t.Fatal(err)
	}
	docs := req.Sequences[0].Documents
	_ = append(docs[0], 0xff, 0xff, 0xff, 0xff)
	if !bytes.Equal(docs[1], two) {
		t.Errorf("got %x after an append to its neighbour, want %x", []byte(docs[1]), []byte(two))
	}
}
