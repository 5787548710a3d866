package sessionlink

import (
	"bufio"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of a stream.
const (
	streamBuffer = 64 << 10
	// streamMost is how many bytes may wait to be written.
	streamMost = 1 << 20
	// writeTime is how long the peer may take to take what is written.
	writeTime = 10 * time.Second
	// lastWriteTime is how long it may take for what is left at the end.
	lastWriteTime = time.Second
)

// stream is a connection that reads and writes many frames at once. go-amqp
// writes each frame by itself and reads half a kilobyte at a time; most of what
// a frame costs would be the calls of the operating system.
//
// A write returns when it is noted. Where it cannot be carried out the
// connection is closed, which whoever reads from it notices.
type stream struct {
	net.Conn
	in *bufio.Reader
	// carried is how many bytes have come.
	carried atomic.Int64
	frames  frames

	mu         sync.Mutex
	changed    *sync.Cond // of mu
	out, spare []byte     // guarded by mu
	err        error      // guarded by mu: why nothing is written any more
	closing    bool       // guarded by mu
	writer     sync.WaitGroup
}

func newStream(conn net.Conn) *stream {
	s := &stream{Conn: conn, in: bufio.NewReaderSize(conn, streamBuffer)}
	s.changed = sync.NewCond(&s.mu)
	s.writer.Go(s.write)
	return s
}

func (s *stream) Read(b []byte) (int, error) {
	n, err := s.in.Read(b)
	s.carried.Add(int64(n))
	s.frames.came(b[:n])
	return n, err
}

func (s *stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.out) > streamMost && s.err == nil && !s.closing {
		s.changed.Wait()
	}
	switch {
	case s.err != nil:
		return 0, s.err
	case s.closing:
		return 0, net.ErrClosed
	}
	s.out = append(s.out, b...)
	s.changed.Broadcast()
	return len(b), nil
}

// SetWriteDeadline does nothing: a stream has one of its own for each write,
// since what is written belongs to many.
func (s *stream) SetWriteDeadline(time.Time) error { return nil }

// write carries out writes until the stream is closed or a write fails.
func (s *stream) write() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for len(s.out) == 0 && !s.closing {
			s.changed.Wait()
		}
		if len(s.out) == 0 || s.err != nil {
			return
		}
		// Who is about to write comes first: one call of the operating system is for all.
		s.mu.Unlock()
		runtime.Gosched()
		s.mu.Lock()
		b := s.out
		s.out, s.spare = s.spare[:0], nil
		limit := writeTime
		if s.closing {
			limit = lastWriteTime
		}
		s.mu.Unlock()
		_ = s.Conn.SetWriteDeadline(time.Now().Add(limit))
		_, err := s.Conn.Write(b)
		s.mu.Lock()
		s.spare = b
		s.changed.Broadcast()
		if err != nil {
			s.err = err
			_ = s.Conn.Close()
			return
		}
	}
}

// Close writes what is left, for as long as lastWriteTime allows, and closes the connection.
func (s *stream) Close() error {
	s.mu.Lock()
	s.closing = true
	s.changed.Broadcast()
	s.mu.Unlock()
	// A write that is under way on a dead connection ends sooner.
	_ = s.Conn.SetWriteDeadline(time.Now().Add(lastWriteTime))
	s.writer.Wait()
	return s.Conn.Close()
}
