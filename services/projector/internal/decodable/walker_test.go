package decodable

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
)

// decode has go-amqp decode a message; a panic is an error of it.
func decode(message []byte) (panicked any, err error) {
	defer func() { panicked = recover() }()
	return nil, new(amqp.Message).UnmarshalBinary(message)
}

// walked is a message as go-amqp gets it, in pieces of at most some bytes, and its walker,
// which may know beforehand where it ends.
func walked(message []byte, piece int, known bool) ([]byte, *walker) {
	got, w := bytes.Clone(message), new(walker)
	if known {
		w.end = int64(len(message))
	}
	var last []byte
	for last = range slices.Chunk(got, piece) {
		w.walk(last)
	}
	if !w.whole() {
		w.bad = true
		overwrite(last)
	}
	return got, w
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ordinary is a message with a value of every type that go-amqp writes.
func ordinary(t testing.TB) []byte {
	t.Helper()
	text, now, number := "text", time.UnixMilli(1_700_000_000_000), uint32(7)
	values := map[string]any{
		"null": amqp.Null{}, "bool": true, "byte": int8(-1), "ubyte": uint8(1), "short": int16(-1), "ushort": uint16(1),
		"int": int32(-70_000), "uint": uint32(70_000), "uint0": uint32(0), "long": int64(-7_000_000_000),
		"ulong": uint64(7_000_000_000), "ulong0": uint64(0), "float": float32(1.5), "double": 1.5, "timestamp": now,
		"uuid": amqp.UUID{1}, "binary": []byte{0, 0x53, 0x78}, "string": strings.Repeat("x", 300), "symbol": amqp.Symbol("s"),
	}
	m := &amqp.Message{
		Header:              &amqp.MessageHeader{Durable: true, Priority: 4, TTL: time.Hour, DeliveryCount: 3},
		DeliveryAnnotations: amqp.Annotations{"x": int32(1)},
		Annotations:         amqp.Annotations{"x-opt-partition-key": "k", int64(5): now},
		Properties: &amqp.MessageProperties{
			MessageID: amqp.UUID{1}, UserID: []byte("u"), To: &text, Subject: &text, ReplyTo: &text, CorrelationID: uint64(1),
			ContentType: &text, ContentEncoding: &text, AbsoluteExpiryTime: &now, CreationTime: &now, GroupID: &text,
			GroupSequence: &number, ReplyToGroupID: &text,
		},
		ApplicationProperties: values,
		Footer:                amqp.Annotations{"x": "y"},
		Value: map[string]any{
			"map": values, "keys": map[any]any{int64(1): true, amqp.UUID{}: 1.5}, "list": []any{[]any{}, []any{values}},
			"arrays": []any{
				[]int8{-1},
				[]uint16{1},
				[]int32{1, 70_000},
				[]uint64{1, 7_000_000_000},
				[]float64{1.5},
				[]bool{true, false},
				[]string{"a", strings.Repeat("b", 300)},
				[]amqp.Symbol{"a", "b"},
				[][]byte{{1}, {}},
				[]time.Time{now},
				[]amqp.UUID{{1}, {2}},
				[]map[any]any{{"a": int32(1)}, {}, {int64(1): "b"}},
			},
		},
	}
	b, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What go-amqp decodes is not changed, however it comes.
func TestWalker_ChangesNothingThatCanBeDecoded(t *testing.T) {
	t.Parallel()
	messages := map[string][]byte{"of every type": ordinary(t), "empty": {}}
	for name, s := range map[string]string{
		"with several data sections":           "005375a00161 005375b00000000162 00537540",
		"with sequences":                       "00537645 005376c0030241 42",
		"with a section named by eight bytes":  "008000000000000000 77a10161",
		"with a described value":               "00537700a30178c0020141",
		"with a described key":                 "005378c1070200a3017841 41",
		"with a null key and a pair too few":   "005378c103014041",
		"with a size that is larger than it":   "005376c0050141 005377a10161",
		"with a header of fewer fields":        "005370c0040241 5004",
		"with a null for sections":             "00537140 00537440 00537740",
		"with an array of one that is nothing": "005377e0020141",
	} {
		messages[name] = unhex(t, s)
	}
	for name, m := range messages {
		if panicked, err := decode(m); panicked != nil || err != nil {
			t.Errorf("%s: go-amqp says %v, %v; the test is wrong", name, panicked, err)
		}
		for _, piece := range []int{1, 2, 7, max(len(m), 1)} {
			if got, w := walked(m, piece, piece == 1); w.bad || !bytes.Equal(got, m) {
				t.Errorf("%s, in pieces of %d: got %x, want %x unchanged", name, piece, got, m)
			}
		}
	}
}

// What go-amqp would panic at, or decode by deep recursion, becomes what it returns an error for.
func TestWalker_SparesGoAMQPWhatItCannotBeGiven(t *testing.T) {
	t.Parallel()
	nested := func(deep int, level string) []byte {
		return append(unhex(t, "005377"), bytes.Repeat(unhex(t, level), deep)...)
	}
	for name, m := range map[string][]byte{
		"a list for a key":                  unhex(t, "005378c103024540"),
		"an empty map for a key":            unhex(t, "005378c10502c1010040"),
		"an array for a key":                unhex(t, "005378c10602e002014140"),
		"binary for a key":                  unhex(t, "005372c10502a0016140"),
		"a described list for a key":        unhex(t, "005377c1070200a301784540"),
		"described binary for a key":        unhex(t, "005377c1080200a30178a0006140"),
		"a key that describes by a list":    unhex(t, "005377c106020045404040"),
		"a key in an array of maps":         unhex(t, "005377e00a01c1070200a301784540"),
		"described values, nested":          nested(100_000, "00"),
		"lists, nested":                     nested(100_000, "c00801"),
		"maps, nested":                      nested(100_000, "c1080240"),
		"arrays of maps, nested":            nested(100_000, "e00801c1040240"),
		"an error for a value":              unhex(t, "00537700531dc0010045"),
		"an array of many that are nothing": append(unhex(t, "005377f00000fffb0000fff044"), make([]byte, 65536)...),
		"a value that ends too early":       unhex(t, "005377a105616263"),
		"a list that ends too early":        unhex(t, "005377c0f0024141"),
		"no section":                        unhex(t, "0053790141"),
	} {
		for _, piece := range []int{1, 3, len(m)} {
			got, w := walked(m, piece, piece == 1)
			if panicked, err := decode(got); !w.bad || panicked != nil || err == nil {
				t.Errorf("%s, in pieces of %d: go-amqp panics at %v and says %v, want an error", name, piece, panicked, err)
			}
		}
	}
}

// TestWalker_SparesGoAMQPWhatItCannotBeGiven in an answer of $management with messages.
func TestWalker_FollowsPeekedMessages(t *testing.T) {
	t.Parallel()
	good, bad := ordinary(t), unhex(t, "005378c103024540")
	answer := func(messages ...[]byte) []byte {
		var list []any
		for _, m := range messages {
			list = append(list, map[string]any{"message": m, "lock-token": amqp.UUID{}})
		}
		b, err := (&amqp.Message{
			ApplicationProperties: map[string]any{"statusCode": int32(200)}, Value: map[string]any{"messages": list, "state": bad},
		}).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, piece := range []int{1, 5, 10_000} {
		got, w := answer(good, bad, good), new(walker)
		w.reset(true)
		for part := range slices.Chunk(got, piece) {
			w.walk(part)
		}
		var decoded amqp.Message
		if err := decoded.UnmarshalBinary(got); err != nil || !w.whole() {
			t.Fatalf("the answer: %v, want it decoded", err)
		}
		for i, m := range decoded.Value.(map[string]any)["messages"].([]any) {
			message := m.(map[string]any)["message"].([]byte)
			panicked, err := decode(message)
			if panicked != nil || (err == nil) != (i != 1) || i != 1 && !bytes.Equal(message, good) {
				t.Errorf("message %d: panics at %v and says %v, want an error of the second alone", i, panicked, err)
			}
		}
		if state := decoded.Value.(map[string]any)["state"].([]byte); !bytes.Equal(state, bad) {
			t.Errorf("got %x for what is no message, want %x", state, bad)
		}
	}
}

// FuzzWalker compares with go-amqp itself: what the walker lets by it decodes, and
// what the walker has changed it returns an error for.
func FuzzWalker(f *testing.F) {
	f.Add(ordinary(f), uint8(200), false)
	for _, s := range []string{
		"005378c103024540", "005377c1070200a301784540", "005377e00a01c1070200a301784540", "00537700531dc0010045",
		"005377f0000000050000000041", "005377e0040241a1", "005370c00401005004", "005377c0f0024141", "005377a105616263",
		"005373d00000000a0000000240a00162", "0080ff00000000000078c1020045", "005374c10602a1016194",
	} {
		f.Add(unhex(f, s), uint8(3), true)
	}
	f.Fuzz(func(t *testing.T, message []byte, piece uint8, known bool) {
		if len(message) > 1<<12 {
			return // go-amqp would take too much memory for the original
		}
		got, w := walked(message, int(max(piece, 1)), known)
		panicked, err := decode(got)
		switch {
		case panicked != nil:
			t.Fatalf("%x became %x, and go-amqp panics: %v", message, got, panicked)
		case w.bad && err == nil:
			t.Fatalf("%x became %x, and go-amqp decodes it", message, got)
		case !w.bad && (err != nil || !bytes.Equal(got, message)):
			t.Fatalf("%x became %x, was let by, and go-amqp says %v", message, got, err)
		}
		if panicked, err := decode(message); w.bad && panicked == nil && err == nil && !refusedAlone(w) {
			t.Fatalf("%x was refused, and go-amqp decodes it", message)
		}
	})
}

// refusedAlone tells whether the message was refused for what go-amqp may decode (see the
// package's comment).
func refusedAlone(w *walker) bool {
	return w.depth == depthMost || w.step == inNumber && w.then == descriptor || w.step == atElements
}

func frame(channel uint16, code byte, rest ...byte) []byte {
	b := append([]byte{0, 0, 0, 0, 2, 0, 0, 0, 0, 0x53, code}, rest...)
	binary.BigEndian.PutUint16(b[6:], channel)
	binary.BigEndian.PutUint32(b, uint32(len(b)))
	return b
}

// performed is the list of a performative, in either of its forms.
func performed(wide bool, fields ...byte) []byte {
	if wide {
		return append(binary.BigEndian.AppendUint32([]byte{list32Code}, uint32(len(fields)+4)), append([]byte{0, 0, 0, 12}, fields...)...)
	}
	return append([]byte{list8Code, byte(len(fields) + 1), 12}, fields...)
}

// transfer is a frame with a part of a message.
func transfer(l link, more, aborted bool, payload []byte) []byte {
	is := map[bool]byte{true: trueCode, false: trueCode + 1}
	fields := []byte{
		smallUintCode, byte(l.handle), smallUintCode, 9, 0xa0, 2, 0, 0x53, uint0Code, is[false], is[more],
		nullCode, 0, smallUlongCode, 0x24, list0Code, nullCode, is[aborted],
	}
	return frame(l.channel, transferCode, append(performed(l.channel%2 == 0, fields...), payload...)...)
}

// attach is a frame with which a link begins, from an address.
func attach(l link, address string) []byte {
	source := append([]byte{0, smallUlongCode, 0x28, list8Code, byte(len(address) + 3), 1, 0xa1, byte(len(address))}, address...)
	fields := append([]byte{0xa1, 1, 'n', uintCode, 0, 0, 0, byte(l.handle), trueCode, nullCode, nullCode}, source...)
	return frame(l.channel, attachCode, performed(true, fields...)...)
}

// Messages are told apart by their links, whatever frames they come in, and what comes to a
// link after one that was refused is overwritten until the link begins anew.
func TestFrames_FollowsTheMessagesOfEachLink(t *testing.T) {
	t.Parallel()
	good, bad := ordinary(t), unhex(t, "005377a10161 005378c103024540")
	one, other, beside := link{7, 0}, link{7, 1}, link{8, 0}
	const unchanged, changed = true, false
	type part struct {
		frame []byte
		want  bool
	}
	for _, piece := range []int{1, 2, 9, 64, 100_000} {
		f := newFrames(nil)
		for i, p := range []part{
			{[]byte("AMQP\x03\x01\x00\x00"), unchanged},
			{[]byte{0, 0, 0, 16, 2, 1, 0, 0, 0, 0x53, 0x44, 0xc0, 3, 1, 0x50, 0}, unchanged}, // SASL
			{[]byte("AMQP\x00\x01\x00\x00"), unchanged},
			{[]byte{0, 0, 0, 8, 2, 0, 0, 0}, unchanged}, // an empty frame
			{attach(one, "topic"), unchanged},
			{attach(other, "topic"), unchanged},
			{transfer(one, false, false, good), unchanged},
			{transfer(one, true, false, good[:50]), unchanged},
			{transfer(other, true, false, bad[:7]), unchanged},
			{transfer(beside, false, false, good), unchanged},
			{transfer(one, true, false, good[50:60]), unchanged},
			{transfer(other, false, false, bad[7:]), changed},
			{transfer(one, false, false, good[60:]), unchanged},
			{transfer(other, false, false, good), changed},
			{frame(8, 0x13, bad...), unchanged}, // a flow
			{frame(8, detachCode, performed(false, uint0Code)...), unchanged},
			{transfer(other, false, false, good), changed},
			{transfer(one, true, false, bad[:7]), unchanged},
			{transfer(one, true, true, good[60:]), changed}, // is aborted
			{transfer(one, false, false, good), unchanged},
			{attach(other, "topic"), unchanged},
			{transfer(other, false, false, good), unchanged},
			{transfer(beside, false, false, bad), changed},
			{transfer(one, false, false, bad), changed},
			{frame(7, detachCode, performed(false, uint0Code)...), unchanged},
			{transfer(one, false, false, good), unchanged},
			{transfer(one, false, false, bad), changed},
			{frame(7, endCode, list0Code), unchanged},
			{transfer(one, false, false, good), unchanged},
			{transfer(one, false, false, bad), changed},
			{frame(7, beginCode, list0Code), unchanged},
			{transfer(one, false, false, good), unchanged},
			{transfer(beside, false, false, good), changed},
			{frame(8, endCode, list0Code), unchanged},
			{transfer(other, true, false, good[:50]), unchanged},
			{frame(7, endCode, list0Code), unchanged},
			{attach(other, "topic/$management"), unchanged},
			{transfer(other, false, false, good), unchanged},
		} {
			got := bytes.Clone(p.frame)
			for part := range slices.Chunk(got, piece) {
				f.came(part)
			}
			if bytes.Equal(got, p.frame) != p.want {
				t.Fatalf("in pieces of %d: frame %d of %x became %x", piece, i, p.frame, got)
			}
		}
		if want := map[link]known{other: {answering: true}}; !maps.Equal(f.links, want) {
			t.Errorf("in pieces of %d: got %v known of links, want %v", piece, f.links, want)
		}
	}
}

func BenchmarkWalker(b *testing.B) {
	text := "text"
	message, err := (&amqp.Message{
		Header:      &amqp.MessageHeader{DeliveryCount: 1},
		Annotations: amqp.Annotations{"x-opt-sequence-number": int64(1), "x-opt-enqueued-time": time.Now(), "x-opt-partition-key": "orders-1"},
		Properties: &amqp.MessageProperties{
			MessageID: "orders/1/1", Subject: &text, ContentType: &text, GroupID: &text,
		},
		ApplicationProperties: map[string]any{"sequence": int64(1), "aggregateId": "1", "type": "Happened", "version": int64(1), "source": "orders"},
		Data:                  [][]byte{bytes.Repeat([]byte("x"), 700)},
	}).MarshalBinary()
	if err != nil {
		b.Fatal(err)
	}
	came := transfer(link{1, 0}, false, false, message)
	b.Run(fmt.Sprintf("frame of %d bytes", len(came)), func(b *testing.B) {
		f := newFrames(nil)
		for b.Loop() {
			f.came(came)
		}
	})
	b.Run("go-amqp", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = new(amqp.Message).UnmarshalBinary(message)
		}
	})
}
