package sessionlink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/go-amqp"

	"changerelay/services/projector/internal/namespace"
	"changerelay/services/projector/internal/session"
)

// receiver is a held session: a link on a lane of its own.
type receiver struct {
	wire      *wire
	lane      *amqp.Session
	link      *amqp.Receiver
	sessionID string
	granted   time.Time
	// full: the last receive brought all that it waited for, so the next one may.
	full bool
	// owed is how many messages were asked for and have not been returned: credit
	// on the link, and what has come in the meantime.
	owed int
	// returned is how many messages were returned or let go, and settled how many of them
	// the service has settled on this link.
	returned int
	settled  atomic.Int64
	// kept is what came after a receive had ended.
	kept []*amqp.Message
	// last is the latest message that was returned.
	last arrival
	// each is what a message may weigh, before what the connection had carried when
	// messages were last asked for, and behind up to where what was under way then has
	// come; in bytes.
	each, before, behind int64
	// ahead is what was asked for ahead may weigh, as far as the pace knows of it.
	ahead int64
	// came is how many bytes of messages have come to this link, and cameBefore and
	// largeBefore are how many had, here and of large messages on the connection, when the
	// last receive began.
	came                    *atomic.Int64
	cameBefore, largeBefore int64
	// asked is when messages were last asked for, and trip how long the first one took
	// from then: what has just been asked for is not here sooner.
	asked time.Time
	trip  time.Duration
	// doubted tells that a call has failed. The answer to it may still come, or the
	// service has ended the link: nothing more is put on this lane.
	doubted atomic.Bool

	mu sync.Mutex
	// throttled are deliveries whose disposition the service refused as too much, until
	// they are settled.
	throttled map[*amqp.Message]bool // guarded by mu
}

var (
	_ session.Carrier = (*receiver)(nil)
	_ session.Fitter  = (*receiver)(nil)
)

func (r *receiver) SessionID() string { return r.sessionID }

func (r *receiver) LockedUntil() time.Time { return r.granted }

// Receive implements session.Receiver. What comes after a receive has ended
// stays with the link, in order, for the next one.
func (r *receiver) Receive(ctx context.Context, limit int) ([]session.Message, error) {
	r.announce(0)
	r.cameBefore, r.largeBefore = r.came.Load(), r.wire.frames.large.Load()
	some := r.expects(limit)
	measure := r.wire.pace.begin(int64(some), r.each)
	measure.fresh, measure.first = r.owed == 0, r.last.at.IsZero()
	defer measure.end()
	r.full = false
	if err := r.credit(limit); err != nil {
		return nil, err
	}
	measure.began, measure.from = r.asked, r.before
	m, err := r.first(ctx)
	if err != nil {
		if ctx.Err() == nil {
			r.doubted.Store(true)
		}
		return nil, r.failed("receive from", err)
	}
	r.wire.heard()
	if r.last.at.IsZero() {
		r.trip = time.Since(r.asked)
	}
	var before arrival
	messages := make([]session.Message, 0, some)
	for {
		r.owed--
		r.returned++
		messages = append(messages, convert(m))
		r.last = arrived(&messages[len(messages)-1])
		measure.note(before, r.last)
		before = r.last
		if len(messages) == limit {
			r.full = true
			return messages, nil
		}
		if m, err = r.another(ctx, measure); m == nil {
			return messages, r.failed("receive from", err)
		}
	}
}

// credit has n messages asked for in all.
func (r *receiver) credit(n int) error {
	if n <= r.owed {
		return nil
	}
	if err := r.link.IssueCredit(uint32(n - r.owed)); err != nil {
		return r.failed("receive from", err)
	}
	r.before, r.behind = r.wire.pace.underWay()
	r.owed, r.asked = n, time.Now()
	return nil
}

// Ask implements session.Carrier.
func (r *receiver) Ask(n int) error {
	r.announce(int64(n) * r.each)
	return r.credit(n)
}

// Withdraw implements session.Carrier. The service answers a drain when no message comes
// any more (AMQP 1.0, section 2.6.7). What has come is not settled, so that the detach
// hands it back.
func (r *receiver) Withdraw(ctx context.Context) error {
	r.announce(0)
	if err := r.link.DrainCredit(ctx, nil); err != nil {
		r.doubted.Store(true)
		return r.failed("withdraw what was asked for from", err)
	}
	r.wire.heard()
	r.returned += r.Carried()
	r.kept, r.owed = nil, 0
	return nil
}

// announce notes what comes to this receiver until its next receive.
func (r *receiver) announce(bytes int64) {
	r.wire.pace.ahead(r.ahead, bytes)
	r.ahead = bytes
}

// another waits for another message, from the last one on, or until one that has
// just been asked for can be here: as long as something comes on the connection that
// may stand before it, within bounds. It is nil where none comes.
func (r *receiver) another(ctx context.Context, measure *measure) (*amqp.Message, error) {
	if m := r.next(); m != nil {
		return m, nil
	}
	quiet, most := measure.linger()
	wait := max(quiet, r.soonest(time.Now())+quiet)
	for waited := wait; ; waited += wait {
		before := r.wire.pace.carried.Load()
		linger, cancel := context.WithTimeout(ctx, wait)
		m, err := r.link.Receive(linger, nil)
		over := linger.Err() != nil
		cancel()
		switch {
		case err == nil:
			return m, nil
		case !over:
			r.doubted.Store(true)
			return nil, err
		case ctx.Err() != nil, waited >= most, r.wire.pace.carried.Load() == before:
			return nil, nil
		}
		wait = quiet
	}
}

