package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"changerelay/services/e2e/internal/harness/cluster"
)

// network is a proxy between each service and each server.
type network struct {
	server  *toxiproxy.ApiServer
	proxies map[string]map[side]*toxiproxy.Proxy // by node
}

// side is one of the servers.
type side string

const (
	mongo      side = "MongoDB"
	serviceBus side = "Service Bus"
)

var sides = []side{mongo, serviceBus}

func newNetwork() *network {
	// Some of toxiproxy logs to zerolog's global logger, which nothing here uses.
	zerolog.SetGlobalLevel(zerolog.Disabled)
	return &network{
		server:  toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()),
		proxies: make(map[string]map[side]*toxiproxy.Proxy),
	}
}

// reach is cluster.Config.Reach: it opens the node's proxies and says where they are.
func (n *network) reach(node string, e cluster.Endpoints) (cluster.Endpoints, error) {
	n.proxies[node] = make(map[side]*toxiproxy.Proxy)
	open := func(to side) func(string) (string, error) {
		return func(upstream string) (string, error) {
			proxy := toxiproxy.NewProxy(n.server, node+" "+string(to), "127.0.0.1:0", upstream)
			if err := proxy.Start(); err != nil {
				return "", err
			}
			n.proxies[node][to] = proxy
			return proxy.Listen, nil
		}
	}
	return e.Through(open(mongo), open(serviceBus))
}

// has says whether a node has connections of its own.
func (n *network) has(node string) bool { return n.proxies[node] != nil }

// close ends all proxies.
func (n *network) close() {
	for _, of := range n.proxies {
		for _, proxy := range of {
			proxy.Stop()
		}
	}
}

// cut refuses and ends the connections of a node to a server until mend.
func (n *network) cut(node string, to side) (mend func() error) {
	proxy := n.proxies[node][to]
	proxy.Stop()
	return proxy.Start
}

// toxic describes a disturbance as toxiproxy has them.
type toxic struct {
	Type       string         `json:"type"`
	Stream     string         `json:"stream,omitempty"`
	Attributes map[string]int `json:"attributes"`
}

// disturb adds a toxic to a node's connections to a server until mend.
func (n *network) disturb(node string, to side, t toxic) (mend func(context.Context) error, err error) {
	body, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	proxy := n.proxies[node][to]
	added, err := proxy.Toxics.AddToxicJson(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("disturb %s of %s: %w", to, node, err)
	}
	return func(ctx context.Context) error { return proxy.Toxics.RemoveToxic(ctx, added.Name) }, nil
}
