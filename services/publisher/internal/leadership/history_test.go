package leadership

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/checkpoint/checkpointtest"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/lease/leasetest"
)

// history records calls of several instances, in the order in which they began
// and ended. A call that was given up may take effect at any later time.
type history struct {
	mu    sync.Mutex
	clock int64
	lease []porcupine.Operation
	saves []porcupine.Operation
}

func (h *history) tick() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	return h.clock
}

// note adds a call to one of the two histories.
func (h *history) note(to *[]porcupine.Operation, began int64, input, output any, err error) {
	if err != nil && !errors.Is(err, checkpoint.ErrSuperseded) {
		output = unanswered{}
	}
	ended := h.tick()
	if output == (unanswered{}) && !settled(err) {
		ended = math.MaxInt64 // it was given up, and may be made at any time
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	*to = append(*to, porcupine.Operation{Input: input, Output: output, Call: began, Return: ended})
}

type unanswered struct{}

// settled reports whether an error came after its call was made, or instead of
// it. A driver has many errors for a call that was given up.
func settled(err error) bool {
	return errors.Is(err, errLost) || errors.Is(err, leasetest.ErrInjected) || errors.Is(err, checkpointtest.ErrInjected)
}

// Inputs of the two histories.
type (
	readCall    struct{}
	takeCall    struct{ lease.Claim }
	renewCall   struct{ lease.Holder }
	releaseCall struct{ lease.Holder }
	claimCall   struct{}
	saveCall    struct {
		term, number int64
		token        string
	}
)

// recordedLease is a lease store whose calls are recorded.
type recordedLease struct {
	lease.Store
	history *history
}

func (r recordedLease) Read(ctx context.Context) (lease.Record, error) {
	began := r.history.tick()
	record, err := r.Store.Read(ctx)
	if err == nil { // one without an answer says nothing
		r.history.note(&r.history.lease, began, readCall{}, record, nil)
	}
	return record, err
}

func (r recordedLease) Take(ctx context.Context, claim lease.Claim) (lease.Record, error) {
	began := r.history.tick()
	record, err := r.Store.Take(ctx, claim)
	r.history.note(&r.history.lease, began, takeCall{claim}, record, err)
	return record, err
}

func (r recordedLease) Renew(ctx context.Context, holder lease.Holder, ttl time.Duration) (lease.Record, error) {
	began := r.history.tick()
	record, err := r.Store.Renew(ctx, holder, ttl)
	r.history.note(&r.history.lease, began, renewCall{holder}, record, err)
	return record, err
}

func (r recordedLease) Release(ctx context.Context, holder lease.Holder) (bool, error) {
	began := r.history.tick()
	released, err := r.Store.Release(ctx, holder)
	r.history.note(&r.history.lease, began, releaseCall{holder}, released, err)
	return released, err
}

// recordedCheckpoints is a checkpoint store whose calls are recorded.
type recordedCheckpoints struct {
	checkpoint.Store
	history *history
}

func (r recordedCheckpoints) Claim(ctx context.Context, stream string, by checkpoint.Claimant) (checkpoint.Checkpoint, error) {
	began := r.history.tick()
	found, err := r.Store.Claim(ctx, stream, by)
	r.history.note(&r.history.saves, began, claimCall{}, claimed{found.Term, string(found.Token)}, err)
	return found, err
}

func (r recordedCheckpoints) Save(ctx context.Context, stream string, term int64, progress checkpoint.Progress) error {
	began := r.history.tick()
	err := r.Store.Save(ctx, stream, term, progress)
	r.history.note(&r.history.saves, began, saveCall{term, progress.Number, string(progress.Token)}, err == nil, err)
	return err
}

type claimed struct {
	term  int64
	token string
}

// leaseState is a lease as the model has it. Where the last change was not
// answered, its end is not known.
type leaseState struct {
	exists  bool
	holder  lease.Holder
	known   bool
	expires int64 // nanoseconds, by the server's clock
}

func (s leaseState) over(now time.Time) bool {
	return !s.exists || s.holder == lease.Holder{} || !s.known || s.expires <= now.UnixNano()
}

// shows tells whether a record may be what the server has.
func (s leaseState) shows(r lease.Record) bool {
	if r.ExpiresAt.IsZero() {
		return !s.exists
	}
	return s.exists && s.holder == r.Holder && (!s.known || s.expires == r.ExpiresAt.UnixNano())
}

func held(r lease.Record) leaseState {
	return leaseState{exists: true, holder: r.Holder, known: true, expires: r.ExpiresAt.UnixNano()}
}

var leaseModel = porcupine.NondeterministicModel{
	Init:  func() []any { return []any{leaseState{}} },
	Step:  func(state, input, output any) []any { return stepLease(state.(leaseState), input, output) },
	Equal: func(a, b any) bool { return a == b },
}

// stepLease returns the states that a call may lead to; none when its answer
// cannot be.
func stepLease(s leaseState, input, output any) []any {
	_, open := output.(unanswered)
	switch call := input.(type) {
	case readCall:
		if r := output.(lease.Record); s.shows(r) {
			if r.ExpiresAt.IsZero() {
				return []any{s}
			}
			return []any{held(r)}
		}
	case takeCall:
		return stepTake(s, call.Claim, output)
	case renewCall:
		mine := s.exists && s.holder == call.Holder
		switch {
		case open && mine:
			return []any{s, leaseState{exists: true, holder: s.holder}}
		case open:
			return []any{s}
		}
		r := output.(lease.Record)
		if mine && r.Holder == call.Holder {
			return []any{held(r)}
		}
		if !mine && r == (lease.Record{}) {
			return []any{s}
		}
	case releaseCall:
		mine := s.exists && s.holder == call.Holder
		freed := leaseState{exists: true}
		switch {
		case open && mine:
			return []any{s, freed}
		case open, !mine && output == false:
			return []any{s}
		case mine && output == true:
			return []any{freed}
		}
	}
	return nil
}

func stepTake(s leaseState, claim lease.Claim, output any) []any {
	if _, open := output.(unanswered); open {
		return []any{s, leaseState{exists: true, holder: claim.Holder}}
	}
	r := output.(lease.Record)
	if r.Holder != claim.Holder {
		// A database does not say how much is left, and a lease that is over is not refused.
		if s.shows(r) && r.Remaining >= 0 {
			return []any{held(r)}
		}
		return nil
	}
	earlier := s.holder.SameProcess(claim.Holder) && s.holder.Tenure < claim.Holder.Tenure
	if s.over(r.HeartbeatAt) || earlier {
		return []any{held(r)}
	}
	return nil
}

type checkpointState struct {
	term, saves int64
	token       string
}

var checkpointModel = porcupine.NondeterministicModel{
	Init:  func() []any { return []any{checkpointState{}} },
	Step:  func(state, input, output any) []any { return stepCheckpoint(state.(checkpointState), input, output) },
	Equal: func(a, b any) bool { return a == b },
}

func stepCheckpoint(s checkpointState, input, output any) []any {
	_, open := output.(unanswered)
	after := s
	switch call := input.(type) {
	case claimCall:
		after.term, after.saves = s.term+1, 0
		if open {
			return []any{s, after}
		}
		if output == (claimed{after.term, s.token}) {
			return []any{after}
		}
	case saveCall:
		mine := s.term > 0 && call.term == s.term
		if mine && call.number > s.saves {
			after.saves, after.token = call.number, call.token
		}
		switch {
		case open:
			return []any{s, after}
		case output == true && mine:
			return []any{after}
		case output == false && !mine:
			return []any{s}
		}
	}
	return nil
}

// decideWithin bounds the search for an order of one history. Histories with
// many calls that were given up take too long, now and then.
const decideWithin = 3 * time.Second

// check returns whether one lease, and one checkpoint, could have answered as the
// history says: Ok, Illegal, or Unknown where it was not decided in time. Its
// time is real, so it is not for a bubble.
func (h *history) check() (porcupine.CheckResult, error) {
	result := porcupine.CheckResult(porcupine.Ok)
	for name, part := range map[string]struct {
		model   porcupine.NondeterministicModel
		history []porcupine.Operation
	}{"lease": {leaseModel, h.lease}, "checkpoint": {checkpointModel, h.saves}} {
		switch porcupine.CheckOperationsTimeout(part.model.ToModel(), part.history, decideWithin) {
		case porcupine.Illegal:
			return porcupine.Illegal, fmt.Errorf("the history of the %s is not linearizable: %+v", name, part.history)
		case porcupine.Unknown:
			result = porcupine.Unknown
		}
	}
	return result, nil
}
