package cluster

import (
	"hash/fnv"
	"time"
)

// Config says what a cluster consists of.
type Config struct {
	Binaries Binaries
	// Dir takes logs and generated files. It must exist.
	Dir string
	// Publishers and Projectors are how many of each there are.
	Publishers int
	Projectors int
	Lease      Lease
	Names      Names
	// Projections is the projectors' declaration file; empty for the default projection.
	Projections string
	// Backend names the servers. nil starts a sandbox and asks it.
	Backend *Endpoints
	// SandboxArgs are the sandbox's arguments; nil listens on free ports. With
	// them and a Backend, the sandbox is expected to be that backend.
	SandboxArgs []string
	// World is the sandbox's world, a name or a file; empty for none.
	World string
	// Reach says where a node finds the servers, such as through a proxy of its
	// own; nil for where they are.
	Reach func(node string, e Endpoints) (Endpoints, error)
	// Canaries gives the services secrets that Leaks recognises.
	Canaries bool
	// Env is added to the environment of the publishers and projectors, over
	// what the cluster sets itself.
	PublisherEnv map[string]string
	ProjectorEnv map[string]string
}

// Lease is the publishers' lease timing.
type Lease struct {
	TTL           time.Duration
	Heartbeat     time.Duration
	RenewDeadline time.Duration
}

// LeaseOf returns the timing of a lease of that length, in the proportions of
// the publisher's defaults.
func LeaseOf(ttl time.Duration) Lease {
	return Lease{TTL: ttl, Heartbeat: ttl / 3, RenewDeadline: ttl * 2 / 3}
}

// Names are the databases, collections and entities in use.
type Names struct {
	SourceDatabase   string
	SourceCollection string
	// SecondCollection has the events of half of the aggregates; empty where one has all.
	SecondCollection  string
	StateDatabase     string
	ReadModelDatabase string
	LeaseName         string
	Topic             string
	Subscription      string
	Observer          string
}

// DefaultNames are the names that the demo uses, on a topic as the sandbox has it.
func DefaultNames() Names {
	return Names{
		SourceDatabase:    "shop",
		SourceCollection:  "order_events",
		StateDatabase:     "change_relay",
		ReadModelDatabase: "shop_read",
		LeaseName:         "changeStreamPublisher",
		Topic:             "changes",
		Subscription:      "projector",
		Observer:          "observer",
	}
}

// Source is the CloudEvents source of the relay's messages of the first collection.
func (n Names) Source() string { return "/" + n.SourceDatabase + "/" + n.SourceCollection }

// Sources are those of all collections.
func (n Names) Sources() []string {
	sources := []string{n.Source()}
	if n.SecondCollection != "" {
		sources = append(sources, "/"+n.SourceDatabase+"/"+n.SecondCollection)
	}
	return sources
}

// Collections are those of the source.
func (n Names) Collections() []string {
	if n.SecondCollection == "" {
		return []string{n.SourceCollection}
	}
	return []string{n.SourceCollection, n.SecondCollection}
}

// CollectionOf is the collection that an aggregate's events are in.
func (n Names) CollectionOf(aggregate string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(aggregate))
	all := n.Collections()
	return all[h.Sum32()%uint32(len(all))]
}

// OfRun returns the names with databases that belong to one run alone, for
// servers that outlive it.
func (n Names) OfRun(run string) Names {
	n.SourceDatabase += "_" + run
	n.StateDatabase += "_" + run
	n.ReadModelDatabase += "_" + run
	return n
}
