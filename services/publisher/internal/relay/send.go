package relay

import (
	"context"
	"errors"
	"time"

	"changerelay/pkg/contract"
)

// sendReady sends from one lane after the other until there are no more.
func (r *Relay) sendReady(ctx context.Context) error {
	s := laneSender{Relay: r}
	for {
		more, err := s.pick(ctx)
		if err != nil || !more {
			return err
		}
		err = s.sendHeld(ctx)
		s.turns.end()
		if err != nil {
			return err
		}
	}
}

// laneSender is one sender with its scratch memory.
type laneSender struct {
	*Relay
	held     []part
	items    []*item
	messages []contract.Message
}

// part is a held lane's part of what is sent: its first count items.
type part struct {
	*lane
	count int
}

// sendHeld sends the fronts of the held lanes, again and again until they are
// accepted or parked, and gives the lanes back; with Mixed, more join them that
// are ready. All of them are held until theirs is accepted, so a send that fails
// is made again before anything later of its aggregates. After a second failure,
// or as the probe of an outage, they are given back with all they have, for others to be tried. An error leaves
// them held: the relay ends.
func (s *laneSender) sendHeld(ctx context.Context) error {
	for {
		if err := s.prove(ctx); err != nil {
			return err
		}
		result, err := s.sendOnce(ctx)
		accepted := result.accepted
		traceAccepted(s.items[:accepted])
		s.accept(s.items[:accepted])
		if err != nil {
			return err
		}
		reason := s.unsendable(result)
		switch {
		case reason != "":
			if err := s.parkItem(ctx, s.items[accepted], reason); err != nil {
				return err
			}
			accepted++
		case result.failure != nil:
			traceFailed(s.items[accepted:], result.failure)
		}
		s.forget()
		s.settle(accepted)
		switch {
		case reason != "":
		case result.own:
			s.part()
		case s.lonely(result.failure) && accepted == 0:
			s.apart()
			s.giveBack()
		case result.again:
			s.giveBack()
		}
		if len(s.held) == 0 {
			return nil
		}
		s.regather()
	}
}

// settle gives back the lanes that had some of the first n items. The others
// stay held.
func (s *laneSender) settle(n int) {
	waiting := s.held[:0]
	for _, p := range s.held {
		done := min(p.count, n)
		n -= done
		if done > 0 {
			s.lanes.settle(p.lane, done)
		} else {
			waiting = append(waiting, p)
		}
	}
	clear(s.held[len(waiting):])
	s.held = waiting
}

// sent is what became of one send.
type sent struct {
	accepted int
	// failure is why the message after the accepted ones was not; nil when all were.
	failure *SendError
	// own says that the failure is the messages' own: see trouble.
	own bool
	// again says that the messages have failed before, or as the probe of an outage.
	again bool
}

// sendOnce sends the items once, when the breaker lets it. An error ends the relay.
func (s *laneSender) sendOnce(ctx context.Context) (sent, error) {
	again := s.troubled()
	pass, err := s.breaker.pass(ctx, len(s.items), s.demand())
	if err != nil {
		return sent{}, err
	}
	s.trim(pass.room)
	s.messages = s.messages[:0]
	for _, it := range s.items {
		s.messages = append(s.messages, it.message)
	}
	accepted, failure, err := s.transmit(ctx, pass, s.size())
	s.deps.Counters.sent.Add(int64(accepted))
	s.proof.keep(s.messages[:accepted])
	if err != nil {
		return sent{accepted: accepted}, err
	}
	own := s.ownTrouble(accepted, failure)
	if own {
		s.breaker.giveBack(pass)
	} else {
		s.close(pass, accepted, failure)
	}
	return sent{accepted, failure, own, (again || pass.probe) && failure != nil && accepted == 0}, nil
}

// size is that of the items' bodies together.
func (s *laneSender) size() int {
	size := 0
	for _, it := range s.items {
		size += len(it.message.Body)
	}
	return size
}

// transmit sends the messages and returns how many of them were accepted, and why
// the next was not. An error ends the relay; then the ticket is given back.
func (s *laneSender) transmit(ctx context.Context, pass ticket, size int) (int, *SendError, error) {
	// Asked last: a pause of the process up to here must not lead to a send.
	if err := s.deps.MayAct(); err != nil {
		s.breaker.giveBack(pass)
		return 0, nil, err
	}
	send, cancel := context.WithTimeout(ctx, SendTimeout(s.config.SendTimeout, size))
	defer cancel()
	began := time.Now()
	accepted, err := s.deps.Sender.Send(send, s.messages)
	s.deps.Counters.sends.Add(1)
	s.deps.Counters.latency.Observe(time.Since(began).Seconds())
	if ctx.Err() != nil {
		s.breaker.giveBack(pass)
		return accepted, nil, context.Cause(ctx)
	}
	failure := asSendError(err)
	if failure != nil {
		s.deps.Counters.fail(failure.Class)
	}
	return accepted, failure, nil
}

// close hands the ticket back with the outcome of its send.
func (s *laneSender) close(pass ticket, accepted int, failure *SendError) {
	if pause := s.breaker.done(pass, accepted, failure); pause > 0 {
		s.log.Warn().Err(failure.Err).Stringer("class", failure.Class).Dur("pause", pause).Msg("sending paused")
	}
}

// SendTimeout is how long it may take to send or to keep what has size bytes
// together: one for each MiB that it begins.
func SendTimeout(one time.Duration, size int) time.Duration {
	return time.Duration(1+max(size-1, 0)/mebibyte) * one
}

func (s *laneSender) parkItem(ctx context.Context, it *item, reason string) error {
	if it.change.Resent != nil {
		traceParked(it, reason)
		s.failResent(it.number, it.change, it.message.SessionID, reason)
		return nil
	}
	err := s.park(ctx, Parked{
		Change:      it.change,
		Reason:      reason,
		AggregateID: it.message.SessionID,
		EventID:     it.message.ID,
		Term:        s.config.Term,
	})
	if err == nil {
		traceParked(it, reason)
		s.watermark.finish(it.number)
	}
	return err
}

// forget drops the scratch memory's hold on what was sent.
func (s *laneSender) forget() {
	clear(s.items)
	clear(s.messages)
}

func asSendError(err error) *SendError {
	if err == nil {
		return nil
	}
	if failure, ok := errors.AsType[*SendError](err); ok {
		return failure
	}
	return &SendError{Class: Transient, Err: err}
}
