package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"changerelay/services/e2e/internal/cluster"
	"changerelay/services/e2e/internal/report"
)

// statusTimeout bounds the question to the sandbox.
const statusTimeout = 5 * time.Second

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
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.SandboxStatusURL+"/status", http.NoBody)
	if err != nil {
		return 0, fmt.Errorf("ask the sandbox for repeats: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("ask the sandbox for repeats: %w", err)
	}
	defer resp.Body.Close()
	var status struct {
		ServiceBus struct {
			Namespace struct {
				Entities []struct {
					Path       string `json:"path"`
					Duplicates int64  `json:"duplicates"`
				} `json:"entities"`
			} `json:"namespace"`
		} `json:"service_bus"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil {
		return 0, fmt.Errorf("ask the sandbox for repeats: %w", err)
	}
	for _, e := range status.ServiceBus.Namespace.Entities {
		if e.Path == topic {
			return e.Duplicates, nil
		}
	}
	return 0, fmt.Errorf("ask the sandbox for repeats: it has no topic %q", topic)
}
