package amqp_test

import (
	"bufio"
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"changerelay/services/sandbox/internal/servicebus/amqp"
)

func performatives() []amqp.Performative {
	failure := &amqp.Error{Condition: amqp.ConditionNotFound, Description: "gone", Info: amqp.Map{{Key: amqp.Symbol("a"), Value: "b"}}}
	long := strings.Repeat("x", 300)
	return []amqp.Performative{
		&amqp.Open{ContainerID: "c", Hostname: "h", MaxFrameSize: 512, ChannelMax: 9, IdleTimeout: 1000, Properties: amqp.Map{{Key: amqp.Symbol("product"), Value: "x"}}},
		&amqp.Open{ContainerID: long, MaxFrameSize: 1 << 20, ChannelMax: 65535},
		&amqp.Begin{RemoteChannel: amqp.Some(0), NextOutgoingID: 1, IncomingWindow: 5000, OutgoingWindow: 5000, HandleMax: 255},
		&amqp.Begin{HandleMax: 1},
		&amqp.Attach{
			Name: "n", Handle: 3, Role: amqp.RoleReceiver, SenderMode: amqp.SenderSettled, ReceiverMode: amqp.ReceiverSecond,
			Source: &amqp.Source{
				Address: "a", Durable: 1, ExpiryPolicy: "never", Timeout: 5, Dynamic: true, DistributionMode: "move",
				Filter:       amqp.Map{{Key: amqp.Symbol("f"), Value: amqp.Described{Descriptor: uint64(1), Value: nil}}},
				Capabilities: []amqp.Symbol{"queue", "topic"},
			},
			Target:               &amqp.Target{Address: long, Durable: 2, ExpiryPolicy: "session-end", Timeout: 1, Dynamic: true, Capabilities: []amqp.Symbol{"x"}},
			InitialDeliveryCount: amqp.Some(0), MaxMessageSize: 1 << 40, Properties: amqp.Map{{Key: amqp.Symbol("p"), Value: int64(1)}},
		},
		&amqp.Attach{Name: "n", SenderMode: amqp.SenderMixed, Target: &amqp.Target{Coordinator: true}},
		&amqp.Flow{
			NextIncomingID: amqp.Some(1), IncomingWindow: 2, NextOutgoingID: 3, OutgoingWindow: 4, Handle: amqp.Some(0),
			DeliveryCount: amqp.Some(5), LinkCredit: amqp.Some(6), Available: amqp.Some(7), Drain: true, Echo: true,
		},
		&amqp.Flow{},
		&amqp.Transfer{Handle: 1, DeliveryID: amqp.Some(2), DeliveryTag: []byte{3}, MessageFormat: amqp.Some(0x80013700), Settled: true, More: true, State: amqp.Accepted{}, Resume: true, Aborted: true, Batchable: true},
		&amqp.Transfer{},
		&amqp.Disposition{Role: amqp.RoleReceiver, First: 1, Last: amqp.Some(9), Settled: true, State: amqp.Rejected{Error: failure}, Batchable: true},
		&amqp.Disposition{State: amqp.Modified{DeliveryFailed: true, UndeliverableHere: true, MessageAnnotations: amqp.Map{{Key: amqp.Symbol("a"), Value: "b"}}}},
		&amqp.Disposition{State: amqp.Released{}},
		&amqp.Disposition{State: amqp.Received{SectionNumber: 1, SectionOffset: 300}},
		&amqp.Disposition{State: amqp.Transactional{}},
		&amqp.Detach{Handle: 4, Closed: true, Error: failure},
		&amqp.End{Error: failure}, &amqp.End{},
		&amqp.Close{Error: failure}, &amqp.Close{},
		&amqp.SASLMechanisms{Mechanisms: []amqp.Symbol{"PLAIN"}},
		&amqp.SASLInit{Mechanism: "PLAIN", InitialResponse: []byte("x"), Hostname: "h"},
		&amqp.SASLOutcome{Code: amqp.SASLAuth},
	}
}

func TestPerformatives_EveryPerformativeSurvivesARoundTrip(t *testing.T) {
	t.Parallel()
	for _, want := range performatives() {
		frame := readFrame(t, amqp.AppendFrame(nil, amqp.FrameAMQP, 7, want))
		if frame.Channel != 7 {
			t.Errorf("got channel %d, want 7", frame.Channel)
		}
		got, rest, err := amqp.ReadPerformative(frame.Body)
		if err != nil || len(rest) != 0 {
			t.Fatalf("%T: got error %v and %d bytes left", want, err, len(rest))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %#v, want %#v", got, want)
		}
	}
}

func readFrame(tb testing.TB, b []byte) amqp.Frame {
	tb.Helper()
	frame, err := amqp.NewFrameReader(bytes.NewReader(b), 1<<20).Read()
	if err != nil {
		tb.Fatalf("unexpected error: %v", err)
	}
	return frame
}

