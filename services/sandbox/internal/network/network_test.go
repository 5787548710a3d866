package network

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// pair is a connection under a shape, and its peer's end, in memory.
func pair(c Conditions) (near *conn, far net.Conn, shape *Shape) {
	shape = &Shape{}
	shape.Set(c)
	raw, far := net.Pipe()
	return newConn(raw, shape), far, shape
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// taken is how long something takes in the bubble.
func taken(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("got %s %v, want %v", what, got, want)
	}
}

func TestConn_DelaysEachDirectionByHalfOfTheRoundTripWithoutBlockingIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far, _ := pair(Conditions{RoundTrip: 100 * time.Millisecond})
		defer far.Close()
		equal(t, "time to write", taken(func() {
			for range 10 {
				_, err := near.Write([]byte("x"))
				must(t, err)
			}
		}), 0)
		buf := make([]byte, 10)
		equal(t, "time to arrive", taken(func() { _, err := io.ReadFull(far, buf); must(t, err) }), 50*time.Millisecond)
		time.Sleep(time.Second) // the time to connect is over
		go func() { _, _ = far.Write(buf) }()
		synctest.Wait()
		equal(t, "time to be read", taken(func() { _, err := io.ReadFull(near, buf); must(t, err) }), 50*time.Millisecond)
		must(t, near.Close())
		synctest.Wait()
	})
}

func TestConn_ChargesTheTimeToConnectToTheFirstBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far, _ := pair(Conditions{RoundTrip: 100 * time.Millisecond})
		defer far.Close()
		go func() { _, _ = far.Write([]byte("hello")) }()
		equal(t, "time", taken(func() { _, err := io.ReadFull(near, make([]byte, 5)); must(t, err) }), 150*time.Millisecond)
		must(t, near.Close())
	})
}

func TestConn_CarriesItsBandwidthInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far, _ := pair(Conditions{RoundTrip: 20 * time.Millisecond, Jitter: 5 * time.Millisecond, BytesPerSecond: 1 << 20})
		sent := make([]byte, 8<<20)
		for i := range sent {
			sent[i] = byte(i / 1000)
		}
		go func() {
			_, _ = near.Write(sent)
			_ = near.Close()
		}()
		var got []byte
		took := taken(func() { got, _ = io.ReadAll(far) })
		if !bytes.Equal(got, sent) {
			t.Errorf("got %d other bytes, want the %d that were sent", len(got), len(sent))
		}
		if took < 8*time.Second || took > 8*time.Second+20*time.Millisecond {
			t.Errorf("got %s for 8 s of bytes", took)
		}
	})
}

func TestConn_KeepsTheOrderWhenConditionsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far, shape := pair(Conditions{})
		go func() {
			for i, c := range []Conditions{{}, {RoundTrip: time.Second}, {}, {RoundTrip: time.Millisecond}} {
				shape.Set(c)
				_, _ = near.Write([]byte{byte('0' + i)})
			}
			_ = near.Close()
		}()
		got, err := io.ReadAll(far)
		must(t, err)
		equal(t, "bytes", string(got), "0123")
	})
}

func TestConn_HoldsUpAWriterWhosePeerDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far, _ := pair(Conditions{RoundTrip: time.Millisecond})
		defer far.Close()
		must(t, near.SetWriteDeadline(time.Now().Add(time.Minute)))
		var err error
		equal(t, "time", taken(func() { _, err = near.Write(make([]byte, 3*pipeBytes)) }), time.Minute)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v, want that the deadline has passed", err)
		}
		must(t, near.Close())
		time.Sleep(2 * closing)
	})
}

func TestConn_ADeadlineThatIsSetEndsAReadUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far, _ := pair(Conditions{RoundTrip: time.Millisecond})
		defer far.Close()
		done := make(chan error)
		go func() { _, err := near.Read(make([]byte, 1)); done <- err }()
		synctest.Wait()
		must(t, near.SetReadDeadline(time.Unix(1, 0)))
		if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v, want that the deadline has passed", err)
		}
		must(t, near.SetReadDeadline(time.Time{}))
		go func() { _, _ = far.Write([]byte("x")) }()
		_, err := near.Read(make([]byte, 1))
		must(t, err)
		must(t, near.Close())
	})
}

func TestConn_LosesWhatIsUnderWayWhenItIsReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far, _ := pair(Conditions{RoundTrip: time.Second})
		_, err := near.Write([]byte("lost"))
		must(t, err)
		must(t, near.SetLinger(0))
		must(t, near.Close())
		got, _ := io.ReadAll(far)
		equal(t, "bytes", len(got), 0)
	})
}

func TestConn_SeesTheEndOfItsPeerBehindItsBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far, _ := pair(Conditions{RoundTrip: time.Second})
		go func() {
			_, _ = far.Write([]byte("last"))
			_ = far.Close()
		}()
		got, err := io.ReadAll(near)
		must(t, err)
		equal(t, "bytes", string(got), "last")
		must(t, near.Close())
	})
}
