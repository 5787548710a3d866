package plan

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"changerelay/services/e2e/internal/harness/cluster"
)

var numeral = regexp.MustCompile(`[0-9][0-9,.]*`)

// value is what a load takes of one thing.
func value(t *testing.T, name string, args ...string) string {
	t.Helper()
	l, err := Parse(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range Of(l) {
		if line.Name == name {
			return line.Value
		}
	}
	t.Fatalf("there is no line %q", name)
	return ""
}

func TestPlan_GrowsWithTheLoad(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, of string
		args     []string
		want     string
	}{
		{"a small load takes one partition", "PARTITIONS", nil, "1"},
		{"a large one more", "PARTITIONS", []string{"--rate", "50000", "--rtt", "5ms"}, "3"},
		{"and one far away more still", "PARTITIONS", []string{"--rate", "50000", "--rtt", "20ms"}, "12"},
		{"each partition has a publisher, and one stands by", "publishers", []string{"--rate", "50000", "--rtt", "5ms"}, "4"},
		{"two projectors at least", "projectors", []string{"--rate", "10"}, "2"},
		{"a session for each event", "projectors", []string{"--rate", "5000", "--aggregates", "1e6", "--rtt", "5ms"}, "9"},
		{"more sessions at once hide the distance", "projectors", []string{"--rate", "5000", "--aggregates", "1e6", "--rtt", "5ms", "--sessions", "256"}, "4"},
		{"few aggregates have long sessions", "projectors", []string{"--rate", "5000", "--aggregates", "50", "--rtt", "5ms"}, "2"},
		{"connections", "Service Bus connections", []string{"--rate", "5000", "--aggregates", "1e6", "--rtt", "5ms"}, "19 of 5,000"},
		{"credits", "Standard tier", []string{"--rate", "100", "--subscriptions", "2"}, "500 of 1,000 credits a second"},
		{"credits that are not enough", "Standard tier", []string{"--rate", "400"}, "1,200 of 1,000 credits a second: not enough"},
		{"credits of which enough are left", "Standard tier", []string{"--rate", "266"}, "798 of 1,000 credits a second"},
		{"credits that are used up", "Standard tier", []string{"--rate", "200", "--subscriptions", "2"}, "1,000 of 1,000 credits a second: too near the limit, plan with 80 %"},
		{"a session for each event costs the projectors most", "processors", []string{"--rate", "10000", "--aggregates", "1e6"}, "0.4 for the publishers, 8.8 for the projectors"},
		{"messages that are too large", "Standard tier", []string{"--rate", "1", "--size", "300KB"}, "3 of 1,000 credits a second: messages are too large"},
		{"messaging units by messages", "Premium messaging units", []string{"--rate", "4000", "--size", "100B"}, "2"},
		{"messaging units by bytes", "Premium messaging units", []string{"--rate", "1000", "--size", "20KB"}, "8"},
		{"more than a namespace has", "Premium messaging units", []string{"--rate", "1e6"}, "more than 16: share the aggregates out over several namespaces"},
		{"the operation log", "operation log of the source", []string{"--rate", "1000", "--size", "850B", "--outage", "10h"}, "36 GB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := value(t, tt.of, tt.args...); got != tt.want {
				t.Errorf("%s: got %s, want %s", tt.of, got, tt.want)
			}
		})
	}
}

// A figure that is measured anew must be used as it is then.
func TestPlan_FiguresAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	last := numeral
	far := Load{Rate: 1e6, Aggregates: 1e6, Size: 1e6, RoundTrip: 5 * time.Millisecond, Subscriptions: 1, Outage: time.Hour, Sessions: 64}
	seen := 0
	for _, line := range Of(far) {
		if len(line.Sources) == 0 {
			t.Errorf("%s has no source", line.Name)
		}
		for _, source := range line.Sources {
			page, _, _ := strings.Cut(source, ",")
			page, what, _ := strings.Cut(page, ":")
			if !strings.HasPrefix(page, "docs/") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(root, page))
			if err != nil {
				t.Fatal(err)
			}
			numbers := last.FindAllString(what+source[len(page):], -1)
			if len(numbers) == 0 {
				continue
			}
			if seen++; !strings.Contains(string(text), numbers[len(numbers)-1]) {
				t.Errorf("%s: %s does not have %s", source, page, numbers[len(numbers)-1])
			}
		}
	}
	if seen < 12 {
		t.Errorf("looked for %d figures, want more", seen)
	}
}

// Whoever reads the page must find what the command prints.
func TestPlan_TheExampleOfTheDocumentationIsWhatIsPrinted(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "sizing.md"))
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile(`make plan ARGS="([^"]*)"`).FindStringSubmatch(string(page))
	if example == nil {
		t.Fatal("docs/sizing.md has no example")
	}
	args := strings.Fields(example[1])
	rows := regexp.MustCompile("(?m)^\\| `?([A-Za-z ]+?)`? \\| ([^|]*[0-9][^|]*) \\|$").FindAllStringSubmatch(string(page), -1)
	wide := append(slices.Clone(args), "--sessions", "256")
	for _, row := range rows {
		said, want := row[2], value(t, row[1], args...)
		if row[1] == "projectors" {
			want += "; " + value(t, row[1], wide...)
		}
		for part := range strings.SplitSeq(want, "; ") {
			for _, number := range numeral.FindAllString(part, -1) {
				if number != "0" && !strings.Contains(" "+said, " "+number) { // 6m0s is six minutes
					t.Errorf("docs/sizing.md: %s is %q, and is printed as %q", row[1], said, want)
				}
			}
		}
	}
	if len(rows) < 9 {
		t.Errorf("the example has %d lines, want all", len(rows))
	}
}

func TestPlan_BadUsageIsToldAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Parse([]string{"--rate", "0", "--size", "-1", "--rtt", "-1s", "now"}, io.Discard)
	if err == nil {
		t.Fatal("got no error")
	}
	for _, want := range []string{"--rate is not above 0", "--size is not above 0", "--rtt is -1s", `no argument "now"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want it to say %q", err, want)
		}
	}
	for _, huge := range [][]string{
		{"--rate", "1e18"},
		{"--aggregates", "1e300"},
		{"--size", "1000MB"},
		{"--subscriptions", "1e9"},
		{"--sessions", "1e9"},
		{"--rtt", "1h"},
		{"--outage", "1000000h"},
	} {
		if _, err := Parse(huge, io.Discard); err == nil || !strings.Contains(err.Error(), huge[0]+" is too large to plan for") {
			t.Errorf("%v: got %v, want that it is too large", huge, err)
		}
	}
	for _, bad := range []string{"many", "NaN", "inf", "2XB", ""} {
		if _, err := Parse([]string{"--rate", bad}, io.Discard); err == nil {
			t.Errorf("--rate %q: got no error", bad)
		}
	}
	if _, err := Parse([]string{"-h"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: got %v, want help", err)
	}
}
