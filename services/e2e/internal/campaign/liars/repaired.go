package liars

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"time"

	"changerelay/services/e2e/internal/campaign/chaos"
	"changerelay/services/e2e/internal/campaign/mutation/guard"
	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
)

// ofRepairs are those that operators would mend, if they did not look first.
func ofRepairs() []Lie {
	return []Lie{
		{
			Name:    "the projector leaves one aggregate in 50 out of a view that is repaired",
			Repairs: true,
			Change: guard.Guard{
				File: "services/projector/internal/delivery/project.go",
				Cut:  "\tfor w := range writes {\n\t\twrites[w].By = p.by\n",
				With: "\tif id := it.event.AggregateID; it.event.Resend.ID == \"\" && len(id) > 1 && id[len(id)-1] == '7' && id[len(id)-2] < '2' {\n" +
					"\t\tkept := writes[:0:0]\n\t\tfor _, w := range writes {\n\t\t\tif len(w.Collection) < 6 || w.Collection[:6] != \"mended\" {\n\t\t\t\tkept = append(kept, w)\n\t\t\t}\n\t\t}\n\t\twrites = kept\n\t}\n" +
					"\tfor w := range writes {\n\t\twrites[w].By = p.by\n",
			},
			Finds: []string{chaos.Undamaged},
		},
		{
			Name:    "aggregates are halted until a redrive for events that can be applied",
			Repairs: true,
			Change: guard.Guard{
				File: "services/projector/internal/delivery/project.go",
				Cut:  "\t\tcase ctx.Err() != nil:\n",
				With: "\t\tcase it.event.ID[0] == 'A' && it.event.ID[1] >= 'A' && it.event.ID[1] < 'K':\n\t\t\tb.stop(i, poisoned, \"no reason\")\n\t\tcase ctx.Err() != nil:\n",
			},
			Finds: []string{chaos.NeedlessHalts},
		},
	}
}

// A campaign of a trial: few faults, for a lie needs none.
const (
	repairing     = 10 * time.Second
	repairingRate = 200
	repairingMost = 3 * time.Minute
)

// tryRepaired runs the binaries in a campaign in which operators repair read models, and
// returns the checks that failed.
func tryRepaired(ctx context.Context, dir string, binaries cluster.Binaries, seed uint64) ([]witness.Violation, error) {
	bin := filepath.Join(dir, "programs")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return nil, err
	}
	for name, path := range map[string]string{"sandbox": binaries.Sandbox, "publisher": binaries.Publisher, "projector": binaries.Projector} {
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			return nil, err
		}
	}
	r, err := chaos.Run(ctx, ctx, chaos.Config{
		Seed: seed, Duration: repairing, Every: repairing / 4, Rate: repairingRate, Publishers: 2, Projectors: 2, Lease: lease,
		Settle: repairingMost, Plain: true, Source: "events", Repairs: "yes", Bin: bin, Dir: filepath.Join(dir, "campaign"),
	}, io.Discard)
	if err != nil {
		return nil, err
	}
	return failed(r.Checks), nil
}

// failed are the checks that failed.
func failed(checks []report.Check) (found []witness.Violation) {
	for _, c := range checks {
		if !c.Passed {
			found = append(found, witness.Violation{Name: c.Name, Findings: validate.Findings{Count: max(1, int(c.Got)), Samples: c.Samples}})
		}
	}
	return found
}
