package sessionlink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/rs/zerolog"

	"changerelay/services/projector/internal/decodable"
)

const (
	// lanesMost is how many AMQP sessions a connection has for links; the service
	// allows some 5,000 in all. Where a peer allows fewer, ownSessions of them are kept
	// free: two each for $cbs and $management, one of which may still be ending while the
	// next is made.
	lanesMost   = 4900
	ownSessions = 4
	// laneLinks is how many links a lane has room for: one, and those before it
	// that go-amqp has yet to forget.
	laneLinks = 16
	// idleLanes is how many lanes that no link is on are kept, at most.
	idleLanes = 64
	// laneCloseTime is how long the service may take to end an AMQP session.
	laneCloseTime = 10 * time.Second
)

var errLanes = errors.New("the connection carries as many sessions as it may; raise SERVICEBUS_CONNECTIONS")

// wire is one AMQP connection, and what all sessions on it share.
//
// Each link is on an AMQP session that it has for itself, a lane, since what
// go-amqp cannot make sense of ends the whole AMQP session: an answer to a
// settlement that comes after the link's end, a handle that is taken again
// before the service was told that it is free. Lanes are used again and again.
type wire struct {
	cfg        *Config
	log        zerolog.Logger
	conn       *amqp.Conn
	pace       *pace
	frames     *frames
	refused    *decodable.Refused
	claims     *claims
	management *node
	stop       context.CancelFunc
	running    running
	// answered is when the service last answered anything, in Unix nanoseconds.
	answered atomic.Int64
	// leastTrip is the least time that the service took to answer, in nanoseconds.
	leastTrip atomic.Int64

	mu    sync.Mutex
	idle  []*amqp.Session // guarded by mu: lanes that no link is on
	lanes int             // guarded by mu
}

// openWire connects and proves who comes.
func openWire(ctx context.Context, cfg *Config, log zerolog.Logger) (*wire, error) {
	refused := new(decodable.Refused)
	socket, err := cfg.Access.Dial(ctx, refused.Note)
	if err != nil {
		return nil, fmt.Errorf("connect to Service Bus: %w", err)
	}
	stream := newStream(socket)
	asked := time.Now()
	conn, err := amqp.NewConn(ctx, stream, &amqp.ConnOptions{
		HostName:   cfg.Access.Host,
		SASLType:   amqp.SASLTypeAnonymous(),
		Properties: map[string]any{"product": "change-relay-projector"},
	})
	if err != nil {
		return nil, fmt.Errorf("connect to Service Bus: %w", err)
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	w := &wire{cfg: cfg, log: log, conn: conn, stop: stop, pace: newPace(cfg.Linger, &stream.carried), frames: &stream.frames, refused: refused}
	w.leastTrip.Store(int64(time.Since(asked))) // of several, until a lane shows less
	cbs := newNode(conn, "$cbs", &w.running, nil)
	w.claims = newClaims(cfg, cbs, w.replace, log)
	management := cfg.entity() + "/$management"
	w.management = newNode(conn, management, &w.running, func(ctx context.Context, after time.Time) error {
		return w.claims.put(ctx, management, after)
	})
	w.management.patience.least = cfg.answerTime
	if err := w.claims.put(ctx, cfg.entity(), time.Time{}); err != nil {
		w.close()
		return nil, err
	}
	w.heard()
	w.running.Go(func() { w.claims.run(background) })
	// The first renewal does not wait for the exchanges that this takes, behind messages.
	w.running.Go(func() { w.management.ready(background, cfg.connectTime) })
	return w, nil
}

// over tells whether the connection has ended.
func (w *wire) over() bool {
	select {
	case <-w.conn.Done():
		return true
	default:
		return false
	}
}

// close ends the connection and all sessions on it.
func (w *wire) close() {
	w.stop()
	_ = w.conn.Close() // what it carried is over
	w.running.Wait()
}

// replace ends a connection that does not answer, so that the next accept has another.
func (w *wire) replace() {
	w.log.Warn().Msg("the Service Bus connection does not answer and is replaced")
	w.running.Go(func() { _ = w.conn.Close() })
}

func (w *wire) heard() { w.answered.Store(time.Now().UnixNano()) }

// silentSince tells whether nothing was answered after a moment.
func (w *wire) silentSince(moment time.Time) bool { return w.answered.Load() < moment.UnixNano() }

// attachTrips are the round trips of an attach: one begins its lane.
const attachTrips = 2

// trip is how long a round trip takes, as far as is known.
func (w *wire) trip() time.Duration { return time.Duration(w.leastTrip.Load()) }

// noteTrip notes that a round trip ends that began at a moment.
func (w *wire) noteTrip(began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leastTrip.Store(min(w.leastTrip.Load(), int64(time.Since(began))))
}

// lane returns an AMQP session that no link is on.
func (w *wire) lane(ctx context.Context) (*amqp.Session, error) {
	w.mu.Lock()
	if n := len(w.idle); n > 0 {
		lane := w.idle[n-1]
		w.idle = w.idle[:n-1]
		w.mu.Unlock()
		return lane, nil
	}
	if w.lanes >= w.most() {
		w.mu.Unlock()
		return nil, errLanes
	}
	w.lanes++
	w.mu.Unlock()
	asked := time.Now()
	lane, err := w.conn.NewSession(ctx, &amqp.SessionOptions{MaxLinks: laneLinks})
	if err != nil {
		w.mu.Lock()
		w.lanes--
		w.mu.Unlock()
		return nil, fmt.Errorf("begin an AMQP session: %w", err)
	}
	w.noteTrip(asked)
	return lane, nil
}

// most is how many lanes there may be. go-amqp does not tell of the peer's bound, and ends the
// connection that would exceed it (v1.7.0, Conn.newSession).
func (w *wire) most() int {
	if channels := int(w.frames.channels.Load()); channels > 0 {
		return min(channels-ownSessions, lanesMost)
	}
	return lanesMost
}

// free notes that a lane's link was ended by us and by the service, in this order,
// so that it can be used again.
func (w *wire) free(ctx context.Context, lane *amqp.Session) {
	w.mu.Lock()
	keep := len(w.idle) < idleLanes
	if keep {
		w.idle = append(w.idle, lane)
	}
	w.mu.Unlock()
	if !keep {
		w.drop(ctx, lane)
	}
}

// drop ends a lane, in the background, with whatever is still on it.
func (w *wire) drop(ctx context.Context, lane *amqp.Session) {
	w.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), laneCloseTime)
		defer cancel()
		_ = lane.Close(ctx) // there is nothing that could still be done
		w.mu.Lock()
		w.lanes--
		w.mu.Unlock()
	})
}

// isAnswer tells whether err is the service's answer to an attach.
func isAnswer(err error) bool {
	_, ofSession := errors.AsType[*amqp.SessionError](err)
	_, ofConn := errors.AsType[*amqp.ConnError](err)
	_, answered := errors.AsType[*amqp.Error](err)
	return answered && !ofSession && !ofConn
}
