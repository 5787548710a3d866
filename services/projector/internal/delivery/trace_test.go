package delivery_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/session"
)

// tracer notes the fates of messages in the order in which they are told.
type tracer struct {
	mu    sync.Mutex
	begun int
	fates []string
}

type span struct{ *tracer }

func (t *tracer) Begin(*session.Message, *contract.Event, time.Time) delivery.Span {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun++
	return span{t}
}

func (s span) note(fate string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fates = append(s.fates, fate)
}

func (s span) Done(f delivery.Fate, reason string) {
	if reason != "" {
		f += " for a reason"
	}
	s.note(string(f))
}

func (s span) Failed(error) { s.note("failed") }

func TestTrace_EveryAttemptAtAMessageIsOneSpanWithItsFate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		traced := &tracer{}
		f := newFixture(t, func(_ *delivery.Config, d *delivery.Deps) { d.Tracer = traced })
		foreign := session.Message{Message: contract.Message{ID: "foreign"}, SequenceNumber: 9}
		outage := errors.New("outage")
		steps := []struct {
			name     string
			messages []session.Message
			fail     error
			want     []string
		}{
			{"applied", happened(t, "a", 1, 2), nil, []string{"applied", "applied"}},
			{"repeated", happened(t, "a", 2), nil, []string{"repeated"}},
			{"passed by and dead-lettered", []session.Message{message(t, "a", 3, "Unheard", `{}`), foreign}, nil, []string{"passed_by", "dead_lettered for a reason"}},
			{"an outage", happened(t, "a", 4, 5), outage, []string{"failed", "failed"}},
			{"after the outage", happened(t, "a", 4, 5), nil, []string{"applied", "applied"}},
			{
				"parked",
				[]session.Message{message(t, "a", 6, "Broken", `{"n":1}`), message(t, "a", 7, "Happened", `{"n":1}`)},
				nil,
				[]string{"parked for a reason", "parked for a reason"},
			},
		}
		hold := f.Hold("a")
		for _, step := range steps {
			traced.fates, traced.begun = nil, 0
			f.store.Fail = func(operation string) error {
				if operation != "write" {
					return nil
				}
				return step.fail
			}
			if _, err := hold.Apply(t.Context(), step.messages); !errors.Is(err, step.fail) {
				t.Fatalf("%s: Apply = %v, want %v", step.name, err, step.fail)
			}
			if !slices.Equal(traced.fates, step.want) || traced.begun != len(step.want) {
				t.Errorf("%s: %d spans ended as %q, want %q", step.name, traced.begun, traced.fates, step.want)
			}
		}
	})
}
