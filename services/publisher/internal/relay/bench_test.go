package relay_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/relay/relaytest"
)

// farTopic takes everything, after a round trip.
type farTopic struct{ roundTrip time.Duration }

func (f farTopic) Send(_ context.Context, messages []contract.Message) (int, error) {
	if f.roundTrip > 0 {
		time.Sleep(f.roundTrip)
	}
	return len(messages), nil
}

// stretch is a source that ends.
type stretch struct{ next, last int }

func (s *stretch) Read(context.Context) (relay.Batch, error) {
	var batch relay.Batch
	for range min(200, s.last-s.next) {
		s.next++
		batch.Changes = append(batch.Changes, relaytest.Change(s.next, fmt.Sprint(s.next)))
	}
	if len(batch.Changes) == 0 {
		return batch, relaytest.ErrInjected
	}
	return batch, nil
}

// BenchmarkRun sends messages of different aggregates, one each, to a topic
// without a limit.
func BenchmarkRun(b *testing.B) {
	for _, roundTrip := range []time.Duration{0, 5 * time.Millisecond, 40 * time.Millisecond} {
		for _, mixed := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s,mixed=%v", roundTrip, mixed), func(b *testing.B) {
				r := relay.New(relay.Config{
					Term: 1, MaxInFlight: 10_000, MaxInFlightBytes: 1 << 30, Senders: 256, BatchSize: 100, BatchBytes: 200_000, Mixed: mixed,
					SendTimeout: 15 * time.Second, ParkTimeout: 5 * time.Second, Patience: time.Minute, CheckpointInterval: time.Second, DrainTimeout: time.Second,
				}, relay.Deps{
					Source: &stretch{last: b.N}, Mapper: relaytest.Mapper{}, Sender: farTopic{roundTrip},
					Parker: &relaytest.Parks{}, Checkpoint: &relaytest.Checkpoint{},
					MayAct: func() error { return nil }, Counters: relay.NewCounters(discard{}), Log: zerolog.Nop(),
				})
				if err := r.Run(b.Context(), make(chan struct{})); err == nil {
					b.Fatal("the source did not end")
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
			})
		}
	}
}
