package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/ory/dockertest/v3/docker"

	"changerelay/services/e2e/internal/harness/cluster"
)

// Container is one container. It may be ended and started again.
type Container struct {
	Name string
	ID   string

	host  *Host
	alias string // its name to the others
}

// spec says how a container is made.
type spec struct {
	alias    string
	image    string
	cmd      []string
	env      map[string]string
	mounts   []string // source:target:ro
	ports    []docker.Port
	edge     *docker.Network // publishes the ports
	hardened bool
}

// run makes a container on both networks and starts it.
func (h *Host) run(s spec) (*Container, error) {
	c := &Container{Name: h.prefix + "-" + s.alias, host: h, alias: s.alias}
	config := &docker.Config{Image: s.image, Cmd: s.cmd, ExposedPorts: map[docker.Port]struct{}{}}
	for _, name := range slices.Sorted(maps.Keys(s.env)) {
		config.Env = append(config.Env, name+"="+s.env[name])
	}
	resources := &docker.HostConfig{Binds: s.mounts, PortBindings: map[docker.Port][]docker.PortBinding{}}
	for _, port := range s.ports {
		config.ExposedPorts[port] = struct{}{}
		resources.PortBindings[port] = []docker.PortBinding{{HostIP: "127.0.0.1"}}
	}
	if s.hardened {
		resources.ReadonlyRootfs, resources.CapDrop, resources.SecurityOpt = true, []string{"ALL"}, []string{"no-new-privileges"}
	}
	made, err := h.pool.Client.CreateContainer(docker.CreateContainerOptions{
		Name: c.Name, Config: config, HostConfig: resources,
		NetworkingConfig: &docker.NetworkingConfig{EndpointsConfig: map[string]*docker.EndpointConfig{s.edge.Name: {}}},
	})
	if err != nil {
		return nil, fmt.Errorf("create container %s: %w", c.Name, err)
	}
	c.ID = made.ID
	h.containers = append(h.containers, c)
	if err := c.Heal(); err != nil {
		return nil, err
	}
	return c, c.Start()
}

// Start starts a container that does not run.
func (c *Container) Start() error {
	return c.did("start", c.host.pool.Client.StartContainer(c.ID, nil))
}

// Kill ends it with SIGKILL.
func (c *Container) Kill() error { return c.signal(docker.SIGKILL) }

// Terminate sends SIGTERM and returns the exit status once it has ended.
func (c *Container) Terminate(ctx context.Context) (int, error) {
	if err := c.signal(docker.SIGTERM); err != nil {
		return 0, err
	}
	status, err := c.host.pool.Client.WaitContainerWithContext(c.ID, ctx)
	return status, c.did("wait for", err)
}

func (c *Container) signal(s docker.Signal) error {
	return c.did("signal", c.host.pool.Client.KillContainer(docker.KillContainerOptions{ID: c.ID, Signal: s}))
}

// Pause freezes all its processes.
func (c *Container) Pause() error { return c.did("pause", c.host.pool.Client.PauseContainer(c.ID)) }

// Resume lets a frozen container go on.
func (c *Container) Resume() error { return c.did("resume", c.host.pool.Client.UnpauseContainer(c.ID)) }

// Cut takes it from the network that it shares with the others.
func (c *Container) Cut() error {
	return c.did("cut off", c.host.pool.Client.DisconnectNetwork(c.host.inner.ID, docker.NetworkConnectionOptions{Container: c.ID, Force: true}))
}

// Heal puts it onto that network, under its name and another address than before.
func (c *Container) Heal() error {
	c.host.addresses = c.host.addresses.Next()
	return c.did("connect", c.host.pool.Client.ConnectNetwork(c.host.inner.ID, docker.NetworkConnectionOptions{
		Container: c.ID, EndpointConfig: &docker.EndpointConfig{
			Aliases: []string{c.alias}, IPAMConfig: &docker.EndpointIPAMConfig{IPv4Address: c.host.addresses.String()},
		},
	}))
}

func (c *Container) did(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s container %s: %w", what, c.Name, err)
	}
	return nil
}

// Inspect returns what the engine knows of it.
func (c *Container) Inspect() (*docker.Container, error) {
	found, err := c.host.pool.Client.InspectContainer(c.ID)
	return found, c.did("inspect", err)
}

// Address is where this machine reaches a published port; it changes with every start.
func (c *Container) Address(port docker.Port) (string, error) {
	found, err := c.Inspect()
	if err != nil {
		return "", err
	}
	bound := found.NetworkSettings.Ports[port]
	if len(bound) == 0 {
		return "", fmt.Errorf("find port %s of container %s: it is not published, state %s", port, c.Name, found.State.Status)
	}
	return bound[0].HostIP + ":" + bound[0].HostPort, nil
}

// Log returns the end of what it has written.
func (c *Container) Log(lines int) string {
	var out bytes.Buffer
	err := c.host.pool.Client.Logs(docker.LogsOptions{
		Container: c.ID, OutputStream: &out, ErrorStream: &out, Stdout: true, Stderr: true, Tail: fmt.Sprint(lines),
	})
	if err != nil {
		return err.Error()
	}
	return out.String()
}

// askTimeout bounds one question: a frozen container never answers.
const askTimeout = 2 * time.Second

// Get reads a path of a service's admin port.
func (c *Container) Get(ctx context.Context, path string) ([]byte, error) {
	address, err := c.Address(adminPort)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.Name, err)
	}
	resp, err := c.host.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.Name, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask %s for %s: it answered %s, %w", c.Name, path, resp.Status, err)
	}
	return body, nil
}

// PublisherStatus asks a publisher.
func (c *Container) PublisherStatus(ctx context.Context) (cluster.PublisherStatus, error) {
	var s cluster.PublisherStatus
	return s, c.status(ctx, &s)
}

// ProjectorStatus asks a projector.
func (c *Container) ProjectorStatus(ctx context.Context) (cluster.ProjectorStatus, error) {
	var s cluster.ProjectorStatus
	return s, c.status(ctx, &s)
}

func (c *Container) status(ctx context.Context, into any) error {
	body, err := c.Get(ctx, "/status")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read the status of %s: %w", c.Name, err)
	}
	return nil
}
