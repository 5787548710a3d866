package relay

import (
	"fmt"
	"time"
)

const (
	// strikes is how often a message must have failed alone, each time while
	// others were accepted, before it cannot be sent.
	strikes = 5
	// resentStrikes is that for a message that is sent again: it has been before, or
	// was parked then, and the stream's own are behind it.
	resentStrikes = 2
	// shortestRest and longestRest bound the pause of a lane whose message fails
	// while others are accepted.
	shortestRest = 100 * time.Millisecond
	longestRest  = 5 * time.Second
)

// trouble is what is known of messages at the front of a lane that have failed
// and were not accepted since.
//
// The first failure tells nothing: it counts as the topic's, as every failure
// does of a class that is no message's fault. Only where sends of others were
// accepted since the last failure, and the breaker is closed, is the next one the
// messages' own. Then nobody else waits for them: the lanes of a batch are sent
// apart, one message at a time, and a message that fails alone rests its lane. It
// is parked when it has failed so for strikes times and Config.Patience. Where
// nothing else is sent, a message that was accepted before is, again: see proof.
type trouble struct {
	since    time.Time
	seen     int64 // sends that were accepted when it failed last
	failures int
	strikes  int
	refusals int  // alone, by the service itself
	proved   bool // whether a message was sent once more for the last strike
}

// troubled reports whether something that is held has failed before.
func (s *laneSender) troubled() bool {
	for _, p := range s.held {
		if p.trouble != nil {
			return true
		}
	}
	return false
}

// demand is what the next send asks of the load. What has failed while others were accepted
// goes beside them two times of three, so that one that is never answered seldom holds them
// up, and one that needs the whole link has it in its turn.
func (s *laneSender) demand() demand {
	d := demand{bytes: s.size() + len(s.items)*envelope}
	if t := s.held[0].trouble; t != nil && t.strikes > 0 {
		d.turn = t.strikes%3 == 0
		d.beside = !d.turn
	}
	return d
}

// ownTrouble notes the outcome of a send in the lanes of what was not accepted,
// and reports whether its failure is the messages' own.
func (s *laneSender) ownTrouble(accepted int, failure *SendError) bool {
	if failure == nil || !failure.Class.mayBeTheMessages() {
		return false
	}
	total, closed := s.breaker.accepted()
	own := accepted == 0 && closed // for a probe it is open
	for _, p := range s.held {
		own = own && p.trouble != nil && p.trouble.seen != total
	}
	alone := len(s.items) == 1
	for _, p := range s.held {
		if p.trouble == nil || accepted > 0 {
			p.trouble = &trouble{since: time.Now()}
		}
		p.trouble.seen = total
		p.trouble.failures++
		if own && alone {
			p.trouble.strikes++
		}
		if alone && failure.Class == Refused {
			p.trouble.refusals++
		}
	}
	if own && alone && s.held[0].trouble.strikes == 1 {
		s.log.Warn().Err(failure.Err).Stringer("class", failure.Class).Str("aggregate_id", s.held[0].aggregateID).
			Dur("patience", s.config.Patience).Msg("message refused while others are accepted, its aggregate waits")
	}
	return own
}

// unsendable returns why the message after the accepted ones cannot be sent;
// nothing where it can, or may.
func (s *laneSender) unsendable(result sent) string {
	if result.failure == nil {
		return ""
	}
	if result.failure.Class == TooLarge {
		return result.failure.Error()
	}
	if len(s.items) != 1 || s.held[0].trouble == nil {
		return ""
	}
	t := s.held[0].trouble
	took := time.Since(t.since)
	switch {
	case result.own && t.strikes >= strikes && took >= s.config.Patience, result.own && t.strikes >= resentStrikes && s.items[0].change.Resent != nil:
		return fmt.Sprintf("refused %d times in %s while other messages were accepted: %s", t.strikes, took.Round(time.Second), result.failure)
	case s.lonely(result.failure) && t.refusals >= strikes && took >= loneliness*s.config.Patience && s.proof.unproved.CompareAndSwap(false, true):
		return fmt.Sprintf("refused %d times in %s, the only message there is: %s", t.refusals, took.Round(time.Second), result.failure)
	default:
		return ""
	}
}

// part gives the held lanes back, to be sent one message at a time. A message
// that was sent alone rests its lane, longer each time.
func (s *laneSender) part() {
	s.apart()
	if len(s.held) == 1 && s.held[0].count == 1 {
		s.lanes.rest(s.held[0].lane, s.restOf(s.held[0].lane))
		s.held = s.held[:0]
	}
	s.giveBack()
}

// apart has what is held sent one message at a time from now on.
func (s *laneSender) apart() {
	for _, p := range s.held {
		p.alone = max(p.alone, p.count)
	}
}

// restOf is how long a message waits after a strike.
func (s *laneSender) restOf(held *lane) time.Duration {
	t := held.trouble
	rest := min(shortestRest<<min(t.strikes, 10), longestRest)
	if t.proved && held.head.change.Resent == nil {
		rest = max(rest, s.config.Patience/proofs)
	}
	return rest
}

// giveBack gives the held lanes back with all they have.
func (s *laneSender) giveBack() { s.giveBackFrom(0) }

// giveBackFrom gives the held lanes back from the ith on.
func (s *laneSender) giveBackFrom(i int) {
	for _, p := range s.held[i:] {
		s.lanes.settle(p.lane, 0)
	}
	clear(s.held[i:])
	s.held = s.held[:i]
}

// alone reports whether what is held has to be sent without other lanes.
func (s *laneSender) alone() bool { return len(s.held) == 1 && s.held[0].unmixable() }
