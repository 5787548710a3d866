package contract

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
)

// Position is where a change stands in its stream: 16 hex digits of cluster
// time (seconds, then increment), a dot, and the change's resume token in hex,
// as the server writes it. Positions of one stream compare bytewise in stream
// order, because a resume token begins with the cluster time and goes on with
// the change's place inside it.
type Position string

// stampLength is the length of a position's cluster time.
const stampLength = 16

// StreamPosition returns the position of a change read from the stream. token
// is the resume token's _data, upper-case hex.
func StreamPosition(seconds, increment uint32, token string) Position {
	// Most tokens fit, and then the only allocation is the position itself.
	var room [256]byte
	p := appendStamp(room[:0], seconds, increment)
	return Position(append(p, token...))
}

// SnapshotPosition returns the position of the nth document of a snapshot that
// began at the cluster time. It sorts below every stream position of that time
// as long as n is below 1<<63: a token's first byte is never below 0x80.
func SnapshotPosition(seconds, increment uint32, n uint64) Position {
	return StreamPosition(seconds, increment, fmt.Sprintf("%016X", n))
}

// OfSnapshot reports whether the position is that of a snapshot's document, which no
// stream goes on from.
func (p Position) OfSnapshot() bool { return len(p) > stampLength+1 && p[stampLength+1] < '8' }

// appendStamp appends a position's cluster time and the dot after it.
func appendStamp(p []byte, seconds, increment uint32) []byte {
	var raw [stampLength / 2]byte
	binary.BigEndian.PutUint32(raw[:4], seconds)
	binary.BigEndian.PutUint32(raw[4:], increment)
	p = hex.AppendEncode(p, raw[:])
	return append(p, '.')
}

// ClusterTime returns the cluster time of a valid position: seconds since the
// epoch, and the increment within that second.
func (p Position) ClusterTime() (seconds, increment uint32, err error) {
	if problem := p.problem(); problem != "" {
		return 0, 0, errors.New("position " + problem)
	}
	stamp, err := strconv.ParseUint(string(p[:stampLength]), 16, 64)
	return uint32(stamp >> 32), uint32(stamp), err
}

// problem says what is wrong with the position, or nothing.
func (p Position) problem() string {
	switch {
	case p == "":
		return "is empty"
	case len(p) > MaxPropertyBytes:
		return fmt.Sprintf("has %d bytes, more than %d", len(p), MaxPropertyBytes)
	case len(p) < stampLength+2 || p[stampLength] != '.':
		return "is not 16 hex digits, a dot and a token"
	case !lowerHex(string(p[:stampLength])):
		return "has a cluster time that is not lower-case hex"
	case !upperHex(string(p[stampLength+1:])):
		return "has a token that is not upper-case hex"
	}
	return ""
}

func lowerHex(s string) bool { return hexDigits(s, 'a') }

func upperHex(s string) bool { return hexDigits(s, 'A') }

func hexDigits(s string, a byte) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < a || c > a+5) {
			return false
		}
	}
	return true
}

// Sequence orders the events of one aggregate: bytewise, a later event has the
// higher sequence. Sequences of different aggregates do not compare, nor do
// those of an aggregate whose source numbers some events and not others.
type Sequence string

// SequenceOf returns an event's sequence: its version, padded, where the source
// numbers its events, so that stream, snapshot and replay all agree on it;
// otherwise its position.
func SequenceOf(v Version, p Position) Sequence {
	if !v.Known {
		return Sequence(p)
	}
	var digits [versionDigits]byte
	return Sequence(appendVersion(digits[:0], v.Number))
}

// follows tells whether SequenceOf makes s of v and p.
func (s Sequence) follows(v Version, p Position) bool {
	if !v.Known {
		return string(s) == string(p)
	}
	var digits [versionDigits]byte
	return string(s) == string(appendVersion(digits[:0], v.Number))
}

// versionDigits is how many digits the highest version has.
const versionDigits = len("9223372036854775807")

// appendVersion appends a version, padded so that versions compare bytewise as
// they do as numbers. A version below 0 breaks the contract and is not padded.
func appendVersion(b []byte, n int64) []byte {
	if n >= 0 {
		for limit := int64(1e18); limit > n && limit > 1; limit /= 10 {
			b = append(b, '0')
		}
	}
	return strconv.AppendInt(b, n, 10)
}
