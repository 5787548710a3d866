package app

import (
	"context"
	"errors"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"changerelay/services/publisher/internal/admin"
	"changerelay/services/publisher/internal/backoff"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/partition"
	"changerelay/services/publisher/internal/relay"
)

// partitioned reports whether the stream is split.
func (c *Config) partitioned() bool { return c.Partitions > 1 }

// split returns a publisher for each partition: an App with a lease, checkpoint
// and board of its own, which shares the clients of this one.
func (a *App) split(registry prometheus.Registerer, version string, latency relay.Observer) []*App {
	if !a.config.partitioned() {
		return nil
	}
	leases := mongostate.PartitionNames(a.config.LeaseName, a.config.Partitions)
	streams := mongostate.PartitionNames(a.config.StreamName, a.config.Partitions)
	parts := make([]*App, a.config.Partitions)
	for i := range parts {
		part := &App{
			config: a.config, log: a.log.With().Int("partition", i).Logger(), secrets: a.secrets,
			source: a.source, stateful: a.stateful, state: a.state, dial: a.dial, closing: a.closing, tracer: a.tracer,
			index: i, parkedAs: a.parkedAs, wholeLease: a.wholeLease,
		}
		part.config.LeaseName, part.config.StreamName = leases[i], streams[i]
		part.elect()
		part.counters = relay.NewCounters(latency)
		part.board = newBoard(part.config, version, part.holder, part.elector, part.counters, a.secrets)
		part.board.found()
		prometheus.WrapRegistererWith(prometheus.Labels{"partition": strconv.Itoa(i)}, registry).MustRegister(metrics{part.board})
		parts[i] = part
	}
	return parts
}

// elect makes the elector of the configured lease.
func (a *App) elect() {
	election := a.config.leaseConfig()
	election.Eligible = func() bool { return a.board.aside() == nil }
	a.holder = election.Holder
	record := a.state.Lease(a.config.LeaseName)
	a.elector = lease.New(election, record, record, a.log)
}

// keeps says whether this publisher carries an aggregate; nil for all.
func (a *App) keeps() func(aggregateID string) bool {
	if !a.config.partitioned() {
		return nil
	}
	return func(aggregateID string) bool { return partition.Of(aggregateID, a.config.Partitions) == a.index }
}

// publishParts publishes this instance's share of the partitions.
func (a *App) publishParts(ctx context.Context) error {
	roster := a.state.Roster(a.config.LeaseName, mongostate.PartitionNames(a.config.LeaseName, a.config.Partitions))
	return partition.New(partition.Config{
		Member:   a.config.InstanceID,
		Announce: a.config.LeaseHeartbeat,
		Present:  a.config.LeaseRenewDeadline,
		Look:     a.config.LeaseHeartbeat / 5,
		Aside:    a.aside,
	}, roster, func(ctx context.Context, i int) error {
		part := a.parts[i]
		return part.elector.Run(ctx, part.lead)
	}, a.log).Run(ctx)
}

// checkPartitions refuses to start beside checkpoints of another number of
// partitions. It waits for the state database.
func (a *App) checkPartitions(ctx context.Context) error {
	retry := backoff.Backoff{Initial: attemptTimeout / 20, Max: attemptTimeout}
	for {
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		err := a.state.CheckPartitions(attempt, a.config.StreamName, a.config.Partitions)
		cancel()
		switch {
		case errors.Is(err, mongostate.ErrPartitioned):
			return err
		case err == nil, ctx.Err() != nil:
			return nil
		}
		a.board.failed(err)
		if retry.Wait(ctx) != nil {
			return nil
		}
	}
}

// Overview is what /status writes where the stream is split.
type Overview struct {
	Service    string     `json:"service"`
	Version    string     `json:"version"`
	Instance   string     `json:"instance"`
	Role       lease.Role `json:"role"`
	State      string     `json:"state"`
	LastError  string     `json:"last_error,omitempty"`
	Partitions int        `json:"partitions"`
	// Led are the partitions that this instance leads.
	Led  []int `json:"led"`
	Sent int64 `json:"sent"`
	// Streams are the partitions, in their order.
	Streams []Status `json:"streams"`
	// Troubles are the latest warnings and errors of the log.
	Troubles []admin.Trouble `json:"latest_troubles,omitempty"`
}

// overview gathers the boards of all partitions.
func (a *App) overview() Overview {
	whole := a.board.status()
	o := Overview{
		Service: whole.Service, Version: whole.Version, Instance: whole.Instance, Role: lease.Standby,
		State: whole.State, LastError: whole.LastError, Partitions: a.config.Partitions, Led: []int{},
	}
	for i, part := range a.parts {
		status := part.board.status()
		o.Streams = append(o.Streams, status)
		o.Sent += status.Sent
		if status.Role == lease.Leader {
			o.Role = lease.Leader
			o.Led = append(o.Led, i)
		}
		// What ails one partition is what an operator must see.
		if o.LastError == "" {
			o.LastError = status.LastError
		}
		if whole.State == stateStandby && (o.State == stateStandby || status.State == stateHalted) {
			o.State = status.State
		}
	}
	return o
}

// every joins a check of this publisher with the same of all its partitions.
func (a *App) every(check func(*board) error) func() error {
	return func() error {
		err := check(a.board)
		for _, part := range a.parts {
			err = errors.Join(err, check(part.board))
		}
		return err
	}
}
