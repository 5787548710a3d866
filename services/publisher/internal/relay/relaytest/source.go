// Package relaytest has fakes of everything that a relay works with. They
// behave, and misbehave on request.
package relaytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/relay"
)

// Change returns the nth change of a stream, from 1, of the given aggregate.
func Change(n int, aggregateID string) relay.Change {
	return relay.Change{
		Raw:      fmt.Appendf(nil, "%s/%d", aggregateID, n),
		Token:    Token(n),
		Position: Position(n),
		Time:     time.Unix(int64(n), 0),
	}
}

// Token is the resume token after the nth change.
func Token(n int) []byte { return fmt.Appendf(nil, "token %d", n) }

// Position is where the nth change stands.
func Position(n int) contract.Position {
	return contract.StreamPosition(uint32(n), 1, fmt.Sprintf("82%08X", n))
}

// Number is the number of the change at a position.
func Number(p contract.Position) int {
	seconds, _, err := p.ClusterTime()
	if err != nil {
		return 0
	}
	return int(seconds)
}

// Mapper maps the changes of this package. A change of the aggregate
// "unmappable" is refused, one of "nothing" carries no event, and one of an
// aggregate that begins with, say, "1000 bytes" has as much data.
type Mapper struct{}

// Map implements relay.Mapper.
func (Mapper) Map(change relay.Change) (contract.Event, bool, error) {
	aggregateID, _, _ := strings.Cut(string(change.Raw), "/")
	switch aggregateID {
	case "unmappable":
		return contract.Event{}, false, errors.New("has no aggregate id")
	case "nothing":
		return contract.Event{}, false, nil
	}
	data := []byte("{}")
	var size int
	if _, err := fmt.Sscanf(aggregateID, "%d bytes", &size); err == nil {
		data = append(bytes.Repeat([]byte(" "), size), data...)
	}
	return contract.Event{
		ID:          string(change.Position),
		Source:      "/shop/events",
		Type:        "Happened",
		AggregateID: aggregateID,
		Operation:   contract.Insert,
		Sequence:    contract.Sequence(change.Position),
		Position:    change.Position,
		ContentType: contract.ContentTypeJSON,
		Data:        data,
	}, true, nil
}

// Source is a stream that a test writes.
type Source struct {
	mu      sync.Mutex
	batches []relay.Batch
	err     error
	read    int
	more    chan struct{}
}

// NewSource returns an empty source.
func NewSource() *Source { return &Source{more: make(chan struct{}, 1)} }

// Add puts changes at the end, to be read as one batch.
func (s *Source) Add(changes ...relay.Change) { s.add(relay.Batch{Changes: changes}) }

// Idle puts an empty read at the end, up to the token of the nth change.
func (s *Source) Idle(n int) {
	s.add(relay.Batch{Idle: relay.Point{Token: Token(n), Position: Position(n), AsOf: time.Now()}})
}

// Fail makes reads fail once everything before has been read.
func (s *Source) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	s.wake()
}

// Taken returns how many batches were read.
func (s *Source) Taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read
}

// Read implements relay.Source.
func (s *Source) Read(ctx context.Context) (relay.Batch, error) {
	for {
		if batch, err, ok := s.next(); ok {
			return batch, err
		}
		select {
		case <-s.more:
		case <-ctx.Done():
			return relay.Batch{}, context.Cause(ctx)
		}
	}
}

func (s *Source) next() (relay.Batch, error, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.batches) == 0 {
		return relay.Batch{}, s.err, s.err != nil
	}
	batch := s.batches[0]
	s.batches = s.batches[1:]
	s.read++
	return batch, nil, true
}

func (s *Source) add(batch relay.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, batch)
	s.wake()
}

func (s *Source) wake() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}
