package sessionlink

import (
	"encoding/binary"
	"slices"
	"testing"
)

// frame is a frame of AMQP on a channel.
func frame(channel uint16, code byte, rest ...byte) []byte {
	b := []byte{0, 0, 0, 0, 2, 0, 0, 0, 0, 0x53, code}
	binary.BigEndian.PutUint16(b[6:], channel)
	b = append(b, rest...)
	binary.BigEndian.PutUint32(b, uint32(len(b)))
	return b
}

// named is an attach's list, whose first field is a name.
func named(name string, wide bool) []byte {
	field := append([]byte{0xa1, byte(len(name))}, name...)
	if wide {
		return append([]byte{0xd0, 0, 0, 0, byte(len(field) + 4), 0, 0, 0, 1}, field...)
	}
	return append([]byte{0xc0, byte(len(field) + 1), 1}, field...)
}

// However what comes is cut into pieces, the bytes of a message count for its link, as they
// come, and others' do not.
func TestFrames_CountWhatComesToALink(t *testing.T) {
	t.Parallel()
	large := frame(7, transferCode, make([]byte, largeFrame)...)
	small := frame(8, transferCode, 1, 2, 3)
	came := slices.Concat(
		[]byte("AMQP\x03\x01\x00\x00"), []byte{0, 0, 0, 12, 2, 1, 0, 0, 0, 0x53, 0x44, 0xc0}, // a SASL frame
		[]byte("AMQP\x00\x01\x00\x00"), []byte{0, 0, 0, 8, 2, 0, 0, 0}, // a frame that is empty
		frame(7, attachCode, named("one", false)...), frame(8, attachCode, named("two", true)...),
		frame(9, attachCode, named("nobody's", false)...), frame(9, transferCode, 1),
		large, small, frame(7, 0x13, 1, 2), large[:len(large)/2],
	)
	for _, piece := range []int{1, 3, 8, 127, 4096, len(came)} {
		var f frames
		one, two := f.watch("one"), f.watch("two")
		for part := range slices.Chunk(came, piece) {
			f.came(part)
		}
		// What comes with the head of a frame does not count before that is known.
		low, high := int64(len(large)*3/2-2*frameHead), int64(len(large)*3/2)
		if got := one.Load(); got < low || got > high {
			t.Errorf("in pieces of %d: got %d bytes for the first link, want about %d", piece, got, high)
		}
		if got := two.Load(); got == 0 || got > int64(len(small)) {
			t.Errorf("in pieces of %d: got %d bytes for the second link, want some of %d", piece, got, len(small))
		}
		if got := f.large.Load(); got < low || got > high {
			t.Errorf("in pieces of %d: got %d bytes of large messages, want about %d", piece, got, high)
		}
		if len(f.watched) != 0 || len(f.links) != 2 {
			t.Errorf("in pieces of %d: got %d links awaited and %d known, want none and 2", piece, len(f.watched), len(f.links))
		}
	}
}

func TestFrames_KnowNothingOfALinkThatDoesNotCome(t *testing.T) {
	t.Parallel()
	var f frames
	f.watch("one")
	f.forget("one")
	f.came(frame(7, attachCode, named("one", false)...))
	f.came(frame(7, attachCode, 0xc0))
	f.came([]byte{0, 0, 0, 0, 0xff, 0, 0, 7})
	if len(f.watched) != 0 || len(f.links) != 0 {
		t.Errorf("got %d links awaited and %d known, want none", len(f.watched), len(f.links))
	}
}
