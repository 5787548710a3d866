package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	mongodriver "go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/e2e/internal/harness/cluster"
)

// act is what a fault does.
type act = func(ctx context.Context, c *campaign, rng *rand.Rand) (what string, undo func(context.Context) error, err error)

// operators are the mistakes that people make with a relay that runs. None may
// lose an event: it is refused, or the ledger of gaps names what was passed over.
func operators() []fault {
	const s = time.Second
	future := func() string { return time.Now().Add(time.Hour).UTC().Format(time.RFC3339) }
	past := func() string { return time.Now().Add(-15 * s).UTC().Format(time.RFC3339) }
	return []fault{
		{"operator: checkpoint deleted", 3, 0, 0, deleteCheckpoint},
		{"operator: state database of before", 3, 2 * s, 6 * s, restoreState},
		{"operator: checkpoint set back", 3, 0, 0, command(publisher, nil, func() []string { return []string{"checkpoint", "set", past(), "--why", "chaos", "--force"} })},
		{"operator: checkpoint set into the future", 2, 0, 0, command(publisher, nil, func() []string { return []string{"checkpoint", "set", future(), "--why", "chaos", "--force"} })},
		{"operator: checkpoint reset", 2, 0, 0, command(publisher, nil, func() []string { return []string{"checkpoint", "reset", "--why", "chaos", "--force"} })},
		{"operator: checkpoint set with other partitions", 2, 0, 0, command(publisher, []string{"PARTITIONS=3"}, func() []string { return []string{"checkpoint", "set", past(), "--why", "chaos", "--force"} })},
		{"operator: repartition", 2, 0, 0, command(publisher, []string{"PARTITIONS=2"}, func() []string { return []string{"repartition"} })},
		{"operator: replay of what is parked", 2, 0, 0, command(publisher, nil, func() []string { return []string{"parked", "replay", "--all"} })},
		{"operator: redrive with no projections", 2, 0, 0, command(projector, []string{"PROJECTIONS="}, func() []string { return []string{"parked", "redrive", "steady-order-000001"} })},
		{"operator: redrive in another group", 2, 0, 0, command(projector, []string{"READMODEL_GROUP=other"}, func() []string { return []string{"parked", "redrive", "steady-order-000001"} })},
		{"operator: start in the future", 2, 1 * s, 4 * s, restartWith(func() []string { return []string{"START_AT=" + future()} })},
		{"operator: a deployment of other partitions", 2, 1 * s, 4 * s, restartWith(func() []string { return []string{"PARTITIONS=2"} })},
		{anotherState, 1, 2 * s, 4 * s, twinDeployment},
		{"operator: parked message discarded", 3, 0, 0, withMessages(discardOne)},
		{"operator: parked messages all discarded", 3, 0, 0, withMessages(discardAll)},
		{"operator: parked messages deleted", 2, 0, 0, withMessages(deleteMessages)},
		{"operator: halts deleted", 2, 0, 0, withMessages(deleteHalts)},
		{"operator: parked change purged", 3, 0, 0, purgeChanges},
		{"operator: projectors moved", 2, 2 * s, 5 * s, moveProjectors},
		{sharedSubscription, 2, 0, 0, shareSubscription},
		{groupBeside, 2, 2 * s, 5 * s, startBeside},
	}
}

// anotherState is the mistake at the end of which a publisher is killed.
const anotherState = "operator: another state database"

// killing are the mistakes that kill a process of the relay.
var killing = []string{anotherState, sharedSubscription}

// sharedSubscription is the mistake with a projector that is killed if it does not end by itself.
const sharedSubscription = "operator: a second group on the same subscription"

// kinds are the kinds of faults of a campaign. Where the servers are given, they are
// those that are done to the services' processes.
func (c *Config) kinds() []fault {
	// Given programs have no clocks that can be set, and none beside them. The last release
	// has no projection in Go, refuses the declaration of documents of another key, and goes
	// on without no event.
	mode := c.mode()
	all := slices.DeleteFunc(chosen(c.Operators), func(f fault) bool {
		return c.Bin != "" && slices.Contains(ofBuilds, f.name) || (mode.InGo || mode.Keyed || mode.Skips) && f.name == lastRelease
	})
	if c.Backend == nil && c.mode().Repairs {
		// A release before knows nothing of versions that are filled. A projector that was
		// killed is waited for by a rebuild for as long as it might live, so few are.
		all = slices.DeleteFunc(all, func(f fault) bool { return f.name == lastRelease })
		all[slices.IndexFunc(all, func(f fault) bool { return f.name == killedProjector })].weight = 1
		return append(all, repairKinds()...)
	}
	if c.Backend == nil {
		return all
	}
	return slices.DeleteFunc(all, func(f fault) bool { return !slices.Contains(processFaults, f.name) })
}

