package observability

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"changerelay/deployments/internal/reference"
)

// promtool returns the program that PROMTOOL names, the one that
// scripts/promtool put into bin/, or the one in the path.
func promtool(t *testing.T) string {
	t.Helper()
	own := filepath.Join(reference.Root(t), "bin", "promtool")
	if _, err := os.Stat(own); err != nil {
		own = ""
	}
	path, err := exec.LookPath(cmp.Or(os.Getenv("PROMTOOL"), own, "promtool"))
	if err != nil {
		t.Skip("NOT TESTED, for there is no promtool: what the alert rules do, and whether the queries can be read. scripts/promtool gets it")
	}
	return path
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
}

func TestTheAlertsDoWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	tool := promtool(t)
	run(t, tool, "check", "rules", "alerts.yml")
	run(t, tool, "test", "rules", "alerts_test.yml")
}

func TestTheScrapeConfigurationOfComposeCanBeRead(t *testing.T) {
	t.Parallel()
	run(t, promtool(t), "check", "config", "--syntax-only", "../compose/prometheus.yml")
}

// An alert is tested both ways: when it must be raised and when it must not.
func TestEveryAlertHasATestThatRaisesItAndOneThatDoesNot(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("alerts_test.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Tests []struct {
			Alerts []struct {
				Name   string           `json:"alertname"`
				Raised []map[string]any `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	raised, silent := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, a := range test.Alerts {
			raised[a.Name] = raised[a.Name] || len(a.Raised) > 0
			silent[a.Name] = silent[a.Name] || len(a.Raised) == 0
		}
	}
	for _, r := range alerts(t) {
		if !raised[r.Alert] || !silent[r.Alert] {
			t.Errorf("tests of %s: raised %v, not raised %v, want both", r.Alert, raised[r.Alert], silent[r.Alert])
		}
	}
}

func TestEveryQueryOfADashboardCanBeRead(t *testing.T) {
	t.Parallel()
	tool := promtool(t)
	var rules []map[string]any
	for _, q := range dashboards(t) {
		rules = append(rules, map[string]any{"record": "checked", "expr": q.expr, "labels": map[string]string{"place": q.place}})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "queries", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "queries.yml")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, tool, "check", "rules", "--lint=none", path)
}
