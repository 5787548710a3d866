package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	mongodriver "go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
)

// repairs are what operators have done to read models that they repair, while faults go
// on.
type repairs struct {
	// written is what was written, as resends select it.
	written written
	// publisher is a program that runs the publisher's command line, in a directory of its
	// own, which is no part of what a run keeps.
	publisher, dir string

	mu sync.Mutex // guards what follows
	// damaged are the documents that were altered, removed or doubled, by view and id, with
	// what was done; touched those that ever were.
	damaged map[document]string
	touched map[document]bool
	// begun are the rebuilds that are not at their end, by view; rebuilt counts the others.
	begun   map[string]bool
	rebuilt map[string]int
	resends []resend
	// cancels are the ids of resends that an operator may have ended for good.
	cancels map[string]bool
	// judged counts the resends that are done, and of which is known what they had to send.
	judged int
	// compared counts documents that comparisons have found, mended those that were built anew.
	compared, mended int
	// undamaged are the documents that differed at the end, and needless the halts, that no
	// damage explains.
	undamaged, needless validate.Findings
	// seen is what readers have seen that is neither old nor new, erased what explains the
	// rest. reads is how often they saw something, readsAnew how often while it was built anew.
	seen             validate.Findings
	erased           []erasure
	reads, readsAnew int
}

// document is a document that readers see.
type document struct{ view, id string }

// resend is one that an operator has asked for.
type resend struct {
	id, group string
	at        time.Time
	// selects says which events it is of, wherever it ends; nil where nobody can say.
	selects func(validate.Event) bool
}

// repairKinds are what operators do to mend read models, and what there is to mend.
func repairKinds() []fault {
	const s = time.Second
	return []fault{
		{"repair: resend", 12, 1 * s, 4 * s, resendSome},
		{"repair: projection built anew", 16, 5 * s, 20 * s, rebuildProjection},
		{"repair: a rebuild cancelled", 4, 0, 0, cancelRebuild},
		{"repair: documents damaged", 14, 0, 0, damage},
		{"repair: documents compared, and mended", 12, 0, 0, verifyAndMend},
		{"repair: projectors moved", 6, 1 * s, 3 * s, moveAllProjectors},
	}
}

// layOutRepairs makes what repairs need, before the services run.
func (c *campaign) layOutRepairs(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "chaos-")
	if err != nil {
		return fmt.Errorf("make a directory for a program: %w", err)
	}
	c.repairs = &repairs{
		dir: dir, damaged: make(map[document]string), touched: make(map[document]bool), begun: make(map[string]bool), rebuilt: make(map[string]int), cancels: make(map[string]bool),
	}
	for _, view := range c.views() {
		for version := range mostVersions {
			c.witness.MayResend(fmt.Sprintf("/%s_v%d", view, version))
		}
	}
	if c.repairs.publisher, err = c.cluster.Publishers[0].Script(dir); err != nil {
		return err
	}
	// The one that publisher doctor names: without it a resend goes through the source
	// once for each of its chunks.
	along := bson.D{{Key: "aggregateId", Value: 1}, {Key: "version", Value: 1}, {Key: "_id", Value: 1}}
	source := c.witness.Client.Database(c.cluster.Names().SourceDatabase).Collection(c.cluster.Names().SourceCollection)
	if _, err := source.Indexes().CreateOne(ctx, mongodriver.IndexModel{Keys: along}); err != nil {
		return fmt.Errorf("create the index of resends: %w", err)
	}
	_, err = c.cluster.Projectors[0].Command(ctx, "setup")
	return err
}

// views are those of the projections that operators build anew.
func (c *campaign) views() []string {
	_, judged := c.cfg.mode().ReadModels(false)
	return judged.Views
}

// rebuilt is the one of them that is built anew, by the seed: what is begun has to come to
// its end as well, and takes its time.
func (c *campaign) rebuilt() string {
	views := c.views()
	return views[c.cfg.Seed%uint64(len(views))]
}

