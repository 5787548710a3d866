package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"changerelay/services/e2e/internal/harness/poll"
)

// Cluster is the relay and its servers. New starts nothing; Close ends all.
type Cluster struct {
	Sandbox    *Node // nil where the servers were given
	Publishers []*Node
	Projectors []*Node

	cfg       Config
	client    *http.Client
	banner    *banner
	endpoints Endpoints // set before the services are laid out

	mu    sync.Mutex // guards what follows
	twins map[string]*Node
}

// SandboxAnywhere are the arguments of a sandbox that is on free ports of this machine, and
// more of them.
func SandboxAnywhere(more ...string) []string {
	return append([]string{"--mongo", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--management", "127.0.0.1:0", "--http", "127.0.0.1:0"}, more...)
}

// New prepares a cluster. The services can be laid out and started before the
// sandbox when cfg.Backend says where it will be.
func New(cfg Config) *Cluster {
	c := &Cluster{
		cfg:    cfg,
		client: &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
		banner: &banner{},
	}
	if cfg.Backend != nil {
		c.endpoints = *cfg.Backend
	}
	if cfg.Backend == nil || cfg.SandboxArgs != nil {
		args := cfg.SandboxArgs
		if args == nil {
			args = SandboxAnywhere()
		}
		if cfg.World != "" {
			args = append(slices.Clone(args), "--world", cfg.World)
		}
		c.Sandbox = newNode(program{
			name: "sandbox", binary: cfg.Binaries.Sandbox, args: args, env: environment(nil),
			log: filepath.Join(cfg.Dir, "sandbox.log"), stdout: c.banner.line,
		}, c.client)
	}
	return c
}

// StartServers starts the sandbox, if it is ours to start, waits until it is
// ready and lays out the services that will use it.
func (c *Cluster) StartServers(ctx context.Context) error {
	if c.Sandbox != nil {
		if err := c.StartSandbox(ctx); err != nil {
			return err
		}
	}
	return c.LayOut()
}

// StartSandbox starts the sandbox and waits until it is ready.
func (c *Cluster) StartSandbox(ctx context.Context) error {
	return c.StartSandboxAs(ctx, c.cfg.Binaries.Sandbox)
}

// StartSandboxAs is StartSandbox with another binary and more environment.
func (c *Cluster) StartSandboxAs(ctx context.Context, binary string, env ...string) error {
	c.banner.reset()
	if err := c.Sandbox.StartAs(binary, env...); err != nil {
		return err
	}
	var broken error
	err := poll.Until(ctx, "the sandbox to be ready", func(context.Context) (bool, string) {
		e, ready, err := c.banner.endpoints()
		switch {
		case ready && c.endpoints == (Endpoints{}):
			c.endpoints, broken = e, err
		case ready:
			broken = err
		case !c.Sandbox.Running():
			broken = fmt.Errorf("the sandbox ended: %s (see %s)", c.Sandbox.lastWords(), c.Sandbox.LogPath())
		}
		return ready || broken != nil, "not ready"
	})
	if err = cmp.Or(err, broken); err != nil || !c.cfg.Canaries || !c.open() {
		return err
	}
	return c.createUser(ctx)
}

// LayOut makes the nodes of the services, none of them started.
func (c *Cluster) LayOut() error {
	for i := range c.cfg.Publishers {
		n, err := c.service("publisher", i, c.cfg.Binaries.Publisher, c.publisherEnv)
		if err != nil {
			return err
		}
		c.Publishers = append(c.Publishers, n)
	}
	for i := range c.cfg.Projectors {
		n, err := c.service("projector", i, c.cfg.Binaries.Projector, c.projectorEnv)
		if err != nil {
			return err
		}
		c.Projectors = append(c.Projectors, n)
	}
	return nil
}

func (c *Cluster) service(kind string, i int, binary string, settings func(Endpoints) map[string]string) (*Node, error) {
	name := kind + "-" + strconv.Itoa(i+1)
	endpoints := c.endpoints
	if c.cfg.Reach != nil {
		var err error
		if endpoints, err = c.cfg.Reach(name, endpoints); err != nil {
			return nil, err
		}
	}
	env := settings(endpoints)
	env["INSTANCE_ID"] = name
	if c.cfg.Canaries {
		if err := c.giveCanaries(env); err != nil {
			return nil, err
		}
	}
	return newNode(program{
		name: name, binary: binary, env: environment(env), log: filepath.Join(c.cfg.Dir, name+".log"),
	}, c.client), nil
}

// Twin makes a node like another, under a name of its own and with more environment;
// it is not started, nor ended by Close.
func (c *Cluster) Twin(of *Node, name string, env ...string) (*Node, error) {
	p := of.program
	p.name, p.log = name, filepath.Join(c.cfg.Dir, name+".log")
	p.env = slices.Concat(p.env, []string{"INSTANCE_ID=" + name}, env)
	twin := newNode(p, c.client)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.twins == nil {
		c.twins = make(map[string]*Node)
	}
	c.twins[name] = twin
	return twin, nil
}

// madeTwins are the twins that there were, the last one of each name.
func (c *Cluster) madeTwins() []*Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.twins))
}

