package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	mongodriver "go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/e2e/internal/harness/cluster"
)

// fault is one kind of fault.
type fault struct {
	name   string
	weight int // how often it is picked, against the others
	// shortest and longest bound how long it lasts.
	shortest, longest time.Duration
	// do does it, and says what exactly, and how it is undone; undo is nil where
	// there is nothing to undo. errNobody when there is nobody to do it to.
	do func(ctx context.Context, c *campaign, rng *rand.Rand) (what string, undo func(context.Context) error, err error)
}

// errNobody says that a fault found nobody to hit: whoever it was meant for is
// suffering another one.
var errNobody = errors.New("nobody to hit")

// lastRelease is the fault that no projector suffers which has what a release before does
// not know.
const lastRelease = "last release of a projector"

const (
	killedLeader = "SIGKILL of the leader"
	// killedProjector is the fault that a rebuild waits longest after.
	killedProjector = "SIGKILL of a projector"
)

// faultKinds are all the faults from outside.
func faultKinds() []fault {
	const ms = time.Millisecond
	return []fault{
		{killedLeader, 6, 0, 4000 * ms, kill(leader)},
		{"SIGKILL of a publisher", 2, 0, 4000 * ms, kill(publisher)},
		{killedProjector, 6, 0, 4000 * ms, kill(projector)},
		{"SIGTERM to the leader", 4, 0, 2000 * ms, terminate(leader)},
		{"SIGTERM to a projector", 4, 0, 2000 * ms, terminate(projector)},
		{lastRelease, 3, 0, 2000 * ms, rollBack},
		{"SIGSTOP of the leader", 5, 200 * ms, 10_000 * ms, freeze(leader)},
		{"SIGSTOP of a projector", 5, 200 * ms, 10_000 * ms, freeze(projector)},
		{"cut connection", 6, 100 * ms, 6000 * ms, cut},
		{"half-open connection", 5, 500 * ms, 8000 * ms, disturb(toxic{Type: "timeout", Attributes: map[string]int{"timeout": 0}})},
		{"slow connection", 5, 500 * ms, 6000 * ms, disturb(toxic{Type: "latency", Attributes: map[string]int{"latency": 150, "jitter": 100}})},
		{"narrow connection", 3, 500 * ms, 5000 * ms, disturb(toxic{Type: "bandwidth", Attributes: map[string]int{"rate": 64}})},
		{"reset connection", 4, 100 * ms, 2000 * ms, disturb(toxic{Type: "reset_peer", Attributes: map[string]int{"timeout": 50}})},
		{"SIGKILL of the servers, data kept", 2, 0, 1500 * ms, killServers},
		{"full disk of the servers", 2, 1000 * ms, 5000 * ms, fillDisk},
		{"wrong clock of a publisher", 2, 0, 0, setClock(publisher)},
		{"wrong clock of a projector", 2, 0, 0, setClock(projector)},
		{serversClock, 1, 0, 1500 * ms, setServersClock},
		{"SIGSTOP of the servers", 2, 100 * ms, 3000 * ms, freezeServers},
		{"election", 3, 0, 0, elect},
		{"database errors", 8, 0, 1000 * ms, failCommands},
		{"slow database", 4, 500 * ms, 4000 * ms, sandboxFault(`{"kind":"mongodb.delay","delay":"50ms"}`, nil)},
		{"database connections cut", 3, 0, 0, sandboxFault(`{"kind":"mongodb.cut"}`, nil)},
		{"throttled topic", 4, 500 * ms, 4000 * ms, sandboxFault(`{"kind":"servicebus.throttle","path":%q}`, topic)},
		{"slow broker", 4, 500 * ms, 5000 * ms, sandboxFault(`{"kind":"servicebus.delay","path":%q,"delay":"100ms"}`, subscription)},
		{"links detached", 4, 0, 0, sandboxFault(`{"kind":"servicebus.detach","path":%q}`, subscription)},
		{"links to the topic detached", 4, 0, 0, sandboxFault(`{"kind":"servicebus.detach","path":%q}`, topic)},
		{"session locks lost", 6, 0, 0, sandboxFault(`{"kind":"servicebus.lose-session-locks","path":%q}`, subscription)},
		{"repeated deliveries", 5, 0, 0, sandboxFault(`{"kind":"servicebus.redeliver","path":%q,"times":20}`, subscription)},
		{"another world", 4, 1000 * ms, 8000 * ms, changeWorld},
		{"broker connections cut", 3, 0, 0, sandboxFault(`{"kind":"servicebus.cut"}`, nil)},
	}
}

