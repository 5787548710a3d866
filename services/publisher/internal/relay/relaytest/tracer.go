package relaytest

import (
	"sync"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/relay"
)

// Tracer is a relay.Tracer that remembers what it was told.
type Tracer struct {
	mu    sync.Mutex
	spans []*Span
}

// Span is one change as a Tracer was told of it.
type Span struct {
	tracer *Tracer

	MessageID string
	ReadAt    time.Time
	Failures  int
	Ends      int
	Reason    string // why it was parked
	Late      int    // calls after the end
}

// Begin implements relay.Tracer.
func (t *Tracer) Begin(_ contract.Event, m *contract.Message, readAt time.Time) relay.Span {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &Span{tracer: t, MessageID: m.ID, ReadAt: readAt}
	t.spans = append(t.spans, s)
	return s
}

// Spans returns copies of what was begun, in that order.
func (t *Tracer) Spans() []Span {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Span, len(t.spans))
	for i, s := range t.spans {
		all[i] = *s
	}
	return all
}

// Failed implements relay.Span.
func (s *Span) Failed(*relay.SendError) { s.note(func() { s.Failures++ }) }

// Accepted implements relay.Span.
func (s *Span) Accepted() { s.note(func() { s.Ends++ }) }

// Parked implements relay.Span.
func (s *Span) Parked(reason string) { s.note(func() { s.Ends, s.Reason = s.Ends+1, reason }) }

func (s *Span) note(what func()) {
	s.tracer.mu.Lock()
	defer s.tracer.mu.Unlock()
	if s.Ends > 0 {
		s.Late++
	}
	what()
}
