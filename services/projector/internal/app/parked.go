package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/settings"
)

// readConfig is what commands that work on the read database need. They take
// the same variables as the service.
type readConfig struct {
	MongoURI         settings.Secret `envconfig:"READMODEL_MONGODB_URI" required:"true" desc:"MongoDB connection string of the read models"`
	Database         string          `envconfig:"READMODEL_DATABASE" required:"true" desc:"database of the read models"`
	MongoTimeout     time.Duration   `envconfig:"READMODEL_TIMEOUT" default:"15s" desc:"longest time for one MongoDB operation"`
	Group            string          `envconfig:"READMODEL_GROUP" desc:"group of the projectors that parked the messages"`
	Subscription     string          `envconfig:"SERVICEBUS_SUBSCRIPTION" desc:"subscription that the messages came from"`
	Projections      string          `envconfig:"PROJECTIONS" desc:"YAML file of projections"`
	LatestCollection string          `envconfig:"LATEST_COLLECTION" default:"latest" desc:"collection of the latest data, where PROJECTIONS is not set"`
	OnGap            string          `envconfig:"ON_GAP" default:"report" desc:"report or wait, as for the service"`
}

// load reads the environment and the projections. The error holds every problem
// there is.
func (c *readConfig) load() (projection.Projections, error) {
	var projections projection.Projections
	err := settings.Load(c, func() (problems []*settings.Problem) {
		var err error
		if projections, err = c.service().projections(); err != nil {
			problems = append(problems, settings.Problemf("PROJECTIONS", "%s", err))
		}
		if problem := gapProblem(c.OnGap); problem != nil {
			problems = append(problems, problem)
		}
		return problems
	})
	return projections, err
}

// service is the configuration as the service has it.
func (c *readConfig) service() *Config {
	return &Config{
		MongoURI: c.MongoURI, Database: c.Database, MongoTimeout: c.MongoTimeout, Group: c.Group, Subscription: c.Subscription,
		Projections: c.Projections, LatestCollection: c.LatestCollection,
	}
}

// shelf is a command's way to the parked messages.
type shelf struct {
	store       *readmodel.Store
	projections projection.Projections
	versions    delivery.Versions // nil where gaps do not matter
	lines       *json.Encoder
}

// onShelf runs a command on the parked messages.
func onShelf(ctx context.Context, stdout, stderr io.Writer, command func(ctx context.Context, s *shelf) error) error {
	var cfg readConfig
	projections, err := cfg.load()
	if err != nil {
		settings.Report(stderr, "projector", err)
		return ErrUsage
	}
	return onReadDatabase(ctx, cfg.service(), projections, func(store *readmodel.Store) error {
		s := &shelf{store: store, projections: projections, lines: json.NewEncoder(stdout)}
		if cfg.OnGap == gapWait {
			s.versions = store
		}
		return command(ctx, s)
	})
}

// list prints the parked messages, of one aggregate or all, one a line.
func (s *shelf) list(ctx context.Context, aggregate string) error {
	return s.store.Parked(ctx, aggregate, func(p readmodel.ParkedMessage) error { return s.lines.Encode(p) })
}

// show prints an aggregate's parked messages whole.
func (s *shelf) show(ctx context.Context, aggregate string) error {
	return s.store.Parked(ctx, aggregate, func(p readmodel.ParkedMessage) error {
		return s.lines.Encode(struct {
			readmodel.ParkedMessage
			Message shownMessage `json:"message"`
		}{p, show(p.Message)})
	})
}

// errHalted makes a redrive's exit status tell that aggregates are still halted.
var errHalted = errors.New("aggregates are still halted")

// redrive applies the parked messages of an aggregate, or of all where it is "".
func (s *shelf) redrive(ctx context.Context, aggregate string, acceptGaps bool) error {
	gaps := delivery.Gaps{Versions: s.versions, Accept: acceptGaps}
	aggregates := []string{aggregate}
	if aggregate == "" {
		var err error
		if aggregates, err = s.store.List(ctx, 1<<30); err != nil {
			return err
		}
	}
	halted := 0
	for _, aggregate := range aggregates {
		done, err := delivery.Redrive(ctx, s.projections, s.store, s.store, gaps, aggregate)
		if printErr := s.lines.Encode(done); err == nil {
			err = printErr
		}
		if err != nil {
			return err
		}
		if !done.Lifted {
			halted++
		}
	}
	if halted > 0 {
		return fmt.Errorf("%w: %d", errHalted, halted)
	}
	return nil
}

// errNotParked tells that there is nothing to discard.
var errNotParked = errors.New("no such message is parked")

// discard removes an aggregate's parked message by its event, or all of them
// where event is "", and prints what it removed. The halt stays until a redrive.
func (s *shelf) discard(ctx context.Context, aggregate, event string) error {
	removed := 0
	err := s.store.Parked(ctx, aggregate, func(p readmodel.ParkedMessage) error {
		if event != "" && p.EventID != event {
			return nil
		}
		there, err := s.store.Unpark(ctx, &contract.Event{AggregateID: p.AggregateID, Sequence: p.Sequence, ID: p.EventID})
		if err != nil || !there {
			return err
		}
		removed++
		return s.lines.Encode(p)
	})
	if err == nil && removed == 0 {
		err = errNotParked
	}
	return err
}
