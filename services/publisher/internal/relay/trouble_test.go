package relay

import (
	"testing"
	"time"

	"github.com/rs/zerolog"

	"changerelay/pkg/contract"
)

func TestProof_KeepsTheLatestMessageThatIsSmall(t *testing.T) {
	t.Parallel()
	var p proof
	for _, m := range []struct {
		id   string
		size int
		want string
	}{
		{"1", 5 << 20, "1"}, {"2", 6 << 20, "1"}, {"3", 4 << 20, "3"}, {"4", smallProof, "4"}, {"5", 10, "5"}, {"6", smallProof, "6"}, {"7", smallProof + 1, "6"},
	} {
		p.keep([]contract.Message{{ID: m.id, Body: make([]byte, m.size)}})
		if got := p.message().ID; got != m.want {
			t.Errorf("after message %s of %d bytes message %s is kept, want %s", m.id, m.size, got, m.want)
		}
	}
}

// TestTrouble_IsTheMessagesOwnOnlyWhileOthersAreAccepted begins each case with a
// message that has failed once, after which others were accepted.
func TestTrouble_IsTheMessagesOwnOnlyWhileOthersAreAccepted(t *testing.T) {
	t.Parallel()
	const before, after = 1, 2
	for name, tt := range map[string]struct {
		through  func(*breaker) ticket // what the send was let through with
		seen     int64
		accepted int
		class    Class
		want     bool
	}{
		"others were accepted":             {whileClosed, before, 0, Refused, true},
		"the connection failed":            {whileClosed, before, 0, Transient, true},
		"nothing was accepted since":       {whileClosed, after, 0, Refused, false},
		"some of the send were accepted":   {whileClosed, before, 1, Refused, false},
		"the topic is closed to us":        {whileClosed, before, 0, Blocked, false},
		"an outage has begun meanwhile":    {beforeItOpened, before, 0, Refused, false},
		"the send is the probe of outages": {probing, before, 0, Refused, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBreaker(time.Second)
			b.took = after
			pass := tt.through(b)
			s := laneSender{
				Relay: &Relay{breaker: b, log: zerolog.Nop()},
				held:  []part{{lane: &lane{trouble: &trouble{seen: tt.seen, failures: 1}}, count: 1}},
				items: []*item{{}},
			}
			if own := s.ownTrouble(tt.accepted, &SendError{Class: tt.class}); own != tt.want {
				t.Errorf("own trouble = %v with the ticket %+v, want %v", own, pass, tt.want)
			}
		})
	}
}

func whileClosed(b *breaker) ticket {
	return b.ask(1, demand{}, false).ticket
}

// beforeItOpened lets the send through before another one's failure opens the breaker.
func beforeItOpened(b *breaker) ticket {
	t := whileClosed(b)
	b.done(whileClosed(b), 0, &SendError{Class: Transient})
	return t
}

// probing lets the send through as the probe of an outage.
func probing(b *breaker) ticket {
	b.done(whileClosed(b), 0, &SendError{Class: Transient})
	b.until = b.closedAt
	return whileClosed(b)
}