// soonest is in what time a message can be here that was asked for last.
func (r *receiver) soonest(now time.Time) time.Duration { return r.asked.Add(r.trip).Sub(now) }

// Carried implements session.Carrier.
func (r *receiver) Carried() int {
	for m := r.link.Prefetched(); m != nil; m = r.link.Prefetched() {
		r.kept = append(r.kept, m)
	}
	return len(r.kept)
}

// Fits implements session.Fitter.
func (r *receiver) Fits(limit int, each int64) int {
	r.each = each
	r.announce(0)
	return r.wire.pace.fits(limit, each)
}

// Turn implements session.Carrier.
func (r *receiver) Turn(ctx context.Context, limit int, each int64) (int, error) {
	r.each = each
	r.announce(0)
	if r.owed > 0 {
		return min(limit, max(r.owed, r.wire.pace.fits(limit, each))), nil
	}
	some := r.expects(limit)
	var err error
	if r.ahead, err = r.wire.pace.enter(ctx, some, each); err != nil {
		return 0, err
	}
	// More than come show that these were all.
	return min(limit, r.wire.pace.credit(some, each)), nil
}

// expects is how many messages of at most limit may come: what is usual, and where the
// last receive brought all that it asked for, as much as may come.
func (r *receiver) expects(limit int) int {
	some := r.wire.pace.expects(limit)
	if r.full {
		return max(some, r.wire.pace.fits(limit, r.each))
	}
	return some
}

// Busy implements session.Carrier.
func (r *receiver) Busy() bool {
	carried := r.wire.pace.carried.Load()
	return carried > r.before && carried < r.behind
}

// standsBefore is no less than what may stand before a message on its way here, in bytes,
// because others asked for it and it weighed more than was expected.
const standsBefore = 8 << 20

// Coming implements session.Carrier.
func (r *receiver) Coming() bool {
	if r.came.Load() > r.cameBefore {
		return true
	}
	return r.wire.frames.large.Load() > r.largeBefore && r.wire.pace.carried.Load() < r.before+standsBefore
}

// next is the next message that has come, if there is one.
func (r *receiver) next() *amqp.Message {
	if len(r.kept) == 0 {
		return r.link.Prefetched()
	}
	m := r.kept[0]
	r.kept = r.kept[1:]
	return m
}

// first waits for the next message.
func (r *receiver) first(ctx context.Context) (*amqp.Message, error) {
	if len(r.kept) > 0 {
		return r.next(), nil
	}
	return r.link.Receive(ctx, nil)
}

// RenewLock implements session.Receiver.
func (r *receiver) RenewLock(ctx context.Context) (time.Time, error) {
	request := r.request(ctx, "com.microsoft:renew-session-lock", map[string]any{"session-id": r.sessionID})
	answer, err := r.wire.management.ask(ctx, request)
	if err != nil {
		return time.Time{}, r.failed("renew the lock of", orBusy(err))
	}
	r.wire.heard()
	body, _ := answer.Value.(map[string]any)
	until, ok := body["expiration"].(time.Time)
	if !ok {
		return time.Time{}, r.failed("renew the lock of", errors.New("the answer does not say until when"))
	}
	return until, nil
}

// request is a request about the session, for the entity's $management.
func (r *receiver) request(ctx context.Context, operation string, body map[string]any) *amqp.Message {
	request := &amqp.Message{
		Value:                 body,
		ApplicationProperties: map[string]any{"operation": operation, "associated-link-name": r.link.LinkName()},
	}
	if deadline, ok := ctx.Deadline(); ok {
		request.ApplicationProperties["com.microsoft:server-timeout"] = uint32(max(time.Until(deadline).Milliseconds(), 1))
	}
	return request
}

// Close implements session.Receiver: a detach, with which the service takes back
// the lock and everything that is not settled, uncounted. Past ctx's end that
// goes on in the background.
func (r *receiver) Close(ctx context.Context) error {
	r.announce(0)
	err := r.link.Close(ctx)
	if err == nil && r.owed > 0 && !r.last.at.IsZero() {
		r.wire.pace.vain(r.inVain())
	}
	if err != nil || r.doubted.Load() || r.leaves() {
		r.wire.drop(ctx, r.lane)
		return err
	}
	r.wire.free(ctx, r.lane)
	return nil
}

// leaves tells whether go-amqp keeps deliveries of the link for as long as the lane lasts:
// it forgets one (v1.7.0, Session.mux) when the service has settled it, and not with the link.
func (r *receiver) leaves() bool {
	return int64(r.returned+r.Carried()) > r.settled.Load()
}

// inVain tells whether a message that waited at the broker was on its way here
// when the session was given back.
func (r *receiver) inVain() bool {
	if r.Carried() == 0 {
		return false
	}
	m := convert(r.kept[0])
	return arrived(&m).delayed(r.last)
}

// giveBack closes a session that nobody wants any more.
func (r *receiver) giveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), laneCloseTime)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		r.wire.log.Debug().Err(err).Str("session_id", r.sessionID).Msg("the session was not given back cleanly")
	}
}

func (r *receiver) failed(to string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s session %q: %w", to, r.sessionID, r.orUndecodable(err))
}

// orUndecodable is err, as a session.ErrUndecodable where a message could not be decoded.
// The connection may end for it before the link has (decodable.Conn), and be closed by who
// accepts the next session.
func (r *receiver) orUndecodable(err error) error {
	_, over := errors.AsType[*amqp.ConnError](err)
	over = over || errors.Is(err, errClosed)
	if namespace.Undecodable(err) || over && r.wire.refused.Has(r.sessionID) {
		return fmt.Errorf("%w: %w", session.ErrUndecodable, err)
	}
	return err
}
