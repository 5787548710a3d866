package oplog

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// ResumeToken is a place in a change stream: an event, or a high-water mark
// that comes before all events of its time.
//
// Its text is the upper case hex of a key string (version 1 of the server's
// format: cluster time, version, kind, index in the transaction, whether it is
// an invalidation, then UUID and document key of the event, and the fragment of one
// that is split), so that tokens sort, as text, in the order of the stream.
type ResumeToken struct {
	Time           Timestamp
	Event          bool
	Index          uint32
	FromInvalidate bool
	// Fragment numbers, from 1, the parts of an event that is split; 0 is the
	// whole event.
	Fragment uint32
	// rest is the encoded UUID and document key.
	rest []byte
}

// Type bytes of the key string format (key_string.cpp, "CType").
const (
	ksEnd       = 0x04
	ksZero      = 0x29
	ksInt1      = 0x2b // positive integer of one byte; longer ones follow
	ksInt4      = 0x2e
	ksObject    = 0x46
	ksBinary    = 0x5a
	ksFalse     = 0x6e
	ksTrue      = 0x6f
	ksTimestamp = 0x82

	tokenVersion  = 1
	eventToken    = 128
	highWaterMark = 0
)

// HighWaterMark is the token before all events of a time.
func HighWaterMark(at Timestamp) ResumeToken {
	return ResumeToken{Time: at}
}

// TokenOf is the token of an entry's event.
func TokenOf(e *Entry) ResumeToken {
	var rest []byte
	if e.UUID != uuid.Nil {
		rest = append(rest, ksBinary, byte(len(e.UUID)), bson.TypeBinaryUUID)
		rest = append(rest, e.UUID[:]...)
	}
	if e.Key != nil {
		id, _ := bsonkit.Get(e.Key, "_id")
		rest = append(rest, ksObject, byte(id.Type), '_', 'i', 'd', 0)
		rest = append(bsonkit.AppendKey(rest, id), 0)
	}
	return ResumeToken{Time: e.Time, Event: true, Index: e.Index, rest: rest}
}

// Invalidation is the token of the invalidate event that follows the event.
func (t ResumeToken) Invalidation() ResumeToken {
	t.FromInvalidate = true
	return t
}

// Part is the token of a fragment of the event; 0 gives the whole event's.
func (t ResumeToken) Part(fragment uint32) ResumeToken {
	t.Fragment = fragment
	return t
}

// Compare orders tokens as their texts are ordered.
func (t ResumeToken) Compare(other ResumeToken) int {
	return cmp.Or(
		cmp.Compare(t.Time, other.Time),
		compareBools(t.Event, other.Event),
		cmp.Compare(t.Index, other.Index),
		compareBools(t.FromInvalidate, other.FromInvalidate),
		bytes.Compare(t.rest, other.rest),
		cmp.Compare(t.Fragment, other.Fragment),
	)
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

func (t ResumeToken) String() string {
	var buffer [160]byte
	return strings.ToUpper(hex.EncodeToString(t.appendKeyString(buffer[:0])))
}

func (t ResumeToken) appendKeyString(dst []byte) []byte {
	dst = append(dst, ksTimestamp)
	dst = binary.BigEndian.AppendUint64(dst, uint64(t.Time))
	dst = appendKeyInt(dst, tokenVersion)
	if t.Event {
		dst = appendKeyInt(dst, eventToken)
	} else {
		dst = appendKeyInt(dst, highWaterMark)
	}
	dst = appendKeyInt(dst, t.Index)
	if t.FromInvalidate {
		dst = append(dst, ksTrue)
	} else {
		dst = append(dst, ksFalse)
	}
	dst = append(dst, t.rest...)
	if t.Fragment > 0 {
		dst = appendKeyInt(dst, t.Fragment-1)
	}
	return append(dst, ksEnd)
}

// appendKeyInt writes an integer: its number of bytes in the type byte, then
// the value shifted left by the bit that tells a fraction.
func appendKeyInt(dst []byte, n uint32) []byte {
	if n == 0 {
		return append(dst, ksZero)
	}
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n)<<1)
	significant := bytes.TrimLeft(b[:], "\x00")
	dst = append(dst, ksInt1+byte(len(significant)-1))
	return append(dst, significant...)
}

// hexDigits is the upper case alphabet of tokens.
const hexDigits = "0123456789ABCDEF"

