package demo

import (
	"context"

	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/harness/cluster"
)

// repeats counts deliveries that a projector had applied before, by the
// projectors' own count, over all their runs.
type repeats struct {
	runs []int64
}

// note adds what a projector's run has counted, right before it ends.
func (r *repeats) note(ctx context.Context, p *cluster.Node) {
	if s, err := p.ProjectorStatus(ctx); err == nil {
		r.runs = append(r.runs, s.Repeated)
	}
}

func (r *repeats) figure() report.Figure {
	var n int64
	for _, run := range r.runs {
		n += run
	}
	return report.Figure{
		Name: "duplicates: delivered again, and refused", Value: float64(n), Unit: report.Count, Note: "by the projectors' own count",
	}
}

// droppedByTopic returns how many messages the sandbox's topic took for repeats
// and dropped. A real topic does not tell.
func droppedByTopic(ctx context.Context, e cluster.Endpoints, topic string) (int64, error) {
	status, err := e.SandboxStatus(ctx)
	if err != nil {
		return 0, err
	}
	entity, err := status.Entity(topic)
	return entity.Duplicates, err
}
