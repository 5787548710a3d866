package bench

import (
	"context"
	"slices"
	"time"

	"changerelay/services/e2e/internal/orders"
	"changerelay/services/e2e/internal/readmodel"
	"changerelay/services/e2e/internal/report"
	"changerelay/services/e2e/internal/validate"
)

// memoryBound is what a publisher or a projector may take, in bytes.
const memoryBound = 150 << 20

// compare computes the read model from the generator's events and compares.
func (b *Bench) compare(ctx context.Context) ([]report.Check, error) {
	want, events := orders.Model{}, validate.Source{}
	g := orders.NewGenerator(b.cfg.Seed, b.cfg.Aggregates)
	for range b.cfg.Events {
		e := g.Next(time.Time{})
		want.Apply(e)
		events[e.Aggregate] = append(events[e.Aggregate], e.Version)
	}
	names := b.cluster.Names()
	model, err := readmodel.Read(ctx, b.client, names.ReadModelDatabase, "orders")
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int64, len(model.Documents))
	for id, doc := range model.Documents {
		counts[id], _ = doc["events"].(int64)
		orders.SortSets(doc)
	}
	expected := make(map[string]map[string]any, len(want))
	for id, doc := range want {
		orders.SortSets(doc)
		expected[id] = doc
	}
	missing, extra := validate.Counted(events, counts)
	none := func(name string, f validate.Findings) report.Check {
		return report.AtMost(name, float64(f.Count), 0, report.Count, f.Samples...)
	}
	return []report.Check{
		none("lost between source and read model", missing),
		none("applied more than once", extra),
		none("read documents unlike the recomputation", validate.Differences(expected, model.Documents)),
	}, nil
}

func (b *Bench) memoryChecks() []report.Check {
	var checks []report.Check
	for _, n := range slices.Concat(b.cluster.Publishers, b.cluster.Projectors) {
		checks = append(checks, report.AtMost("memory of "+n.Name, float64(n.Usage().ResidentBytes), memoryBound, report.Bytes))
	}
	return checks
}
