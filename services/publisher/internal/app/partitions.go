package app

import (
	"context"
	"errors"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"changerelay/services/publisher/internal/admin"
	"changerelay/services/publisher/internal/backoff"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/partition"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/stream"
)

// split makes a stream of each partition, whose metrics say which one it is.
func (a *App) split() []*stream.Stream {
	if !a.config.Partitioned() {
		return nil
	}
	parts := make([]*stream.Stream, a.config.Partitions)
	for i := range parts {
		parts[i] = a.whole.Partition(i)
		prometheus.WrapRegistererWith(prometheus.Labels{"partition": strconv.Itoa(i)}, a.registry).MustRegister(status.Collector(parts[i].Tracker()))
	}
	return parts
}

// publishParts publishes this instance's share of the partitions.
func (a *App) publishParts(ctx context.Context) error {
	membership := a.state.Membership(a.config.LeaseName, mongostate.PartitionNames(a.config.LeaseName, a.config.Partitions))
	return partition.New(partition.Config{
		Member:   a.config.InstanceID,
		Announce: a.config.LeaseHeartbeat,
		Present:  a.config.LeaseRenewDeadline,
		Look:     a.config.LeaseHeartbeat / 5,
		Aside:    func(ctx context.Context) []int { return stream.Aside(ctx, a.parts) },
	}, membership, func(ctx context.Context, i int) error { return a.parts[i].Run(ctx) }, a.log).Run(ctx)
}

// checkPartitions refuses to start beside checkpoints of another number of
// partitions. It waits for the state database.
func (a *App) checkPartitions(ctx context.Context) error {
	retry := backoff.Backoff{Initial: config.AttemptTimeout / 20, Max: config.AttemptTimeout}
	for {
		attempt, cancel := context.WithTimeout(ctx, config.AttemptTimeout)
		err := a.state.CheckPartitions(attempt, a.config.StreamName, a.config.Partitions)
		cancel()
		switch {
		case errors.Is(err, mongostate.ErrPartitioned):
			return err
		case err == nil, ctx.Err() != nil:
			return nil
		}
		a.whole.Tracker().Failed(err)
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
	Streams []status.Status `json:"streams"`
	// Troubles are the latest warnings and errors of the log.
	Troubles []admin.Trouble `json:"latest_troubles,omitempty"`
}

// overview gathers the boards of all partitions.
func (a *App) overview() Overview {
	whole := a.whole.Tracker().Status()
	o := Overview{
		Service: whole.Service, Version: whole.Version, Instance: whole.Instance, Role: lease.Standby,
		State: whole.State, LastError: whole.LastError, Partitions: a.config.Partitions, Led: []int{},
	}
	for i, part := range a.parts {
		shown := part.Tracker().Status()
		o.Streams = append(o.Streams, shown)
		o.Sent += shown.Sent
		if shown.Role == lease.Leader {
			o.Role = lease.Leader
			o.Led = append(o.Led, i)
		}
		// What ails one partition is what an operator must see.
		if o.LastError == "" {
			o.LastError = shown.LastError
		}
		if whole.State == status.StateStandby && (o.State == status.StateStandby || shown.State == status.StateHalted) {
			o.State = shown.State
		}
	}
	return o
}

// sample is what the page draws: all partitions together, and the one furthest behind.
func (a *App) sample() admin.Sample {
	streams := a.parts
	if len(streams) == 0 {
		streams = []*stream.Stream{a.whole}
	}
	var all admin.Sample
	for _, one := range streams {
		s := one.Tracker().Status()
		all.PerSecond += s.SentPerSecond
		all.InFlight += s.InFlight
		if s.LagSeconds != nil {
			all.BehindSeconds = max(all.BehindSeconds, *s.LagSeconds)
		}
	}
	return all
}

// every joins a check of this publisher with the same of all its partitions.
func (a *App) every(check func(*status.Tracker) error) func() error {
	return func() error {
		err := check(a.whole.Tracker())
		for _, part := range a.parts {
			err = errors.Join(err, check(part.Tracker()))
		}
		return err
	}
}
