package observability

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write prometheusrule.yaml from alerts.yml")

// The rules stand in alerts.yml; the Prometheus operator wants them in an object.
func TestRule_TheOperatorHasTheSameRules(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile("alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	want.WriteString("# Made from alerts.yml: go test ./observability -update\napiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: change-relay\nspec:\n")
	for line := range strings.Lines(string(rules)) {
		if !strings.HasPrefix(line, "#") {
			want.WriteString("  " + line)
		}
	}
	if *update {
		if err := os.WriteFile("prometheusrule.yaml", []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile("prometheusrule.yaml")
	if err != nil || string(got) != want.String() {
		t.Errorf("prometheusrule.yaml is not what alerts.yml says (%v); run: GOWORK=off go test ./observability -run Operator -update", err)
	}
}
