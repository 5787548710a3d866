package command

import (
	"context"
	"fmt"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/partition"
	"changerelay/services/publisher/internal/stream"
)

const (
	// passTime bounds how long a command waits for a leader to pass changes: longer
	// than one takes to save where it stands.
	passTime = 10 * time.Second
	// passInterval is the time between looks whether it has.
	passInterval = 100 * time.Millisecond
)

// followed is a stream of which a command waits until it has passed changes.
type followed struct {
	config config.Config
	state  *mongostate.Database
	until  time.Time
}

// passes returns an error where the partition that carries a change's aggregate has not
// passed the change: earlier ones of the aggregate may not be sent yet. It waits while
// somebody leads that partition, who may be about to.
func (f *followed) passes(ctx context.Context, change mongostate.ParkedChange) error {
	index := partition.Of(change.AggregateID, f.config.Partitions)
	name := mongostate.PartitionNames(f.config.StreamName, f.config.Partitions)[index]
	leases := f.state.Lease(mongostate.PartitionNames(f.config.LeaseName, f.config.Partitions)[index])
	for {
		kept, _, err := stream.ReadCheckpoint(ctx, f.state, name)
		if err != nil || kept.Passed(contract.Position(change.Position)) {
			return err
		}
		held, err := leases.Read(ctx)
		if err != nil {
			return err
		}
		if !held.Live() || time.Now().After(f.until) {
			return fmt.Errorf("checkpoint %q is before it, so earlier changes of its aggregate may not be sent yet: "+
				"start the publishers with these settings, which send it in its turn; "+
				"once publisher checkpoint show is past its position, %s, replay it, which only repeats it then", name, change.Position)
		}
		if err := pause(ctx, passInterval); err != nil {
			return err
		}
	}
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
