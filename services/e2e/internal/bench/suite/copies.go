package suite

import (
	"context"
	"fmt"
	"time"

	"changerelay/services/e2e/internal/bench/results"
	"changerelay/services/e2e/internal/bench/speed"
	"changerelay/services/e2e/internal/check/report"
)

func copies(s Scale) experiment {
	e := experiment{
		name: "copies", title: "Copies",
		shows: "A collection with the index of a copy is copied (START_AT=snapshot). In each repetition, one after another, each on fresh servers: the bare driver reads it in the same order; the bare SDK sends as many messages, as large, in the same batches; " +
			"the publisher does both. The limit is the slower of the two.",
	}
	for i := range s.Repeats {
		var first time.Duration
		for _, documents := range s.Copies {
			e.rounds = append(e.rounds, round{
				name: fmt.Sprintf("%s documents, repetition %d", report.Thousands(int64(documents)), i+1), usual: 10*time.Second + time.Duration(documents)*80*time.Microsecond,
				measure: func(ctx context.Context, b *bench) ([]results.Point, error) {
					c, err := speed.Copy(ctx, speed.Config{Open: b.open, Events: documents, Aggregates: max(documents/4, 1)})
					if err != nil {
						return nil, err
					}
					figures := []results.Figure{
						perSecond("copy", c.Publisher.PerSecond), perSecond("plain sorted read", c.Read.PerSecond), perSecond("plain send", c.Send.PerSecond),
						ratio("of the limit", c.Publisher.PerSecond, min(c.Read.PerSecond, c.Send.PerSecond)), cpu("CPU per document, copy", c.Publisher.Client), cpu("CPU per document, plain send", c.Send.Client),
						results.One("memory, publisher", results.Bytes, float64(c.Publisher.Memory)),
					}
					if documents == s.Copies[0] {
						first = c.Publisher.Client
					}
					if first > 0 {
						figures = append(figures, ratio("CPU of that of the fewest", c.Publisher.Client.Seconds(), first.Seconds()))
					}
					if c.Publisher.Growth > 0 {
						figures = append(figures, results.One("CPU of the last tenth, of the first", results.Ratio, c.Publisher.Growth))
					}
					return []results.Point{{Name: report.Thousands(int64(documents)) + " documents", Figures: figures}}, nil
				},
			})
		}
	}
	return e
}
