package relay

import (
	"context"
	"sync/atomic"
	"time"

	"changerelay/pkg/contract"
)

const (
	// doubt is how many failures in a row, with nothing accepted in between, call
	// for a proof that the topic is well.
	doubt = 2
	// proofs is into how many parts the proofs share out the patience.
	proofs = 20
	// smallProof is the body in bytes up to which the latest accepted message is
	// kept for a proof; a larger one only while there is none as small.
	smallProof = 64 << 10
	// oldestProof is how old that message may be.
	oldestProof = 24 * time.Hour
	// loneliness is how many times Patience the only message there is may be
	// refused, where nothing was accepted before.
	loneliness = 6
)

// proof tells a message that is refused from a topic that is in trouble where
// nothing else is there to be sent: an accepted message is sent once more. It has
// the same id and sequence, so it changes nothing; that the topic accepts it says
// that the topic is well.
type proof struct {
	latest atomic.Pointer[accepted]
	// unproved says that a message was given up without a proof.
	unproved atomic.Bool
}

type accepted struct {
	message contract.Message
	at      time.Time
}

// keep remembers the last of the accepted messages, if it is of use.
func (p *proof) keep(messages []contract.Message) {
	if len(messages) == 0 {
		return
	}
	last := messages[len(messages)-1]
	if known := p.latest.Load(); known != nil && len(last.Body) > max(smallProof, len(known.message.Body)) {
		return
	}
	p.latest.Store(&accepted{message: last, at: time.Now()})
}

// message returns what is to be sent once more, nil where there is nothing.
func (p *proof) message() *contract.Message {
	known := p.latest.Load()
	if known == nil || time.Since(known.at) > oldestProof {
		return nil
	}
	return &known.message
}

// prove sends an accepted message once more where what is held has failed time
// and again, and nothing was accepted since. When that fails, too, it is the
// topic, and the breaker knows. An error ends the relay.
func (s *laneSender) prove(ctx context.Context) error {
	repeat := s.proof.message()
	if repeat == nil || !s.doubted() {
		return nil
	}
	if !s.holds(repeat.SessionID) {
		borrowed := s.lanes.borrow(repeat.SessionID)
		if borrowed == nil {
			return nil // others of its aggregate are to be sent, or another one proves
		}
		defer s.lanes.settle(borrowed, 0)
	}
	pass, err := s.breaker.pass(ctx, 1, demand{bytes: len(repeat.Body) + envelope})
	if err != nil {
		return err
	}
	s.messages = append(s.messages[:0], *repeat)
	_, failure, err := s.transmit(ctx, pass, len(repeat.Body))
	if err != nil {
		return err
	}
	s.close(pass, 0, failure)
	for _, p := range s.held {
		p.trouble.proved = failure == nil
	}
	return nil
}

// doubted reports whether everything that is held has failed often enough, and
// nothing was accepted since.
func (s *laneSender) doubted() bool {
	total, _ := s.breaker.accepted()
	silent := false
	for _, p := range s.held {
		if p.trouble == nil || p.trouble.failures < doubt {
			return false
		}
		silent = silent || p.trouble.seen == total
	}
	return silent
}

func (s *laneSender) holds(aggregateID string) bool {
	for _, p := range s.held {
		if p.aggregateID == aggregateID {
			return true
		}
	}
	return false
}

// lonely reports whether the service itself has refused the front of the only
// lane there is, and there is nothing that proves it well or ill.
func (s *laneSender) lonely(failure *SendError) bool {
	return failure != nil && failure.Class == Refused && s.proof.message() == nil && len(s.held) == 1 && s.lanes.only()
}
