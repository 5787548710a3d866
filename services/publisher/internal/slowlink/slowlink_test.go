package slowlink

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// allowed is the deadline that a reader sets for an answer, and answerSize how many bytes
// that has.
const (
	allowed    = 16 * time.Second
	answerSize = 4 << 20
)

func TestRead_WaitsWhileBytesCome(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		perSecond, come int
		fails           time.Duration // after the last byte at the latest; 0 is not at all
	}{
		"a slow answer":            {8 << 10, answerSize, 0},
		"no answer":                {1 << 20, 0, allowed},
		"one that ends":            {1 << 20, answerSize / 2, allowed},
		"one that comes no nearer": {1 << 10, answerSize, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				end := make(chan struct{})
				var answering sync.WaitGroup
				defer answering.Wait()
				defer close(end)
				defer near.Close()
				last := time.Now()
				answering.Go(func() {
					defer far.Close()
					for n := 0; n < tt.come; n += tt.perSecond {
						time.Sleep(time.Second) //nolint:forbidigo // in a bubble, where it is exact
						if _, err := far.Write(make([]byte, tt.perSecond)); err != nil {
							return
						}
						last = time.Now()
					}
					<-end
				})
				c := &conn{Conn: near}
				if err := c.SetReadDeadline(time.Now().Add(allowed)); err != nil {
					t.Fatal(err)
				}
				_, err := io.ReadFull(c, make([]byte, answerSize))
				switch after := time.Since(last); {
				case tt.fails == 0 && err != nil:
					t.Errorf("the answer is not read: %v", err)
				case tt.fails > 0 && (!errors.Is(err, os.ErrDeadlineExceeded) || after > tt.fails):
					t.Errorf("got %v %s after the last byte, want the deadline within %s", err, after, tt.fails)
				}
			})
		})
	}
}
