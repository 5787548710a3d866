package app

import (
	"context"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/settings"
)

func TestMetrics_TheDocumentationListsTheMetricsAsTheyAre(t *testing.T) {
	t.Parallel()
	const path, begin, end = "../../../../docs/metrics.md", "<!-- projector metrics -->\n", "<!-- end -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	got, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no section between %q and %q", path, begin, end)
	}
	want := metricsTable(t)
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("docs/metrics.md differs from what is registered; run: go test ./internal/app -run Documentation -update\ngot:\n%s\nwant:\n%s", got, want)
	}
}

// description is what a Desc says of itself.
var description = regexp.MustCompile(`^Desc{fqName: "(projector_[a-z_]+)", help: "(.*?)"(?:, unit: "[^"]*")?, constLabels: {(.*)}, variableLabels: {(.*)}}$`)

// metricsTable describes what is registered, without what every Go process has.
func metricsTable(t *testing.T) string {
	t.Helper()
	described := make(chan *prometheus.Desc, 1000)
	registryOf(t).Describe(described)
	close(described)
	labels, help := map[string][]string{}, map[string]string{}
	for desc := range described {
		match := description.FindStringSubmatch(desc.String())
		if match == nil {
			continue
		}
		help[match[1]] = match[2]
		for label := range strings.FieldsFuncSeq(match[3]+","+match[4], func(r rune) bool { return r == ',' || r == ' ' }) {
			label, _, _ = strings.Cut(label, "=")
			if !slices.Contains(labels[match[1]], label) {
				labels[match[1]] = append(labels[match[1]], label)
			}
		}
	}
	table := "| metric | labels | meaning |\n| --- | --- | --- |\n"
	for _, name := range slices.Sorted(maps.Keys(help)) {
		table += "| `" + name + "` | " + strings.Join(labels[name], ", ") + " | " + help[name] + " |\n"
	}
	return table
}

// registryOf is that of a projector whose servers are not there.
func registryOf(t *testing.T) *prometheus.Registry {
	t.Helper()
	var cfg config.Config
	_ = settings.Load(&cfg, nil) // the defaults; what is required is missing and set below
	cfg.ServiceBusConnectionString = "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=k;SharedAccessKey=s;UseDevelopmentEmulator=true;"
	cfg.Topic, cfg.Subscription = "changes", "projector"
	cfg.MongoURI, cfg.Database = "mongodb://127.0.0.1:1/?directConnection=true", "read"
	cfg.AdminAddr = "127.0.0.1:0"
	projector, err := New(t.Context(), cfg, projection.Projections{projection.Latest{Collection: "latest"}}, "test", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := projector.Run(over); err != nil { // closes what New has opened
		t.Fatal(err)
	}
	return projector.metrics.Registry
}
