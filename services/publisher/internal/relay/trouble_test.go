package relay

import (
	"testing"

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
		gate     func(*gate) ticket // what the send was let through with
		seen     int64
		accepted int
		class    Class
		want     bool
	}{
		"others were accepted":             {open, before, 0, Refused, true},
		"the connection failed":            {open, before, 0, Transient, true},
		"nothing was accepted since":       {open, after, 0, Refused, false},
		"some of the send were accepted":   {open, before, 1, Refused, false},
		"the topic is closed to us":        {open, before, 0, Blocked, false},
		"an outage has begun meanwhile":    {closed, before, 0, Refused, false},
		"the send is the probe of outages": {probing, before, 0, Refused, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate()
			g.took = after
			pass := tt.gate(g)
			s := laneSender{
				Relay: &Relay{gate: g, log: zerolog.Nop()},
				held:  []part{{lane: &lane{trouble: &trouble{seen: tt.seen, failures: 1}}, count: 1}},
				items: []*item{{}},
			}
			if own := s.ownTrouble(tt.accepted, &SendError{Class: tt.class}); own != tt.want {
				t.Errorf("own trouble = %v with the ticket %+v, want %v", own, pass, tt.want)
			}
		})
	}
}

func open(g *gate) ticket {
	t, _, _ := g.ask(1, false)
	return t
}

// closed lets the send through before another one's failure closes the gate.
func closed(g *gate) ticket {
	t := open(g)
	g.done(open(g), 0, &SendError{Class: Transient})
	return t
}

// probing lets the send through as the probe of an outage.
func probing(g *gate) ticket {
	g.done(open(g), 0, &SendError{Class: Transient})
	g.until = g.opened
	return open(g)
}
