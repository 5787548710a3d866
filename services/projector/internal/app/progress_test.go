package app_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"changerelay/services/projector/internal/readmodel"
)

// progressing are two projections: the second one does not follow all events of the
// first, and cannot apply some.
const progressing = `projections:
  - name: many
    collection: many
    on: {Happened: {inc: {n: 1}}, Counted: {inc: {n: 1}}, Listed: {inc: {n: 1}}}
  - name: few
    collection: few
    on: {Counted: {inc: {n: data.n}}, Listed: {push: {n: data.n}}}
`

func shownBy(t *testing.T, p *projector, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.AdminAddr()+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each projection's progress is of what was stored for it, and a halt is of the one that
// could not apply an event, whether it fails to decide or the server refuses its update.
func TestProgress_IsThatOfEachProjection(t *testing.T) {
	_, database := servers.Mongo(t, nil)
	cfg := configured(t, "progress", database)
	onTopic(t, "progress", database, progressing)
	p := start(t, cfg, load(t, file(t, "p.yaml", progressing)))
	before := time.Now().Add(-2 * time.Second)
	send(t, "progress",
		event("a", 1, "Happened", `{}`), event("a", 2, "Counted", `{"n":1}`), // are applied
		event("a", 3, "Listed", `{"n":1}`),    // n is a number: the server refuses
		event("b", 1, "Counted", `{"n":"x"}`), // is no number
		event("c", 1, "Passing", `{}`))        // is followed by none
	// The lag is 0 once the broker has said that there is nothing to do.
	until(t, "all is dealt with", func() bool {
		s := p.Status().Projections["few"]
		return p.Status().Completed == 5 && s.HaltedAggregates != nil && *s.HaltedAggregates == 2 && s.LagSeconds != nil && *s.LagSeconds == 0
	})
	for name, want := range map[string]string{"many": "applied 2, halts 0, halted 0", "few": "applied 1, halts 2, halted 2"} {
		s := p.Status().Projections[name]
		if got := fmt.Sprintf("applied %d, halts %d, halted %d", s.Applied, s.Halts, *s.HaltedAggregates); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		if s.PositionAt == nil || s.PositionAt.Before(before) || s.PositionAt.After(time.Now()) {
			t.Errorf("%s: got position %v, want that of the last event", name, s.PositionAt)
		}
	}
	metrics := shownBy(t, p, "/metrics")
	for _, line := range []string{
		`projector_projection_applied_total{projection="many"} 2`, `projector_projection_applied_total{projection="few"} 1`,
		`projector_projection_halts_total{projection="many"} 0`, `projector_projection_halts_total{projection="few"} 2`,
		`projector_projection_halted_aggregates{projection="few"} 2`, `projector_projection_lag_seconds{projection="few"} 0`,
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("/metrics does not show %s", line)
		}
	}
	if n := strings.Count(metrics, "projector_projection_position_timestamp_seconds{"); n != 2 {
		t.Errorf("/metrics shows %d positions, want 2", n)
	}
	until(t, "projector status tells it from any machine", func() bool {
		lines, err := runCommand(t, "status", "--json")
		if err != nil || len(lines) != 1 {
			t.Fatalf("status: got %v and %v", lines, err)
		}
		all := lines[0]["projections"].([]any)
		if len(all) != 2 {
			return false
		}
		few := all[0].(map[string]any)
		return few["projection"] == "few" && few["applied"] == 1.0 && few["halts"] == 2.0 && few["halted_aggregates"] == 2.0 && few["position_at"] != nil
	})
}

func TestProgress_IsAbsentUntilKnown(t *testing.T) {
	t.Parallel()
	_, database := servers.Mongo(t, nil)
	p := start(t, configured(t, "progress-none", database), parse(t))
	for name, s := range p.Status().Projections {
		if s.PositionAt != nil || s.Applied != 0 {
			t.Errorf("%s: got %v, want nothing known", name, s)
		}
	}
	if metrics := shownBy(t, p, "/metrics"); strings.Contains(metrics, "projector_projection_position_timestamp_seconds{") {
		t.Errorf("/metrics shows a position where there is none")
	}
}

func TestProgress_OfAGroupIsThatOfItsProjectors(t *testing.T) {
	t.Parallel()
	early, late := time.Unix(100, 0), time.Unix(200, 0)
	behind, current := 5.0, 1.0
	of := func(lives bool, all ...readmodel.Progress) readmodel.Member {
		return readmodel.Member{Lives: lives, Progress: all}
	}
	got := readmodel.Summed([]readmodel.Member{
		of(true, readmodel.Progress{Projection: "b", Applied: 1}, readmodel.Progress{Projection: "a", Applied: 2, AppliedPerSecond: 2, Halts: 1, PositionAt: &late, LagSeconds: &current}),
		of(true, readmodel.Progress{Projection: "a", Applied: 3, AppliedPerSecond: 1, PositionAt: &early, LagSeconds: &behind}),
		of(false, readmodel.Progress{Projection: "a", Applied: 100}),
		of(true),
	})
	if len(got) != 2 || got[0].Projection != "a" || got[0].Applied != 5 || got[0].AppliedPerSecond != 3 || got[0].Halts != 1 || *got[0].PositionAt != late || *got[0].LagSeconds != 5 ||
		got[1].Projection != "b" || got[1].PositionAt != nil || got[1].LagSeconds != nil {
		t.Errorf("got %+v, want the sums of those that live", got)
	}
}
