package changestream_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/bson"

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

// TestOpen_TheOplogIsLookedAtForAsLongAsTheSourceNeeds has the log's oldest entry, which is
// looked at before each resume, take longer than any answer to a poll.
func TestOpen_TheOplogIsLookedAtForAsLongAsTheSourceNeeds(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{4 * time.Second, time.Minute} {
		t.Run(takes.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := &silentServer{silence: second, end: make(chan struct{}), finding: takes}
				place, err := bson.Marshal(bson.D{{Key: "_data", Value: "8265539F000000000A2B04"}})
				if err != nil {
					t.Fatal(err)
				}
				var log bytes.Buffer
				events := server.connect(t).Database("shop").Collection("events")
				stream := changestream.New(changestream.Of(events), changestream.Start{Token: place}, zerolog.New(&log))
				defer stream.Close(t.Context())
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				if _, err := readSome(ctx, stream, 1); err != nil {
					t.Fatalf("read %v, want the stream opened", err)
				}
				if log.Len() > 0 {
					t.Errorf("the log is %s, want the first attempt to succeed, with the look", &log)
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

// TestCheckAfter_TakesAsLongAsTheSourceNeeds has the place take an hour to be found, and a
// source that dies meanwhile.
func TestCheckAfter_TakesAsLongAsTheSourceNeeds(t *testing.T) {
	t.Parallel()
	place, err := bson.Marshal(bson.D{{Key: "_data", Value: "8265539F000000000A2B04"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		dies  time.Duration
		tried bool
	}{
		"an hour":            {dies: 2 * time.Hour, tried: true},
		"it dies on the way": {dies: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := &silentServer{end: make(chan struct{})}
				server.opening = func(int) {
					timer := time.NewTimer(time.Hour)
					defer timer.Stop()
					select {
					case <-timer.C:
					case <-server.end:
					}
				}
				died := time.AfterFunc(tt.dies, func() { server.dead.Store(true) })
				defer died.Stop()
				var told time.Duration
				source := changestream.Of(server.connect(t).Database("shop").Collection("events"))
				err := source.CheckAfter(t.Context(), place, func(took time.Duration) { told = took })
				if (err == nil) != tt.tried {
					t.Errorf("CheckAfter = %v, want that it was tried: %v", err, tt.tried)
				}
				if _, refused := errors.AsType[*changestream.HaltError](err); refused {
					t.Errorf("CheckAfter = %v, want no answer to be no refusal", err)
				}
				if told < 30*time.Second {
					t.Errorf("the last that was told is %s, want to hear of it all the time", told)
				}
			})
		})
	}
}
