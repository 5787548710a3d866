package observability

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"changerelay/deployments/internal/reference"
)

// query is an expression and where it stands.
type query struct{ place, expr string }

// alerts are the rules of alerts.yml.
func alerts(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile("alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct{ Rules []rule }
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

type rule struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

// dashboards returns the queries of every panel.
func dashboards(t *testing.T) []query {
	t.Helper()
	paths, err := filepath.Glob("dashboards/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("dashboards: got %v, %v, want some", paths, err)
	}
	var all []query
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var board struct {
			UID    string
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(text, &board); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if board.UID == "" || len(board.Panels) == 0 {
			t.Errorf("%s: got uid %q and %d panels, want some of each", path, board.UID, len(board.Panels))
		}
		for _, panel := range board.Panels {
			if len(panel.Targets) == 0 {
				t.Errorf("%s: panel %q asks for nothing", path, panel.Title)
			}
			for _, target := range panel.Targets {
				all = append(all, query{path + ", panel " + panel.Title, target.Expr})
			}
		}
	}
	return all
}

var (
	metric = regexp.MustCompile(`\b(publisher|projector)_[a-z_]+`)
	suffix = regexp.MustCompile(`_(bucket|sum|count)$`)
)

func TestEveryQueryAsksForMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	known := reference.Metrics(t)
	queries := dashboards(t)
	for _, r := range alerts(t) {
		queries = append(queries, query{"alert " + r.Alert, r.Expr})
	}
	for _, q := range queries {
		names := metric.FindAllString(q.expr, -1)
		if len(names) == 0 {
			t.Errorf("%s: got %q, want a query of a metric of ours", q.place, q.expr)
		}
		for _, name := range names {
			if !known[name] && !known[suffix.ReplaceAllString(name, "")] {
				t.Errorf("%s: no service has the metric %s", q.place, name)
			}
		}
	}
}

func TestEveryAlertLeadsToTheRunbook(t *testing.T) {
	t.Parallel()
	runbook := reference.Read(t, "docs/runbook.md")
	for _, r := range alerts(t) {
		if !strings.Contains(runbook, "\n### "+r.Alert+"\n") {
			t.Errorf("docs/runbook.md says nothing of %s", r.Alert)
		}
		if got, want := r.Annotations["runbook"], "docs/runbook.md#"+strings.ToLower(r.Alert); got != want {
			t.Errorf("runbook of %s: got %s, want %s", r.Alert, got, want)
		}
		if severity := r.Labels["severity"]; severity != "warning" && severity != "critical" {
			t.Errorf("severity of %s: got %q, want warning or critical", r.Alert, severity)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s says nothing: %v", r.Alert, r.Annotations)
		}
	}
}
