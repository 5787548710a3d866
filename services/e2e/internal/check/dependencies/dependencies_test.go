package dependencies

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"changerelay/services/e2e/internal/harness/cluster"
)

// rule says what a package must not depend on, directly or not, and why.
type rule struct {
	of     string // directory from the root
	target string
	never  []string // import path prefixes
	why    string
}

const e2e = "changerelay/services/e2e/internal/"

var rules = []rule{
	{
		of: "services/publisher", target: "./cmd/publisher", never: []string{"changerelay/services/sandbox", "changerelay/services/e2e"},
		why: "what is shipped must not carry the stand-ins that it is tested against",
	},
	{
		of: "services/projector", target: "./cmd/projector", never: []string{"changerelay/services/sandbox", "changerelay/services/e2e"},
		why: "what is shipped must not carry the stand-ins that it is tested against",
	},
	{
		of: "services/projector/example", target: "./...", never: []string{"changerelay/services/sandbox", "changerelay/services/e2e", "changerelay/services/publisher"},
		why: "a projector of one's own carries no more than the one that is shipped",
	},
	{
		of: "services/publisher", target: "./...", never: []string{"changerelay/services/projector"},
		why: "publisher and projector are deployed apart and share only the message contract",
	},
	{
		of: "services/projector", target: "./...", never: []string{"changerelay/services/publisher"},
		why: "publisher and projector are deployed apart and share only the message contract",
	},
	{
		of: "services/sandbox", target: "./...", never: []string{"changerelay/services/publisher", "changerelay/services/projector", "changerelay/services/e2e", "changerelay/pkg/contract"},
		why: "the sandbox stands in for servers that know nothing of the relay",
	},
	{
		of: "pkg/contract", target: "./...", never: []string{"changerelay/services/", "go.mongodb.org/mongo-driver/v2/mongo", "go.mongodb.org/mongo-driver/v2/x", "github.com/Azure/"},
		why: "any consumer can use the contract, whichever client it speaks to its servers with",
	},
	{
		of: "services/e2e", target: "./...", never: []string{"changerelay/services/publisher/", "changerelay/services/projector/", "changerelay/services/sandbox/"},
		why: "the judge must not share code with what it judges",
	},
	{
		of: "services/e2e", target: "./internal/harness/...", never: []string{e2e + "check", e2e + "bench", e2e + "campaign"},
		why: "the harness runs the relay, whoever judges or measures it",
	},
	{
		of: "services/e2e", target: "./internal/check/...", never: []string{e2e + "bench", e2e + "campaign"},
		why: "what judges a run does not know what was done in it",
	},
	{
		of: "services/e2e", target: "./internal/bench/...", never: []string{e2e + "campaign"},
		why: "a measurement and a campaign share the harness and the judge, nothing else",
	},
	{
		of: "services/e2e", target: "./internal/campaign/...", never: []string{e2e + "bench"},
		why: "a measurement and a campaign share the harness and the judge, nothing else",
	},
}

func TestDependencies_WhoMayImportWhom(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		t.Run(r.of+" and "+strings.Join(r.never, " and "), func(t *testing.T) {
			t.Parallel()
			deps := dependencies(t, filepath.Join(root, filepath.FromSlash(r.of)), r.target)
			for _, dep := range deps {
				if broken := r.breaks(dep); broken {
					t.Errorf("%s %s depends on %s, but must not: %s", r.of, r.target, dep, r.why)
				}
			}
			if !slices.ContainsFunc(deps, func(dep string) bool { return strings.HasPrefix(dep, "changerelay/"+r.of) }) {
				t.Errorf("dependencies of %s %s: got %d, want its own packages among them", r.of, r.target, len(deps))
			}
		})
	}
}

func (r rule) breaks(dep string) bool {
	return slices.ContainsFunc(r.never, func(prefix string) bool {
		return dep == strings.TrimSuffix(prefix, "/") || strings.HasPrefix(dep, strings.TrimSuffix(prefix, "/")+"/")
	})
}

func TestDependencies_ARuleFindsWhatBreaksIt(t *testing.T) {
	t.Parallel()
	r := rule{never: []string{"a/b", "c/"}}
	for dep, want := range map[string]bool{"a/b": true, "a/b/c": true, "a/bc": false, "a": false, "c": true, "c/d": true} {
		if got := r.breaks(dep); got != want {
			t.Errorf("%s breaks the rule: got %v, want %v", dep, got, want)
		}
	}
}

// dependencies lists what the target's packages depend on, themselves included.
func dependencies(t *testing.T, dir, target string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", target)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go list -deps %s in %s: %v\n%s", target, dir, err, out)
	}
	return strings.Fields(string(out))
}
