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
// is made again before anything later of its aggregates. An error leaves them
// held: the relay ends.
func (s *laneSender) sendHeld(ctx context.Context) error {
	for {
		accepted, failure, err := s.sendOnce(ctx)
		traceAccepted(s.items[:accepted])
		for _, it := range s.items[:accepted] {
			s.watermark.finish(it.number)
		}
		if err == nil && failure != nil && failure.Class == TooLarge {
			err = s.parkTooLarge(ctx, s.items[accepted], failure)
			accepted++
		} else if failure != nil {
			traceFailed(s.items[accepted:], failure)
		}
		if err != nil {
			return err
		}
		s.forget()
		s.settle(accepted)
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

// sendOnce sends the items once, when the gate lets it. It returns how many
// were accepted, why the next one was not, and an error when the relay must end.
func (s *laneSender) sendOnce(ctx context.Context) (int, *SendError, error) {
	pass, err := s.gate.pass(ctx)
	if err != nil {
		return 0, nil, err
	}
	s.messages = s.messages[:0]
	for _, it := range s.items {
		s.messages = append(s.messages, it.message)
	}
	// Asked last: a pause of the process up to here must not lead to a send.
	if err := s.deps.MayAct(); err != nil {
		s.gate.giveBack(pass)
		return 0, nil, err
	}
	send, cancel := context.WithTimeout(ctx, s.config.SendTimeout)
	defer cancel()
	began := time.Now()
	accepted, err := s.deps.Sender.Send(send, s.messages)
	s.deps.Counters.sent.Add(int64(accepted))
	s.deps.Counters.sends.Add(1)
	s.deps.Counters.latency.Observe(time.Since(began).Seconds())
	if ctx.Err() != nil {
		s.gate.giveBack(pass)
		return accepted, nil, context.Cause(ctx)
	}
	failure := asSendError(err)
	if pause := s.gate.done(pass, failure); pause > 0 {
		s.log.Warn().Err(failure.Err).Stringer("class", failure.Class).Dur("pause", pause).Msg("sending paused")
	}
	if failure != nil && failure.Class != TooLarge {
		s.deps.Counters.retries.Add(1)
	}
	return accepted, failure, nil
}

func (s *laneSender) parkTooLarge(ctx context.Context, it *item, failure *SendError) error {
	err := s.park(ctx, Parked{
		Change:      it.change,
		Reason:      failure.Error(),
		AggregateID: it.message.SessionID,
		EventID:     it.message.ID,
		Term:        s.config.Term,
	})
	if err == nil {
		traceParked(it, failure.Error())
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
