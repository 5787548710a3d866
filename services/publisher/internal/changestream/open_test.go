package changestream_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"changerelay/services/publisher/internal/changestream"
)

// scanning is a server that reads its operation log for so long before a stream
// is open, and ends each stream's cursor after its change.
func scanning(t *testing.T, takes func(n int) time.Duration) (*silentServer, *changestream.Stream) {
	t.Helper()
	server := &silentServer{end: make(chan struct{})}
	server.silence = func(end <-chan struct{}) { <-end }
	server.opening = func(n int) {
		timer := time.NewTimer(takes(n))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-server.end:
		}
	}
	return server, changestream.New(changestream.Of(server.connect(t).Database("shop").Collection("events")), changestream.Start{}, zerolog.Nop())
}

// TestOpen_TakesAsLongAsTheSourceNeeds has each place take a minute, or an hour, to
// be found: the first one, and that of a stream whose cursor was lost.
func TestOpen_TakesAsLongAsTheSourceNeeds(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{time.Minute, time.Hour} {
		t.Run(takes.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server, stream := scanning(t, func(int) time.Duration { return takes })
				defer stream.Close(t.Context())
				began := time.Now()
				opening := time.AfterFunc(takes/2, func() {
					if state := stream.State(); !state.Opening.Equal(began) && takes <= 10*time.Minute || state.Opening.IsZero() || !state.Unread.Equal(began) {
						t.Errorf("state is %+v half way, want the stream being opened, and nothing read since %s", state, began)
					}
				})
				defer opening.Stop()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Hour)
				defer cancel()
				if _, err := readSome(ctx, stream, 2); err != nil {
					t.Fatal(err)
				}
				if state := stream.State(); !state.Opening.IsZero() || !state.Unread.IsZero() || state.Err != nil {
					t.Errorf("state is %+v afterwards, want an open stream", state)
				}
				if tries := len(server.opened); takes <= 10*time.Minute && tries != 2 {
					t.Errorf("opened %d times, want each stream opened at the first attempt", tries)
				}
			})
		})
	}
}

func TestOpen_ASourceThatDiesMeanwhileIsNoticed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, stream := scanning(t, func(n int) time.Duration { return []time.Duration{time.Hour, 0}[min(n, 2)-1] })
		defer stream.Close(t.Context())
		died := time.AfterFunc(time.Minute, func() { server.dead.Store(true) })
		defer died.Stop()
		noticed := time.AfterFunc(time.Minute+70*time.Second, func() { // a look, what it may miss, and an answer
			if stream.State().Err == nil {
				t.Error("the source has been dead for 70 seconds, and the stream is still being opened")
			}
			server.dead.Store(false)
		})
		defer noticed.Stop()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if _, err := readSome(ctx, stream, 1); err != nil {
			t.Errorf("read %v, want the stream opened once the source is back", err)
		}
	})
}

func TestOpen_AStopEndsItAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, stream := scanning(t, func(int) time.Duration { return time.Hour })
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := time.AfterFunc(time.Minute, func() { cancel(stop) })
		defer stopped.Stop()
		began := time.Now()
		_, err := stream.Read(ctx)
		if took := time.Since(began); !errors.Is(err, stop) || took != time.Minute {
			t.Errorf("Read = %v after %s, want the stop's cause after a minute", err, took)
		}
	})
}
