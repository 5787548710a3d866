package admin

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func read(t *testing.T, h *history) (samples []Sample) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/history", nil))
	if err := json.Unmarshal(w.Body.Bytes(), &samples); err != nil {
		t.Fatal(err)
	}
	return samples
}

func TestHistory_TheLastTenMinutesAreKept(t *testing.T) {
	t.Parallel()
	h := &history{}
	if h.take(time.Now()); len(read(t, h)) != 0 {
		t.Errorf("without samples got %v, want none", read(t, h))
	}
	n := 0
	h.sample = func() Sample { n++; return Sample{InFlight: n} }
	for i := range sampled + 5 {
		h.take(time.UnixMilli(int64(i)))
	}
	got := read(t, h)
	if len(got) != sampled || got[0].InFlight != 6 || got[sampled-1].InFlight != sampled+5 || got[0].At != 5 {
		t.Errorf("got %d samples from %+v to %+v, want the last %d of %d", len(got), got[0], got[len(got)-1], sampled, sampled+5)
	}
}

// TestHistory_AServerSamplesWhileItRuns serves nobody: the samples are there before
// anybody looks.
func TestHistory_AServerSamplesWhileItRuns(t *testing.T) {
	t.Parallel()
	server, err := New("127.0.0.1:0", Source{Sample: func() Sample { return Sample{PerSecond: 5} }})
	if err != nil {
		t.Fatal(err)
	}
	_ = server.listener.Close() // nothing in a bubble may wait for a socket
	synctest.Test(t, func(t *testing.T) {
		server.listener = hung(make(chan struct{}))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- server.Run(ctx) }()
		time.Sleep(10 * sampleEvery) //nolint:forbidigo // in a bubble
		synctest.Wait()
		if got := read(t, server.history); len(got) != 11 || got[10].PerSecond != 5 {
			t.Errorf("got %v, want a sample at the start and each of ten", got)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// hung is a listener to which nobody connects, until it is closed.
type hung chan struct{}

func (h hung) Accept() (net.Conn, error) { <-h; return nil, net.ErrClosed }
func (h hung) Close() error              { close(h); return nil }
func (h hung) Addr() net.Addr            { return &net.TCPAddr{} }