func TestPerformatives_SymbolicDescriptorsAreUnderstood(t *testing.T) {
	t.Parallel()
	b := append([]byte{0}, amqp.AppendSymbol(nil, "amqp:end:list")...)
	got, _, err := amqp.ReadPerformative(append(b, 0x45))
	if _, ok := got.(*amqp.End); !ok || err != nil {
		t.Errorf("got %T, error %v, want *amqp.End", got, err)
	}
}

func TestPerformatives_FieldsOfALaterVersionArePassedOver(t *testing.T) {
	t.Parallel()
	// An end with a null error and two fields more.
	got, rest, err := amqp.ReadPerformative([]byte{0, 0x53, 0x17, 0xc0, 4, 3, 0x40, 0x41, 0x42, 'r'})
	if _, ok := got.(*amqp.End); !ok || err != nil || string(rest) != "r" {
		t.Errorf("got %T, rest %q, error %v, want *amqp.End and the rest", got, rest, err)
	}
}

func TestPerformatives_ALargeTransferIsSplitAtTheFrameSize(t *testing.T) {
	t.Parallel()
	payload := bytes.Repeat([]byte("0123456789"), 500)
	transfer := &amqp.Transfer{Handle: 1, DeliveryID: amqp.Some(2), DeliveryTag: make([]byte, 16), MessageFormat: amqp.Some(0)}
	var whole []byte
	for rest, more := payload, true; more; {
		var b []byte
		b, rest = amqp.AppendTransfer(nil, 0, transfer, rest, 512)
		if len(b) > 512 {
			t.Fatalf("got a frame of %d bytes, want at most 512", len(b))
		}
		p, part, err := amqp.ReadPerformative(readFrame(t, b).Body)
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		more = p.(*amqp.Transfer).More
		if more != (len(rest) > 0) {
			t.Errorf("got more %t with %d bytes left", more, len(rest))
		}
		whole = append(whole, part...)
		*transfer = amqp.Transfer{Handle: 1}
	}
	if !bytes.Equal(whole, payload) {
		t.Errorf("got %d bytes, want the %d that were sent", len(whole), len(payload))
	}
}

func TestPerformatives_FramesOutsideTheirBoundsAreRefused(t *testing.T) {
	t.Parallel()
	tests := map[string][]byte{
		"a size below the header":       {0, 0, 0, 7, 2, 0, 0, 0},
		"a size above the limit":        {0, 0, 4, 0, 2, 0, 0, 0},
		"a body that starts too early":  {0, 0, 0, 8, 1, 0, 0, 0},
		"a body that starts behind it":  {0, 0, 0, 8, 3, 0, 0, 0},
		"a size of four thousand mega":  {0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0},
		"an offset of the largest kind": {0, 0, 0, 16, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	}
	for name, input := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := amqp.NewFrameReader(bytes.NewReader(input), 512).Read()
			var refused *amqp.Error
			if !errors.As(err, &refused) || refused.Condition != amqp.ConditionFramingError {
				t.Errorf("got %v, want %s", err, amqp.ConditionFramingError)
			}
		})
	}
}

func TestPerformatives_AFrameCountsAsBufferedWhenItIsWhole(t *testing.T) {
	t.Parallel()
	frame := amqp.AppendFrame(nil, amqp.FrameAMQP, 0, &amqp.End{})
	tests := map[string]struct {
		input []byte
		want  bool
	}{
		"nothing":                 {nil, false},
		"half a header":           {frame[:4], false},
		"a frame less one byte":   {frame[:len(frame)-1], false},
		"a frame":                 {frame, true},
		"a frame and some of one": {append(append([]byte{}, frame...), frame[:3]...), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := bufio.NewReader(bytes.NewReader(test.input))
			_, _ = r.Peek(1)
			if got := amqp.FrameBuffered(r); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// The counts are those of the standard (part 2, section 2.7): clients that look fields up by their index find each of them.
func TestComposite_HasAllItsFieldsWhateverIsSet(t *testing.T) {
	t.Parallel()
	tests := []struct {
		empty amqp.Performative
		want  int
	}{
		{&amqp.Open{}, 10},
		{&amqp.Begin{}, 8},
		{&amqp.Attach{}, 14},
		{&amqp.Flow{}, 11},
		{&amqp.Transfer{}, 11},
		{&amqp.Disposition{}, 6},
		{&amqp.Detach{}, 3},
		{&amqp.End{}, 1},
		{&amqp.Close{}, 1},
	}
	for _, test := range tests {
		body := readFrame(t, amqp.AppendFrame(nil, amqp.FrameAMQP, 0, test.empty)).Body
		described, ok := amqp.NewReader(body).Value().(amqp.Described)
		if !ok {
			t.Fatalf("%T: got %x, want a described list", test.empty, body)
		}
		if fields, _ := described.Value.([]any); len(fields) != test.want {
			t.Errorf("%T: got %d fields, want %d", test.empty, len(fields), test.want)
		}
	}
}