// pick chooses a service.
type pick func(ctx context.Context, c *campaign, rng *rand.Rand) *cluster.Node

func leader(ctx context.Context, c *campaign, _ *rand.Rand) *cluster.Node {
	n, _, _ := c.cluster.Leader(ctx)
	return n
}

func publisher(_ context.Context, c *campaign, rng *rand.Rand) *cluster.Node {
	return c.cluster.Publishers[rng.IntN(len(c.cluster.Publishers))]
}

func projector(_ context.Context, c *campaign, rng *rand.Rand) *cluster.Node {
	return c.cluster.Projectors[rng.IntN(len(c.cluster.Projectors))]
}

// process takes a service's process for one fault alone.
func (c *campaign) process(ctx context.Context, rng *rand.Rand, who pick) (n *cluster.Node, release func(), err error) {
	n = who(ctx, c, rng)
	if n == nil {
		return nil, nil, errNobody
	}
	release, free := c.take(n.Name)
	if !free {
		return nil, nil, errNobody
	}
	if !n.Running() {
		defer release()
		return nil, nil, c.vanish(n)
	}
	return n, release, nil
}

func kill(who pick) func(context.Context, *campaign, *rand.Rand) (string, func(context.Context) error, error) {
	return func(ctx context.Context, c *campaign, rng *rand.Rand) (string, func(context.Context) error, error) {
		n, release, err := c.process(ctx, rng, who)
		if err != nil {
			return "", nil, err
		}
		n.Kill()
		return "SIGKILL of " + n.Name, func(context.Context) error { defer release(); return n.Start() }, nil
	}
}

func terminate(who pick) func(context.Context, *campaign, *rand.Rand) (string, func(context.Context) error, error) {
	return func(ctx context.Context, c *campaign, rng *rand.Rand) (string, func(context.Context) error, error) {
		n, release, err := c.process(ctx, rng, who)
		if err != nil {
			return "", nil, err
		}
		ended, err := c.ask(n)
		if err != nil {
			release()
			return "", nil, err
		}
		return "SIGTERM to " + n.Name, func(ctx context.Context) error {
			defer release()
			if err := ended(ctx); err != nil {
				return err
			}
			return n.Start()
		}, nil
	}
}

func freeze(who pick) func(context.Context, *campaign, *rand.Rand) (string, func(context.Context) error, error) {
	return func(ctx context.Context, c *campaign, rng *rand.Rand) (string, func(context.Context) error, error) {
		n, release, err := c.process(ctx, rng, who)
		if err != nil {
			return "", nil, err
		}
		if err := n.Pause(); err != nil {
			release()
			return "", nil, err
		}
		return "SIGSTOP of " + n.Name, func(context.Context) error { defer release(); return n.Resume() }, nil
	}
}

// link takes a service's connections to one server for one fault alone.
func (c *campaign) link(rng *rand.Rand) (node string, to side, release func(), err error) {
	nodes := c.services()
	node, to = nodes[rng.IntN(len(nodes))].Name, sides[rng.IntN(len(sides))]
	if !c.network.has(node) {
		return "", "", nil, errNobody
	}
	release, free := c.take(node + " to " + string(to))
	if !free {
		return "", "", nil, errNobody
	}
	return node, to, release, nil
}

