package delivery_test

import (
	"context"
	"fmt"
	"testing"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
	"changerelay/services/projector/internal/session"
)

// stores stores all writes, in no time.
type stores struct{ *readmodeltest.Fake }

func (stores) Write(_ context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	outcomes := make([]delivery.Outcome, len(writes))
	for i := range outcomes {
		outcomes[i] = delivery.Applied
	}
	return outcomes, nil
}

// BenchmarkApply is a batch's way through all stages, without a database.
func BenchmarkApply(b *testing.B) {
	projections, err := projection.Parse("test.yaml", []byte(counting))
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int64{1, 100} {
		var messages []session.Message
		for i := range n {
			m, err := encoded("a", i+1, "Happened", fmt.Sprintf(`{"n":%d}`, i))
			if err != nil {
				b.Fatal(err)
			}
			messages = append(messages, m)
		}
		b.Run(fmt.Sprintf("%d messages", n), func(b *testing.B) {
			h := newHandler(projections, stores{readmodeltest.NewFake()})
			b.ReportAllocs()
			for b.Loop() {
				if verdicts, err := h.Hold("a").Apply(b.Context(), messages); err != nil || len(verdicts) != len(messages) {
					b.Fatal(len(verdicts), err)
				}
			}
		})
	}
}
