package observability

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"changerelay/deployments/internal/promtool"
	"changerelay/deployments/internal/reference"
)

func TestPromtool_TheAlertsDoWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	tool := promtool.Find(t)
	tool.Run(t, "check", "rules", "alerts.yml")
	tool.Run(t, append([]string{"test", "rules"}, testFiles...)...)
}

func TestPromtool_TheScrapeConfigurationOfComposeCanBeRead(t *testing.T) {
	t.Parallel()
	text := reference.Read(t, "deployments/compose/prometheus.yml")
	if jobs, labelled := strings.Count(text, "job_name:"), strings.Count(text, "target_label: namespace"); jobs != labelled {
		t.Errorf("%d of %d jobs set the label namespace, by which alerts and dashboards tell deployments apart", labelled, jobs)
	}
	promtool.Find(t).Run(t, "check", "config", "--syntax-only", "../compose/prometheus.yml")
}

// testFiles hold the unit tests of the alerts.
var testFiles = []string{"alerts_test.yml", "alerts_gone_test.yml"}

// unitTest is one of them.
type unitTest struct {
	Name   string
	Series []struct{ Series string } `json:"input_series"`
	Alerts []struct {
		Name   string `json:"alertname"`
		Raised []struct {
			Labels map[string]string `json:"exp_labels"`
		} `json:"exp_alerts"`
	} `json:"alert_rule_test"`
}

func unitTests(t *testing.T) []unitTest {
	t.Helper()
	var all []unitTest
	for _, name := range testFiles {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var file struct{ Tests []unitTest }
		if err := yaml.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		all = append(all, file.Tests...)
	}
	return all
}

// An alert is tested both ways: when it must be raised and when it must not.
func TestPromtool_EveryAlertHasATestThatRaisesItAndOneThatDoesNot(t *testing.T) {
	t.Parallel()
	raised, silent := map[string]bool{}, map[string]bool{}
	for _, test := range unitTests(t) {
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

// raised returns the namespaces in which the test wants an alert.
func (test unitTest) raised(alert string) map[string]bool {
	in := map[string]bool{}
	for _, a := range test.Alerts {
		for _, r := range a.Raised {
			if namespace := r.Labels["namespace"]; a.Name == alert && namespace != "" {
				in[namespace] = true
			}
		}
	}
	return in
}

var namespaced = regexp.MustCompile(`^([a-z_]+)\{namespace="([a-z]+)"`)

// neighbours says whether another namespace than those has a series of each of
// the metrics.
func (test unitTest) neighbours(metrics []string, of map[string]bool) bool {
	beside := map[string]bool{}
	for _, s := range test.Series {
		if match := namespaced.FindStringSubmatch(s.Series); match != nil && !of[match[2]] {
			beside[match[1]] = true
		}
	}
	return !slices.ContainsFunc(metrics, func(name string) bool { return !beside[name] })
}

// What is well in one namespace must not hide what is wrong in another: promtool
// compares which alerts are raised, label by label.
func TestPromtool_EveryAlertIsRaisedInATestWithAHealthyNeighbour(t *testing.T) {
	t.Parallel()
	tests := unitTests(t)
	for _, r := range alerts(t) {
		metrics, shown := metric.FindAllString(r.Expr, -1), false
		for _, test := range tests {
			ill := test.raised(r.Alert)
			shown = shown || len(ill) > 0 && test.neighbours(metrics, ill)
		}
		if !shown {
			t.Errorf("no test raises %s in one namespace beside another one that is well and has %v", r.Alert, metrics)
		}
	}
}

func TestPromtool_EveryQueryOfADashboardCanBeRead(t *testing.T) {
	t.Parallel()
	tool := promtool.Find(t)
	var rules []map[string]any
	for _, q := range dashboards(t) {
		rules = append(rules, map[string]any{"record": "checked", "expr": q.expr, "labels": map[string]string{"place": q.place}})
	}
	path := promtool.Write(t, map[string]any{"groups": []any{map[string]any{"name": "queries", "rules": rules}}})
	tool.Run(t, "check", "rules", "--lint=none", path)
}