// ofBuilds are the faults that need programs that the campaign has built.
var ofBuilds = []string{lastRelease, "wrong clock of a publisher", "wrong clock of a projector", "wrong clock of the servers"}

// processFaults are the faults that are done to processes of the services alone.
var processFaults = []string{
	killedLeader, "SIGKILL of a publisher", killedProjector, "SIGTERM to the leader", "SIGTERM to a projector",
	lastRelease, "SIGSTOP of the leader", "SIGSTOP of a projector", "wrong clock of a publisher", "wrong clock of a projector",
}

// advised is the kind of what a halted publisher has said must be done.
const advised = "remedy, as advised"

// movesCheckpoints are the mistakes, and what is done about them, that may move a
// checkpoint, or have another stream send the same events. A command whose answer is lost
// may have moved one, too; one into the future is always refused.
var movesCheckpoints = []string{
	"operator: checkpoint deleted", "operator: state database of before", "operator: checkpoint set back",
	"operator: checkpoint reset", "operator: checkpoint set with other partitions", "operator: repartition",
	"operator: a deployment of other partitions", anotherState, readDatabase, advised,
}

// chosen are the kinds of faults that a campaign is made of: all faults from
// outside, or the operators' mistakes whose names contain one of the given
// texts, so that what is lost is an operator's.
func chosen(kinds string) []fault {
	if kinds == "" {
		return faultKinds()
	}
	if kinds == "all" {
		return operators()
	}
	return slices.DeleteFunc(slices.Concat(operators(), restores()), func(d fault) bool {
		return !slices.ContainsFunc(strings.Split(kinds, ","), func(kind string) bool { return strings.Contains(d.name, kind) })
	})
}

// checkpoints is the collection of checkpoints in the publishers' state database.
const checkpoints = "resume_tokens"

// gapsLedger is where they write down what they passed over.
const gapsLedger = "stream_gaps"

func deleteCheckpoint(ctx context.Context, c *campaign, _ *rand.Rand) (string, func(context.Context) error, error) {
	result, err := c.witness.State().Collection(checkpoints).DeleteMany(ctx, bson.D{})
	if err != nil || result.DeletedCount == 0 {
		return "", nil, errNobody
	}
	return fmt.Sprintf("%d checkpoints deleted", result.DeletedCount), nil, nil
}

