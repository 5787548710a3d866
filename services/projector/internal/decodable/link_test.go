package decodable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"testing"

	"github.com/Azure/go-amqp"
)

// receiver decodes the messages of a link as go-amqp does (v1.7.0, Receiver.muxReceive): after
// one that it could not decode, from where it stopped.
type receiver struct {
	message amqp.Message
	left    reflect.Value // a *buffer.Buffer, of a package internal to go-amqp
}

func newReceiver() *receiver {
	of := reflect.TypeOf((*amqp.Message).Unmarshal).In(1)
	return &receiver{left: reflect.New(of.Elem())}
}

// receive decodes the next message. It returns what go-amqp panics at, if it does.
func (r *receiver) receive(message []byte) (panicked any, err error) {
	defer func() { panicked = recover() }()
	r.left.MethodByName("Append").Call([]reflect.Value{reflect.ValueOf(message)})
	returned := reflect.ValueOf(&r.message).MethodByName("Unmarshal").Call([]reflect.Value{r.left})
	if err, _ = reflect.TypeAssert[error](returned[0]); err != nil {
		return nil, err
	}
	r.left.MethodByName("Reset").Call(nil)
	r.message = amqp.Message{}
	return nil, nil
}

// delivered has messages come to a link, in frames of at most so many bytes of one, read in
// pieces, and go-amqp decode them until the connection is ended. It returns what go-amqp
// panics at, and its error for each message that it was given.
func delivered(messages [][]byte, size, piece int) (panicked any, said []error) {
	f, r := newFrames(nil), newReceiver()
	for _, m := range messages {
		var given []byte
		for more := true; more; {
			n := min(size, len(m))
			more = n < len(m)
			came := transfer(link{7, 1}, more, false, m[:n])
			for part := range slices.Chunk(came, piece) {
				if f.came(part); f.resumes {
					return nil, said
				}
			}
			given, m = append(given, came[len(came)-n:]...), m[n:]
		}
		panicked, err := r.receive(given)
		if panicked != nil {
			return panicked, said
		}
		said = append(said, err)
	}
	return nil, said
}

// tooShort are messages that end before a size or a length in them, so that go-amqp stops
// there, and would next take what is behind it for a section: one with a key that is a list.
func tooShort(t testing.TB) map[string][]byte {
	t.Helper()
	const footer = "005378c10302 4540"
	// To go-amqp a descriptor of eight bytes is that of a section by its last one.
	properties := "0080 0000000000000173 c0130240 98" + footer + "0000000000000000"
	data := "0080 0000000000000175 c0130240 98" + footer + "0000000000000000"
	filler := fmt.Sprintf("b000001000%x", make([]byte, 0x1000))
	messages := map[string][]byte{}
	for name, s := range map[string]string{
		"a list":                         "005377 d0000fffff00000002" + properties + filler,
		"a list with data":               "005377 d0000fffff00000002" + data + filler,
		"a list, and no type behind":     "005377 d0000fffff00000003" + properties + filler + "ff",
		"a map":                          "005377 d1000fffff00000002" + properties + filler,
		"an array":                       "005377 f0000fffff0000200050" + footer + filler,
		"an array's elements":            "005377 f00000100900001005b0" + "00001000" + footer + filler,
		"a number":                       "005377 83" + footer[:len(footer)-3],
		"a length":                       "005377 b0" + "005378",
		"a count of a map":               "005377 d1" + "005378c103024",
		"a descriptor of eight bytes":    "005377 0080" + "0000000000",
		"a value that is described only": "005377 00a3" + "0178",
	} {
		if n := len(bytes.ReplaceAll([]byte(s), []byte(" "), nil)); n%2 == 1 {
			s += "0"
		}
		messages[name] = unhex(t, s)
	}
	return messages
}

// After a message that ends too early go-amqp is given nothing of which it would take a part
// for a section, however the message came.
func TestFrames_LetNothingResumeInAMessage(t *testing.T) {
	t.Parallel()
	good := ordinary(t)
	for name, m := range tooShort(t) {
		for _, size := range []int{1, 8, 100, 0x1000, 1 << 20} {
			for _, piece := range []int{1, 7, 0x1000, 1 << 20} {
				panicked, said := delivered([][]byte{good, m, good, good, good}, size, piece)
				if panicked != nil {
					t.Fatalf("%s, in frames of %d and pieces of %d: go-amqp panics: %v", name, size, piece, panicked)
				}
				if len(said) > 0 && said[0] != nil || slices.Contains(said[min(1, len(said)):], nil) {
					t.Errorf("%s, in frames of %d and pieces of %d: got %v, want errors of all but the first", name, size, piece, said)
				}
			}
		}
	}
}

// A message that comes in one frame, or that is refused for a value in it, ends its link
// alone: others on the connection have nothing to do with it.
func TestFrames_KeepTheConnectionWhereNothingResumes(t *testing.T) {
	t.Parallel()
	good, key := ordinary(t), unhex(t, "005377a10161 005378c103024540")
	for name, c := range map[string]struct {
		message []byte
		size    int
	}{
		"a size beyond the only frame": {tooShort(t)["a list"], 1 << 20},
		"a key in the last frame":      {key, 8},
	} {
		if _, said := delivered([][]byte{c.message, good, good}, c.size, 64); len(said) != 3 {
			t.Errorf("%s: got %d messages before the connection ends, want all 3", name, len(said))
		}
	}
}

// The connection ends at the next transfer of the link, of which go-amqp gets nothing.
func TestConn_EndsBeforeGoAMQPResumesInAMessage(t *testing.T) {
	t.Parallel()
	bad, good := tooShort(t)["a list"], ordinary(t)
	one, other := link{7, 1}, link{7, 2}
	peer, socket := net.Pipe()
	defer func() { _ = socket.Close() }()
	go func() {
		for _, frame := range [][]byte{
			transfer(one, true, false, bad[:200]), transfer(one, false, false, bad[200:]),
			transfer(other, false, false, good), transfer(one, false, false, good),
		} {
			_, _ = peer.Write(frame)
		}
		_ = peer.Close()
	}()
	came, err := io.ReadAll(Conn(socket, nil))
	if !errors.Is(err, errResumes) || !bytes.HasSuffix(came, transfer(other, false, false, good)) {
		t.Errorf("got %d bytes and %v, want all up to the other link's message, and %v", len(came), err, errResumes)
	}
}

// FuzzFrames has go-amqp decode what comes after a message, too.
func FuzzFrames(f *testing.F) {
	good := unhex(f, "005377a10161")
	f.Add(good, good, uint8(200), uint8(90))
	for _, m := range tooShort(f) {
		f.Add(m[:min(len(m), 0x80)], good, uint8(100), uint8(40))
	}
	f.Fuzz(func(t *testing.T, first, second []byte, size, piece uint8) {
		if max(len(first), len(second)) > 1<<8 {
			return // a byte at a time it takes long
		}
		messages := [][]byte{first, second, second, good, bytes.Repeat([]byte{0x40}, 64)}
		if panicked, said := delivered(messages, int(max(size, 1)), int(max(piece, 1))); panicked != nil {
			t.Fatalf("%x, %x: go-amqp panics after %v: %v", first, second, said, panicked)
		}
	})
}
