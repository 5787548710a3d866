package observability

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"changerelay/deployments/internal/promql"
	"changerelay/deployments/internal/reference"
)

// query is an expression and where it stands. A dashboard's may ask for what is
// chosen in its variables.
type query struct {
	place, expr string
	variables   []string
}

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
			UID        string
			Templating struct {
				List []struct{ Name string }
			}
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
		var variables []string
		for _, v := range board.Templating.List {
			variables = append(variables, v.Name)
		}
		for _, panel := range board.Panels {
			if len(panel.Targets) == 0 {
				t.Errorf("%s: panel %q asks for nothing", path, panel.Title)
			}
			for _, target := range panel.Targets {
				all = append(all, query{path + ", panel " + panel.Title, target.Expr, variables})
			}
		}
	}
	return all
}

var (
	metric   = regexp.MustCompile(`\b(publisher|projector)_[a-z_]+`)
	variable = regexp.MustCompile(`\$([a-z]+)`)
	suffix   = regexp.MustCompile(`_(bucket|sum|count)$`)
)

func TestQueries_EveryQueryAsksForMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	known := reference.Metrics(t)
	queries := dashboards(t)
	for _, r := range alerts(t) {
		queries = append(queries, query{place: "alert " + r.Alert, expr: r.Expr})
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

// One Prometheus watches many deployments. An alert tells them apart, and a
// dashboard shows the one that is chosen.
func TestQueries_NoDeploymentHidesAnother(t *testing.T) {
	t.Parallel()
	for _, r := range alerts(t) {
		if err := promql.KeepsApart(r.Expr); err != nil {
			t.Errorf("alert %s: %v", r.Alert, err)
		}
	}
	for _, q := range dashboards(t) {
		if err := errors.Join(promql.Pinned(q.expr), promql.KeepsApart(q.expr)); err != nil {
			t.Errorf("%s: %v", q.place, err)
		}
	}
}

func TestQueries_EveryVariableOfADashboardCanBeChosen(t *testing.T) {
	t.Parallel()
	for _, q := range dashboards(t) {
		for _, match := range variable.FindAllStringSubmatch(q.expr, -1) {
			if !slices.Contains(q.variables, match[1]) {
				t.Errorf("%s asks for $%s; the dashboard has %v", q.place, match[1], q.variables)
			}
		}
	}
}

func TestQueries_EveryAlertLeadsToTheRunbook(t *testing.T) {
	t.Parallel()
	runbook := reference.Read(t, "docs/runbook.md")
	for _, r := range alerts(t) {
		if !strings.Contains(runbook, "\n### "+r.Alert+"\n") {
			t.Errorf("docs/runbook.md says nothing of %s", r.Alert)
		}
		// The convention of the field is an address that can be followed.
		if got, want := r.Annotations["runbook_url"], "https://git.example/change-relay/blob/main/docs/runbook.md#"+strings.ToLower(r.Alert); got != want {
			t.Errorf("runbook_url of %s: got %s, want %s", r.Alert, got, want)
		}
		if severity := r.Labels["severity"]; severity != "warning" && severity != "critical" {
			t.Errorf("severity of %s: got %q, want warning or critical", r.Alert, severity)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s says nothing: %v", r.Alert, r.Annotations)
		}
	}
}