// Endpoints say where the servers are; they are known once StartServers returned.
func (c *Cluster) Endpoints() Endpoints { return c.endpoints }

// Names are the names in use.
func (c *Cluster) Names() Names { return c.cfg.Names }

// StartServices starts every publisher and projector.
func (c *Cluster) StartServices() error {
	for _, n := range slices.Concat(c.Publishers, c.Projectors) {
		if err := n.Start(); err != nil {
			return err
		}
	}
	return nil
}

// Leader returns the publisher that leads, by its own word, with the highest
// term; false when none says so.
func (c *Cluster) Leader(ctx context.Context) (*Node, PublisherStatus, bool) {
	var leader *Node
	var best PublisherStatus
	for _, n := range c.Publishers {
		s, err := n.PublisherStatus(ctx)
		if err == nil && s.Leads() && (leader == nil || s.Term > best.Term) {
			leader, best = n, s
		}
	}
	return leader, best, leader != nil
}

// AwaitLeader waits for a leader of a term above the given one.
func (c *Cluster) AwaitLeader(ctx context.Context, above int64) (*Node, PublisherStatus, error) {
	var leader *Node
	var status PublisherStatus
	err := poll.Until(ctx, fmt.Sprintf("a leader of a term above %d", above), func(ctx context.Context) (bool, string) {
		n, s, found := c.Leader(ctx)
		if !found {
			return false, "no leader"
		}
		leader, status = n, s
		return s.Term > above, fmt.Sprintf("%s leads term %d", n.Name, s.Term)
	})
	return leader, status, err
}

// AwaitProjectors waits until every projector answers.
func (c *Cluster) AwaitProjectors(ctx context.Context) error {
	for _, p := range c.Projectors {
		if err := p.AwaitUp(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Nodes returns every node, the services first.
func (c *Cluster) Nodes() []*Node {
	nodes := slices.Concat(c.Publishers, c.Projectors)
	if c.Sandbox != nil {
		nodes = append(nodes, c.Sandbox)
	}
	return nodes
}

// Close kills every process that is still running, the services first.
func (c *Cluster) Close() {
	for _, n := range c.Nodes() {
		n.Kill()
	}
}

// StopTime bounds the stop of all services in good order, with the look at what they leave.
const StopTime = 3 * time.Minute

// Stop asks the nodes to stop, all at once, waits for them, and returns an error
// for each that did not end in good order, with status 0.
func Stop(ctx context.Context, nodes ...*Node) []error {
	var errs []error
	for _, n := range nodes {
		if err := n.Terminate(); err != nil {
			errs = append(errs, err)
		}
	}
	for _, n := range nodes {
		switch status, err := n.Wait(ctx); {
		case err != nil:
			errs = append(errs, err)
		case status != 0:
			errs = append(errs, fmt.Errorf("%s ended with status %d after SIGTERM: see %s", n.Name, status, n.LogPath()))
		}
	}
	return errs
}
