package driversuite

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// unit is what runs in one process: a top-level test, or one folder of the
// specification tests.
type unit struct {
	pkg    string
	test   string
	folder string
	// file is set for a file of the folder that runs by itself.
	file string
}

// apart are files that run by themselves, beside the rest of their folder. They
// wait for servers that are not there, half a minute each time.
var apart = []string{"read-pref.json", "transaction-options.json"}

// unitOf finds the unit that a test runs in. Tests that only hold the units of
// several folders together belong to none.
func unitOf(t Test) (u unit, ok bool) {
	u.pkg = t.Package
	u.test, u.folder, _ = strings.Cut(t.Name, "/")
	if !strings.HasPrefix(u.test, "TestUnifiedSpec") {
		u.folder = ""
		return u, true
	}
	rest := ""
	u.folder, rest, _ = strings.Cut(u.folder, "/")
	for _, file := range apart {
		if u.folder == "transactions" && strings.HasPrefix(rest, "legacy/"+file) {
			u.file = file
		}
	}
	return u, u.folder != ""
}

func (u unit) String() string { return path.Join(u.pkg, u.test, u.folder, u.file) }

// arguments select the unit's tests.
func (u unit) arguments() []string {
	pattern := "^" + u.test + "$"
	if u.folder != "" {
		pattern += "/^" + u.folder + "$"
	}
	if u.file != "" {
		pattern += "/^legacy$/^" + regexp.QuoteMeta(u.file) + "$"
	}
	arguments := []string{"-test.run", pattern}
	if u.folder == "transactions" && u.file == "" {
		arguments = append(arguments, "-test.skip", "^"+u.test+"$/^transactions$/^legacy$/^("+strings.Join(apart, "|")+")$")
	}
	return arguments
}

// argumentsFor select tests, and perhaps some beside them: those whose names
// mix parts of theirs.
func argumentsFor(tests []Test) []string {
	var levels [][]string
	for _, test := range tests {
		for i, part := range strings.Split(test.Name, "/") {
			if i == len(levels) {
				levels = append(levels, nil)
			}
			if part = regexp.QuoteMeta(part); !slices.Contains(levels[i], part) {
				levels[i] = append(levels[i], part)
			}
		}
	}
	patterns := make([]string, len(levels))
	for i, parts := range levels {
		patterns[i] = "^(" + strings.Join(parts, "|") + ")$"
	}
	return []string{"-test.run", strings.Join(patterns, "/")}
}

// group is what the report counts the unit under: the folder of the
// specification that it tests, or "other integration tests".
func (u unit) group() string {
	if u.folder != "" {
		return u.folder
	}
	for prefix, group := range map[string]string{
		"TestChangeStream":    "change-streams",
		"TestCrud":            "crud",
		"TestCSOT":            "client-side-operations-timeout",
		"TestGridFS":          "gridfs",
		"TestIndexView":       "index-management",
		"TestRetryableReads":  "retryable-reads",
		"TestRetryableWrites": "retryable-writes",
		"TestSession":         "sessions",
		"TestMatches":         "unified-test-format",
		"TestEntityMap":       "unified-test-format",
	} {
		if strings.HasPrefix(u.test, prefix) {
			return group
		}
	}
	return "other integration tests"
}

// unitsOf are the units that the recorded tests ran in, in a fixed order: those
// that take longest first.
func unitsOf(recorded Results) []unit {
	units := map[string]unit{}
	for test := range recorded {
		if u, ok := unitOf(test); ok {
			units[u.String()] = u
		}
	}
	sorted := make([]unit, 0, len(units))
	for _, name := range slices.Sorted(maps.Keys(units)) {
		sorted = append(sorted, units[name])
	}
	slices.SortStableFunc(sorted, func(a, b unit) int { return cmp.Compare(b.weight(), a.weight()) })
	return sorted
}

// weight is about how long a unit takes, in seconds, where that is long.
func (u unit) weight() int {
	switch {
	case u.file != "":
		return 90
	case u.test == "TestClientStress":
		return 60
	case u.test == "TestRetryableWritesSpec" || u.folder == "retryable-reads":
		return 40
	case u.test == "TestClient" || u.folder == "server-selection" || u.folder == "server-discovery-and-monitoring":
		return 20
	}
	return 0
}