// AppendTo appends the document {_data: token}.
func (t ResumeToken) AppendTo(dst []byte) []byte {
	var buffer [160]byte
	key := t.appendKeyString(buffer[:0])
	text := 2*len(key) + 1
	dst = binary.LittleEndian.AppendUint32(dst, uint32(4+1+len("_data")+1+4+text+1))
	dst = append(dst, byte(bson.TypeString), '_', 'd', 'a', 't', 'a', 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(text))
	for _, b := range key {
		dst = append(dst, hexDigits[b>>4], hexDigits[b&15])
	}
	return append(dst, 0, 0)
}

// Document is the token as clients see it.
func (t ResumeToken) Document() bson.Raw { return t.AppendTo(nil) }

// ParseResumeToken reads a token document that a client has sent back.
func ParseResumeToken(doc bson.Raw) (ResumeToken, error) {
	data, _ := bsonkit.Get(doc, "_data")
	text, ok := data.StringValueOK()
	if !ok {
		return ResumeToken{}, mongoerr.New(40647, "Bad resume token: _data of missing or of wrong type %s", bson.Raw(doc))
	}
	if text == "" {
		return ResumeToken{}, mongoerr.New(40649, "Bad resume token: _data is empty")
	}
	key, err := hex.DecodeString(text)
	if err != nil {
		return ResumeToken{}, mongoerr.New(mongoerr.FailedToParse, "resume token string was not a valid hex string")
	}
	return parseKeyString(key)
}

func parseKeyString(key []byte) (ResumeToken, error) {
	r := keyReader{rest: key}
	if r.next() != ksTimestamp {
		return ResumeToken{}, errBadToken()
	}
	t := ResumeToken{Time: Timestamp(r.number(8))}
	version := r.integer()
	kind := r.integer()
	t.Index = uint32(r.integer())
	flag := r.next()
	if r.short {
		return ResumeToken{}, mongoerr.New(mongoerr.Overflow, "Bad resume token: it ends too early")
	}
	t.Event, t.FromInvalidate = kind == eventToken, flag == ksTrue
	known := kind == eventToken || kind == highWaterMark
	rest, ended := bytes.CutSuffix(r.rest, []byte{ksEnd})
	if r.bad || version != tokenVersion || !known || flag != ksTrue && flag != ksFalse || !ended {
		return ResumeToken{}, errBadToken()
	}
	t.rest, t.Fragment = cutFragment(rest)
	if !bytes.Equal(t.appendKeyString(nil), key) {
		return ResumeToken{}, errBadToken() // the same token in other bytes would not sort
	}
	return t, nil
}

// uuidSize is what the UUID of a token's event takes, which a document key follows.
const uuidSize = 3 + len(uuid.UUID{})

// cutFragment takes the number of a fragment, from 1, off UUID and document key; 0 is
// none. A key ends with a zero byte, and the number of a fragment does not.
func cutFragment(rest []byte) (event []byte, fragment uint32) {
	n := len(rest)
	switch {
	case n <= uuidSize || rest[uuidSize] != ksObject || rest[n-1] == 0:
		return rest, 0
	case rest[n-1] == ksZero && rest[n-2] == 0:
		return rest[:n-1], 1
	case rest[n-2] == ksInt1 && rest[n-3] == 0:
		return rest[:n-2], uint32(rest[n-1]>>1) + 1
	default:
		return rest, 0
	}
}

func errBadToken() error { return mongoerr.New(50811, "Bad resume token: unknown format") }

// keyReader reads the parts of a key string.
type keyReader struct {
	rest []byte
	// short tells that the bytes ended too early, bad that they are no key string.
	short, bad bool
}

func (r *keyReader) next() byte { return byte(r.number(1)) }

func (r *keyReader) number(bytes int) uint64 {
	if len(r.rest) < bytes {
		r.short, r.rest = true, nil
		return 0
	}
	var n uint64
	for _, b := range r.rest[:bytes] {
		n = n<<8 | uint64(b)
	}
	r.rest = r.rest[bytes:]
	return n
}

// integer reads what appendKeyInt writes.
func (r *keyReader) integer() uint64 {
	kind := r.next()
	if kind == ksZero {
		return 0
	}
	if kind < ksInt1 || kind > ksInt4+1 {
		r.bad = true
		return 0
	}
	return r.number(int(kind-ksInt1)+1) >> 1
}