func cut(_ context.Context, c *campaign, rng *rand.Rand) (string, func(context.Context) error, error) {
	node, to, release, err := c.link(rng)
	if err != nil {
		return "", nil, err
	}
	mend := c.network.cut(node, to)
	return fmt.Sprintf("%s cut off from %s", node, to), func(context.Context) error { defer release(); return mend() }, nil
}

func disturb(t toxic) func(context.Context, *campaign, *rand.Rand) (string, func(context.Context) error, error) {
	return func(_ context.Context, c *campaign, rng *rand.Rand) (string, func(context.Context) error, error) {
		node, to, release, err := c.link(rng)
		if err != nil {
			return "", nil, err
		}
		t := t
		if rng.IntN(2) == 0 {
			t.Stream = "upstream"
		}
		mend, err := c.network.disturb(node, to, t)
		if err != nil {
			release()
			return "", nil, err
		}
		return fmt.Sprintf("%s toxic between %s and %s", t.Type, node, to), func(ctx context.Context) error { defer release(); return mend(ctx) }, nil
	}
}

// failures are what a database says when it is in trouble.
var failures = []struct {
	text string
	data bson.D
}{
	{"PrimarySteppedDown", bson.D{{Key: "errorCode", Value: 189}}},
	{"NotWritablePrimary", bson.D{{Key: "errorCode", Value: 10107}}},
	{"ShutdownInProgress", bson.D{{Key: "errorCode", Value: 91}}},
	{"ExceededTimeLimit", bson.D{{Key: "errorCode", Value: 262}}},
	{"WriteConcernTimeout", bson.D{{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "waiting for replication timed out"}}}}},
	{"closed connections", bson.D{{Key: "closeConnection", Value: true}}},
	{"blocked commands", bson.D{{Key: "blockConnection", Value: true}, {Key: "blockTimeMS", Value: 500}}},
}

func failCommands(ctx context.Context, c *campaign, rng *rand.Rand) (string, func(context.Context) error, error) {
	failure := failures[rng.IntN(len(failures))]
	times := 1 + rng.IntN(10)
	commands := bson.A{"findAndModify", "update", "aggregate", "getMore", "find"}
	data := append(bson.D{{Key: "failCommands", Value: commands}}, failure.data...)
	err := c.admin(ctx, bson.D{
		{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: bson.D{{Key: "times", Value: times}}},
		{Key: "data", Value: data},
	})
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("%s for %d commands", failure.text, times), nil, nil
}

// elect makes the database step down; a little later it is elected again.
func elect(ctx context.Context, c *campaign, rng *rand.Rand) (string, func(context.Context) error, error) {
	seconds := 1 + rng.IntN(3)
	if err := c.admin(ctx, bson.D{{Key: "replSetStepDown", Value: seconds}, {Key: "force", Value: true}}); err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("the database steps down for %d s", seconds), nil, nil
}

// adminTime bounds a command that is a fault.
const adminTime = 2 * time.Second

// admin runs a command on the database. Where that is away, or without a primary,
// it is suffering another fault; a command that it refuses is an error.
func (c *campaign) admin(ctx context.Context, command bson.D) error {
	ctx, cancel := context.WithTimeout(ctx, adminTime)
	defer cancel()
	err := c.witness.Client.Database("admin").RunCommand(ctx, command).Err()
	refused, ok := errors.AsType[mongodriver.CommandError](err)
	// A code of 0 is the driver's own, for a connection that broke.
	if err == nil || ok && refused.Code != 0 && !slices.Contains(electing, int(refused.Code)) {
		return err
	}
	return fmt.Errorf("%w: %w", errNobody, err)
}

// electing are the codes of a server without a primary: InterruptedDueToReplStateChange,
// NotWritablePrimary, NotPrimaryNoSecondaryOk.
var electing = []int{11602, 10107, 13435}
