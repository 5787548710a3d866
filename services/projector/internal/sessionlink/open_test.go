package sessionlink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/session"
)

// However the fields before it are written, how many channels a peer allows is found.
func TestOpen_TellsHowManyChannelsThereAre(t *testing.T) {
	t.Parallel()
	container := append([]byte{0xa1, 2}, "id"...)
	most := []byte{0x60, 0, 7}
	for name, tt := range map[string]struct {
		fields [][]byte
		want   int64
	}{
		"all fields":              {[][]byte{container, append([]byte{0xb1, 0, 0, 0, 1}, 'h'), {0x70, 0, 1, 0, 0}, most}, 8},
		"short and absent ones":   {[][]byte{container, {0x40}, {0x52, 9}, most}, 8},
		"it is not said":          {[][]byte{container, {0x40}, {0x43}, {0x40}}, 0},
		"the list ends before":    {[][]byte{container}, 0},
		"a value of another kind": {[][]byte{container, {0xff}, {0x43}, most}, 0},
		"one that is cut off":     {[][]byte{append([]byte{0xa1, 250}, make([]byte, 250)...), {0x40}, {0x43}, most}, 0},
	} {
		fields := slices.Concat(tt.fields...)
		for width, list := range map[string][]byte{
			"short": append([]byte{0xc0, byte(len(fields) + 1), 4}, fields...),
			"wide":  append([]byte{0xd0, 0, 0, 0, byte(len(fields) + 4), 0, 0, 0, 4}, fields...),
		} {
			var f frames
			f.came(frame(0, openCode, list...))
			if got := f.channels.Load(); got != tt.want {
				t.Errorf("%s, in a %s list: got %d, want %d", name, width, got, tt.want)
			}
		}
	}
}

// A peer may allow few channels, and go-amqp ends the connection that would take one more, with
// all that is held on it.
func TestOpen_NoMoreSessionsAreTakenThanThePeerHasChannels(t *testing.T) {
	t.Parallel()
	const channels = 8
	for i := range channels {
		sandboxtest.Send(t, servers, "channels", messages(fmt.Sprintf("s%d", i), 1, 1)...)
	}
	cfg := at(t, servers, "channels")
	cfg.Access.Host = fewChannels(t, cfg.Access.Host, channels)
	s := open(t, cfg)
	var held []*receiver
	for len(held) < channels {
		r, err := accept(t, s, 30*time.Second)
		if err != nil {
			if !errors.Is(err, errLanes) || len(held) != channels-ownSessions {
				t.Errorf("beside %d that are held: got %v, want %v beside %d", len(held), err, errLanes, channels-ownSessions)
			}
			break
		}
		held = append(held, r.(*receiver))
	}
	for _, r := range held {
		if err := r.Settle(t.Context(), receive(t, r, 1, 1)[0], session.Verdict{}); err != nil {
			t.Errorf("settle what is held: %v", err)
		}
		if err := r.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
	mustAccept(t, s)
}

// fewChannels is the address of a way to the sandbox on which that allows fewer channels.
func fewChannels(t *testing.T, host string, channels byte) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := new(net.Dialer).DialContext(context.WithoutCancel(t.Context()), "tcp", host)
			if err != nil {
				_ = from.Close()
				return
			}
			running.Go(func() { defer to.Close(); _, _ = io.Copy(to, from) })
			running.Go(func() {
				defer from.Close()
				b := make([]byte, 64<<10)
				for {
					n, err := to.Read(b)
					if err != nil {
						return
					}
					told := bytes.Replace(b[:n], []byte{0x60, 0x13, 0x87}, []byte{0x60, 0, channels - 1}, 1)
					if _, err := from.Write(told); err != nil {
						return
					}
				}
			})
		}
	})
	return l.Addr().String()
}
