package sessionlink

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
)

// counted counts what is written, and how often, and may be held up or refuse.
type counted struct {
	net.Conn
	hold chan struct{} // each write takes one

	mu     sync.Mutex
	writes int          // guarded by mu
	got    bytes.Buffer // guarded by mu
}

func (c *counted) Write(b []byte) (int, error) {
	if _, open := <-c.hold; !open {
		return 0, io.ErrClosedPipe
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes++
	return c.got.Write(b)
}

func newCounted(t *testing.T) (*stream, *counted) {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { _ = far.Close() })
	c := &counted{Conn: near, hold: make(chan struct{}, 1000)}
	return newStream(c), c
}

func TestStream_WritesManyFramesAtOnceAndInOrder(t *testing.T) {
	t.Parallel()
	s, c := newCounted(t)
	var want []byte
	for i := range 500 {
		frame := []byte{byte(i), byte(i >> 8), 'x'}
		want = append(want, frame...)
		if _, err := s.Write(frame); err != nil {
			t.Fatal(err)
		}
	}
	for range 600 {
		c.hold <- struct{}{}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(c.got.Bytes(), want) {
		t.Errorf("got %d bytes, want the %d in their order", c.got.Len(), len(want))
	}
	if c.writes > 5 {
		t.Errorf("got %d writes while the first was held up, want few", c.writes)
	}
}

func TestStream_ClosesWhatCannotBeWritten(t *testing.T) {
	t.Parallel()
	s, c := newCounted(t)
	close(c.hold)
	if _, err := s.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	// Whoever reads learns that the connection is gone, and then whoever writes.
	if _, err := s.Read(make([]byte, 1)); err == nil {
		t.Error("read: got nil, want that the connection is closed")
	}
	if _, err := s.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("write: got %v, want why nothing is written", err)
	}
	_ = s.Close()
}

func TestStream_HoldsBackWritersThatAreTooFast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := newCounted(t)
		written := 0
		go func() {
			for range 40 {
				if _, err := s.Write(make([]byte, streamMost/10)); err != nil {
					return
				}
				written++
			}
		}()
		synctest.Wait()
		if written < 10 || written > 25 {
			t.Errorf("got %d writes taken while none is carried out, want as many as may wait", written)
		}
		for range 100 {
			c.hold <- struct{}{}
		}
		synctest.Wait()
		if written != 40 {
			t.Errorf("got %d writes taken, want all 40", written)
		}
		_ = s.Close()
	})
}