// resendSome asks for something to be sent again, and has it rest for a while, or ends it.
// The leader may be killed meanwhile.
func resendSome(ctx context.Context, c *campaign, rng *rand.Rand) (string, func(context.Context) error, error) {
	n := publisher(ctx, c, rng)
	group := []string{"", "nobody", beside}[rng.IntN(3)]
	args, selects := c.selection(rng)
	args = append([]string{"resend", "--json", "--why", "chaos", "--rate", []string{"0", "300"}[rng.IntN(2)]}, args...)
	if group != "" {
		args = append(args, "--group", group)
	}
	c.witness.MayResend(group)
	at := time.Now()
	output, err := n.CommandIn(ctx, nil, args...)
	said, found := saidOfResend(output)
	if err != nil || !found {
		c.say("%s: %s", strings.Join(args, " "), outcomeOf(output, err))
		return "", nil, errNobody // there may be another one, or a fault
	}
	c.repairs.asked(resend{said.ID, group, at, selects})
	c.witness.Selects(said.ID, at, selects)
	then := []string{"", "", "resume", "cancel"}[rng.IntN(4)]
	if then == "resume" {
		_, _ = n.CommandIn(ctx, nil, "resend", "pause", "--why", "chaos")
	}
	what := strings.Join(args, " ")
	if rng.IntN(2) == 0 {
		what += c.killBeside(ctx, killedLeader, leader)
	}
	return what, func(ctx context.Context) error {
		switch then {
		case "resume":
			_, _ = n.CommandIn(ctx, nil, "resend", "resume", "--why", "chaos") // it may have ended, and is resumed at the end
		case "cancel":
			c.cancelResend(ctx, n)
		}
		return nil
	}, nil
}

// cancelResend ends the latest resend for good, unless it has ended: which one that is, what
// the command prints may not tell.
func (c *campaign) cancelResend(ctx context.Context, n *cluster.Node) {
	c.repairs.mayEnd(c.repairs.latest())
	output, _ := n.CommandIn(ctx, nil, "resend", "cancel", "--json", "--why", "chaos")
	if said, found := saidOfResend(output); found {
		c.repairs.mayEnd(said.ID)
	}
}

// latest is the id of the resend that was begun last.
func (r *repairs) latest() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.resends[len(r.resends)-1].id
}

// mayEnd notes that an operator may have ended a resend for good.
func (r *repairs) mayEnd(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancels[id] = true
}

// asked notes a resend that was begun.
func (r *repairs) asked(one resend) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resends = append(r.resends, one)
}

// resendSaid is what the publisher's command line prints of a resend.
type resendSaid struct {
	ID       string   `json:"id"`
	State    string   `json:"state"`
	Failed   int64    `json:"failed"`
	Short    []string `json:"short"`
	Warnings []string `json:"warnings"`
}

func saidOfResend(output string) (said resendSaid, found bool) {
	all := resendsIn(output)
	if len(all) == 0 {
		return said, false
	}
	return all[0], true
}

func resendsIn(output string) (all []resendSaid) {
	for line := range strings.Lines(output) {
		var said resendSaid
		if json.Unmarshal([]byte(line), &said) == nil && said.ID != "" && said.State != "" {
			all = append(all, said)
		}
	}
	return all
}

// killBeside kills a service beside what an operator does, and starts it again at once,
// unless it suffers something else. That explains what a fault of that kind does.
func (c *campaign) killBeside(ctx context.Context, kind string, who pick) string {
	n, release, err := c.process(ctx, nil, who)
	if err != nil {
		return ""
	}
	defer release()
	defer c.suffered(kind, n.Name, time.Now())
	n.Kill()
	if err := n.Start(); err != nil {
		c.wrong("start %s again: %v", n.Name, err)
	}
	return ", with SIGKILL of " + n.Name
}

// figures are what repairs have done.
func (r *repairs) figures() map[string]float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	figures := map[string]float64{
		"looks of readers at what is repaired": float64(r.reads), "looks of readers at what is being built anew": float64(r.readsAnew), "resends": float64(len(r.resends)),
		"resends of which all was looked for":           float64(r.judged),
		"damaged documents that a comparison has named": float64(r.compared), "documents that were mended alone": float64(r.mended),
	}
	for _, view := range []string{witness.Mended, witness.Placed, witness.Buyers} {
		if n := r.rebuilt[view]; n > 0 {
			figures["times that "+view+" was built anew"] = float64(n)
		}
	}
	return figures
}

// sorted are the damaged documents of a view, those that were altered or doubled alone
// where it is asked for these.
func (r *repairs) sorted(view string, lasting bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for d, how := range r.damaged {
		if d.view == view && (!lasting || how != removed) {
			ids = append(ids, d.id)
		}
	}
	slices.Sort(ids)
	return ids
}
