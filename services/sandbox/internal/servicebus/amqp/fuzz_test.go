package amqp_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"

	"changerelay/services/sandbox/internal/servicebus/amqp"
)

func FuzzValue(f *testing.F) {
	for _, v := range values() {
		f.Add(amqp.AppendValue(nil, v))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		r := amqp.NewReader(input)
		v := r.Value()
		if r.Err() != nil {
			return
		}
		again := amqp.NewReader(amqp.AppendValue(nil, v))
		if w := again.Value(); again.Err() != nil || again.Len() != 0 || !same(v, w) {
			t.Errorf("got %#v back (error %v), want %#v", w, again.Err(), v)
		}
		s := amqp.NewReader(input)
		if s.Skip(); s.Err() != nil || s.Pos() != r.Pos() {
			t.Errorf("got to %d by skipping (error %v), want %d", s.Pos(), s.Err(), r.Pos())
		}
	})
}

// same compares by encoding: a NaN equals itself in no other way.
func same(a, b any) bool { return bytes.Equal(amqp.AppendValue(nil, a), amqp.AppendValue(nil, b)) }

func FuzzPerformative(f *testing.F) {
	for _, p := range performatives() {
		f.Add(readFrame(f, amqp.AppendFrame(nil, amqp.FrameAMQP, 0, p)).Body)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		p, _, err := amqp.ReadPerformative(input)
		if err != nil {
			return
		}
		frame := readFrame(t, amqp.AppendFrame(nil, amqp.FrameAMQP, 0, p))
		again, _, err := amqp.ReadPerformative(frame.Body)
		if err != nil || reflect.TypeOf(again) != reflect.TypeOf(p) {
			t.Fatalf("got %T back (error %v), want %T", again, err, p)
		}
		if b := readFrame(t, amqp.AppendFrame(nil, amqp.FrameAMQP, 0, again)).Body; !bytes.Equal(b, frame.Body) {
			t.Errorf("got %x, want %x", b, frame.Body)
		}
	})
}

func FuzzMessage(f *testing.F) {
	f.Add(official(f, fullMessage()))
	f.Add(amqp.AppendBodyValue(nil, "x"))
	f.Fuzz(func(t *testing.T, input []byte) {
		m, err := amqp.ReadMessage(input)
		if err != nil {
			return
		}
		_, _ = m.Value()
		_, _ = m.Data()
		b, err := amqp.OverlayApplicationProperties(nil, m.Bare, amqp.Map{{Key: "k", Value: "v"}})
		if err != nil {
			t.Fatalf("overlay: %v", err)
		}
		again, err := amqp.ReadMessage(b)
		if err != nil || again.ApplicationProperties.String("k") != "v" || !bytes.Equal(again.Body, m.Body) {
			t.Errorf("got %#v (error %v), want the same message with k", again, err)
		}
	})
}

func FuzzFrames(f *testing.F) {
	f.Add(amqp.AppendFrame(amqp.Heartbeat[:], amqp.FrameAMQP, 1, &amqp.End{}))
	f.Fuzz(func(t *testing.T, input []byte) {
		r := amqp.NewFrameReader(bytes.NewReader(input), 4096)
		for {
			frame, err := r.Read()
			var refused *amqp.Error
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &refused) {
				return
			}
			if err != nil || len(frame.Body) > 4096 {
				t.Fatalf("got a body of %d bytes, error %v", len(frame.Body), err)
			}
		}
	})
}