// restoreState puts the state database back to what it was when the fault began,
// as a restore of a backup does, under whoever works with it.
func restoreState(ctx context.Context, c *campaign, _ *rand.Rand) (string, func(context.Context) error, error) {
	names, err := c.witness.State().ListCollectionNames(ctx, bson.D{{Key: "type", Value: "collection"}})
	if err != nil {
		return "", nil, errNobody
	}
	backup := make(map[string][]any)
	for _, name := range names {
		cursor, err := c.witness.State().Collection(name).Find(ctx, bson.D{})
		if err != nil {
			return "", nil, errNobody
		}
		var all []bson.D
		if err := cursor.All(ctx, &all); err != nil {
			return "", nil, errNobody
		}
		for _, d := range all {
			backup[name] = append(backup[name], d)
		}
	}
	return "state database put back to what it was", func(ctx context.Context) error {
		for _, name := range names {
			if name == gapsLedger {
				continue // what it says happened, however old the rest is
			}
			if err := putBack(ctx, c.witness.State().Collection(name), backup[name]); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

func putBack(ctx context.Context, to *mongodriver.Collection, documents []any) error {
	if _, err := to.DeleteMany(ctx, bson.D{}); err != nil || len(documents) == 0 {
		return err
	}
	_, err := to.InsertMany(ctx, documents)
	if mongodriver.IsDuplicateKeyError(err) {
		return nil // a service wrote its own first
	}
	return err
}

// command runs a command of a service's binary in its environment with a few
// settings of another one. That it is refused is an outcome, not a failure.
func command(who pick, env []string, args func() []string) act {
	return func(ctx context.Context, c *campaign, rng *rand.Rand) (string, func(context.Context) error, error) {
		n := who(ctx, c, rng)
		said, env := args(), c.cfg.notOurs(env)
		output, err := c.decide(ctx, n, env, said...)
		what := strings.TrimSpace(strings.Join(slices.Concat(env, []string{n.Program()}, said), " "))
		if err != nil {
			return what + ": refused: " + firstLine(output), nil, nil
		}
		c.accepted(what)
		return what + ": done", nil, nil
	}
}

// notOurs are settings of another environment: where they name as many partitions as the
// campaign's publishers have, another number takes their place.
func (c *Config) notOurs(env []string) []string {
	env = slices.Clone(env)
	for i, setting := range env {
		if setting == "PARTITIONS="+c.mode().Publisher["PARTITIONS"] {
			env[i] = map[string]string{"PARTITIONS=2": "PARTITIONS=3", "PARTITIONS=3": "PARTITIONS=2"}[setting]
		}
	}
	return env
}

// accepted notes a mistake that was not refused.
func (c *campaign) accepted(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mistakes = append(c.mistakes, what)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// restartWith restarts all publishers with settings that are not right, as a
// deployment does, and after a while as they were. A process that refuses them
// ends, which is no fault.
func restartWith(env func() []string) act {
	return func(ctx context.Context, c *campaign, _ *rand.Rand) (string, func(context.Context) error, error) {
		release, free := c.take("publishers")
		if !free {
			return "", nil, errNobody
		}
		settings := c.cfg.notOurs(env())
		if err := c.redeploy(ctx, settings...); err != nil {
			release()
			return "", nil, err
		}
		return "publishers deployed with " + strings.Join(settings, " "), func(ctx context.Context) error {
			defer release()
			return c.redeploy(ctx)
		}, nil
	}
}

func (c *campaign) redeploy(ctx context.Context, env ...string) error {
	for _, n := range c.cluster.Publishers {
		if len(env) == 0 && c.hasRefused(ctx, n) {
			c.say("%s has refused its settings", n.Name)
		} else if err := c.halt(ctx, n); err != nil {
			return err
		}
		if err := n.StartAs(n.Binary(), env...); err != nil {
			return err
		}
	}
	return nil
}

// hasRefused tells that a service has ended as one does that refuses its settings.
func (c *campaign) hasRefused(ctx context.Context, n *cluster.Node) bool {
	if n.Running() {
		return false
	}
	status, err := n.Wait(ctx)
	return err == nil && status == refused
}

// stopTime bounds how long a service may take to stop.
const stopTime = 10 * time.Second

// twinDeployment runs a publisher of the same names on a state database of its
// own beside the others, as a copied manifest does.
func twinDeployment(_ context.Context, c *campaign, _ *rand.Rand) (string, func(context.Context) error, error) {
	release, free := c.take("twin")
	if !free {
		return "", nil, errNobody
	}
	twin, err := c.cluster.Twin(c.cluster.Publishers[0], "twin")
	if err == nil {
		err = twin.StartAs(twin.Binary(), "STATE_DATABASE="+c.cluster.Names().StateDatabase+"_twin")
	}
	if err != nil {
		release()
		return "", nil, err
	}
	return "a second deployment on another state database", func(context.Context) error { defer release(); twin.Kill(); return nil }, nil
}

// leaderPatience is how long nothing must have moved before the relay is taken
// to be at its end: longer than another publisher needs to lead.
const leaderPatience = 6 * time.Second

// followAdvice follows what a halted relay says must be done, to the letter, and deals with
// what is set aside, until the relay is at its end. Whether something is missing then is the judge's to say: what
// the ledger names never comes.
func (c *campaign) followAdvice(ctx context.Context) error {
	for range remedies {
		if err := c.witness.AwaitStill(ctx, leaderPatience); err != nil {
			return err
		}
		node, advice := c.advice(ctx)
		if advice == nil {
			if c.putAllRight(ctx) {
				continue
			}
			if again, err := c.putBackRightly(ctx); again || err != nil {
				if err != nil {
					return err
				}
				continue
			}
			return c.drainBeside(ctx)
		}
		output, err := c.decide(ctx, node, nil, advice...)
		c.remedied(advised, "as advised: "+node.Program()+" "+strings.Join(advice, " "), firstLine(output))
		if err != nil {
			c.say("the advice was refused: %v", err)
		}
	}
	return fmt.Errorf("the relay is halted after %d remedies", remedies)
}

// remedies bounds how much advice is followed.
const remedies = 10

// advice is the first command that a halted publisher names in its status.
func (c *campaign) advice(ctx context.Context) (*cluster.Node, []string) {
	for _, n := range c.cluster.Publishers {
		status, err := n.PublisherStatus(ctx)
		if err != nil || status.State != "halted" {
			continue
		}
		c.say("%s is halted: %s", n.Name, status.LastError)
		if args := adviceIn(status.LastError); args != nil {
			return n, args
		}
	}
	return nil, nil
}

// Kinds are the names of all faults and mistakes, also of those that are made alone.
func Kinds() []string {
	var names []string
	for _, f := range slices.Concat(faultKinds(), repairKinds(), operators(), restores()) {
		names = append(names, f.name)
	}
	return names
}
