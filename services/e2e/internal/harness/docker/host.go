package docker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/ory/dockertest/v3"
	"github.com/ory/dockertest/v3/docker"

	"changerelay/services/e2e/internal/harness/cluster"
)

// adminPort is the port of the services' admin server.
const adminPort docker.Port = "8080/tcp"

// Host is a Docker engine with the networks and servers of one run.
type Host struct {
	// Images are what runs here.
	Images Images
	// Database and Broker are the servers.
	Database, Broker *Container

	pool       *dockertest.Pool
	client     *http.Client
	prefix     string
	dir        string
	networks   []*docker.Network
	admin      *docker.Network
	watch      *docker.Network
	inner      *docker.Network
	containers []*Container
	addresses  netip.Addr // of the inner network: the last one given away
}

// Open connects to the engine and starts the servers, with a topic for each of
// the given number of systems. Close removes everything, also after an error.
// dir is readable for every user, for the files that are mounted.
func Open(ctx context.Context, dir string, systems int, getenv func(string) string) (*Host, error) {
	pool, err := dockertest.NewPool("")
	if err != nil {
		return nil, fmt.Errorf("connect to Docker: %w", err)
	}
	if err := pool.Client.PingWithContext(ctx); err != nil {
		return nil, fmt.Errorf("find a Docker engine: %w", err)
	}
	images, err := Choose(ctx, pool, getenv)
	if err != nil {
		return nil, err
	}
	h := &Host{
		Images: images, pool: pool, dir: dir,
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		prefix: fmt.Sprintf("change-relay-test-%08x", rand.Uint32()),
	}
	if err := errors.Join(h.network("a-admin", &h.admin), h.network("a-watch", &h.watch), h.addressed("inner", &h.inner)); err != nil {
		return h, err
	}
	return h, h.serve(ctx, systems)
}

func (h *Host) network(name string, into **docker.Network, options ...func(*docker.CreateNetworkOptions)) error {
	made, err := h.pool.CreateNetwork(h.prefix+"-"+name, options...)
	if err != nil {
		return fmt.Errorf("create network %s: %w", name, err)
	}
	*into = made.Network
	h.networks = append(h.networks, made.Network)
	return nil
}

// addressed makes a network on which we give away the addresses, and so know
// that none comes twice. The engine is asked for a subnet that is free.
func (h *Host) addressed(name string, into **docker.Network) error {
	free, err := h.pool.CreateNetwork(h.prefix + "-probe")
	if err != nil {
		return fmt.Errorf("find a free subnet: %w", err)
	}
	found, err := h.pool.Client.NetworkInfo(free.Network.ID)
	if err := errors.Join(err, h.pool.Client.RemoveNetwork(free.Network.ID)); err != nil {
		return fmt.Errorf("find a free subnet: %w", err)
	}
	subnet, err := netip.ParsePrefix(found.IPAM.Config[0].Subnet)
	if err != nil {
		return fmt.Errorf("read the subnet of %s: %w", found.Name, err)
	}
	h.addresses = subnet.Addr().Next() // the gateway's
	return h.network(name, into, func(options *docker.CreateNetworkOptions) {
		options.IPAM = &docker.IPAMOptions{Config: []docker.IPAMConfig{{Subnet: subnet.String()}}}
	})
}

// Close removes every container and network of the run.
func (h *Host) Close() error {
	var errs []error
	for _, c := range h.containers {
		errs = append(errs, h.remove(c))
	}
	for _, n := range h.networks {
		errs = append(errs, h.pool.Client.RemoveNetwork(n.ID))
	}
	return errors.Join(errs...)
}

func (h *Host) remove(c *Container) error {
	err := h.pool.Client.RemoveContainer(docker.RemoveContainerOptions{ID: c.ID, Force: true, RemoveVolumes: true})
	if gone := (*docker.NoSuchContainer)(nil); errors.As(err, &gone) {
		return nil
	}
	return c.did("remove", err)
}

// Remove ends containers that are no longer needed.
func (h *Host) Remove(containers ...*Container) error {
	var errs []error
	for _, c := range containers {
		errs = append(errs, h.remove(c))
	}
	return errors.Join(errs...)
}

// Publisher starts a publisher of a system.
func (h *Host) Publisher(name string, names cluster.Names, lease cluster.Lease) (*Container, error) {
	return h.run(spec{
		alias: name, image: h.Images.Publisher, ports: []docker.Port{adminPort}, edge: h.admin, hardened: true,
		env: map[string]string{
			"INSTANCE_ID":                  name,
			"MONGODB_URI":                  innerMongo,
			"SOURCE_DATABASE":              names.SourceDatabase,
			"SOURCE_COLLECTION":            names.SourceCollection,
			"STATE_DATABASE":               names.StateDatabase,
			"SERVICEBUS_CONNECTION_STRING": serviceBus("servicebus"),
			"SERVICEBUS_TOPIC":             names.Topic,
			"LEASE_TTL":                    lease.TTL.String(),
			"LEASE_HEARTBEAT":              lease.Heartbeat.String(),
			"LEASE_RENEW_DEADLINE":         lease.RenewDeadline.String(),
		},
	})
}

// Projector starts a projector of a system, with the projections of the file.
func (h *Host) Projector(name string, names cluster.Names, projections string) (*Container, error) {
	return h.run(spec{
		alias: name, image: h.Images.Projector, ports: []docker.Port{adminPort}, edge: h.admin, hardened: true,
		mounts: []string{projections + ":/etc/change-relay/projections.yaml:ro"},
		env: map[string]string{
			"INSTANCE_ID":                  name,
			"READMODEL_MONGODB_URI":        innerMongo,
			"READMODEL_DATABASE":           names.ReadModelDatabase,
			"SERVICEBUS_CONNECTION_STRING": serviceBus("servicebus"),
			"SERVICEBUS_TOPIC":             names.Topic,
			"SERVICEBUS_SUBSCRIPTION":      names.Subscription,
			"SERVICEBUS_CONNECTIONS":       "1", // the emulator takes ten in all
			"MAX_SESSIONS":                 "16",
			"PROJECTIONS":                  "/etc/change-relay/projections.yaml",
		},
	})
}

// file writes a file that any user in a container may read.
func (h *Host) file(name string, text []byte) (string, error) {
	path := filepath.Join(h.dir, name)
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return "", fmt.Errorf("write a file to mount: %w", err)
	}
	return path, os.Chmod(path, 0o644)
}
