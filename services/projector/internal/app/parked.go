package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

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
	Subscription     string          `envconfig:"SERVICEBUS_SUBSCRIPTION" desc:"subscription that the messages came from"`
	Projections      string          `envconfig:"PROJECTIONS" desc:"YAML file of projections"`
	LatestCollection string          `envconfig:"LATEST_COLLECTION" default:"latest" desc:"collection of the latest data, where PROJECTIONS is not set"`
}

// shelf is a command's way to the parked messages.
type shelf struct {
	store       *readmodel.Store
	projections projection.Projections
	lines       *json.Encoder
}

// onShelf runs a command on the parked messages.
func onShelf(ctx context.Context, stdout, stderr io.Writer, command func(ctx context.Context, s *shelf) error) error {
	var cfg readConfig
	s := &shelf{lines: json.NewEncoder(stdout)}
	err := settings.Load(&cfg, func() (problems []*settings.Problem) {
		var err error
		service := Config{Projections: cfg.Projections, LatestCollection: cfg.LatestCollection}
		s.projections, err = service.projections()
		if err != nil {
			problems = append(problems, settings.Problemf("PROJECTIONS", "%s", err))
		}
		return problems
	})
	if err != nil {
		settings.Report(stderr, "projector", err)
		return ErrUsage
	}
	redact := newRedactor(&Config{MongoURI: cfg.MongoURI}).text
	client, err := mongo.Connect(options.Client().ApplyURI(cfg.MongoURI.Reveal()).SetTimeout(cfg.MongoTimeout))
	if err != nil {
		return errors.New("open the read database: " + redact(err.Error()))
	}
	s.store = readmodel.New(client, cfg.Database, cfg.Subscription)
	if err = command(ctx, s); err != nil {
		err = errors.New(redact(err.Error()))
	}
	return errors.Join(err, client.Disconnect(context.WithoutCancel(ctx)))
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
func (s *shelf) redrive(ctx context.Context, aggregate string) error {
	aggregates := []string{aggregate}
	if aggregate == "" {
		var err error
		if aggregates, err = s.store.List(ctx, 1<<30); err != nil {
			return err
		}
	}
	halted := 0
	for _, aggregate := range aggregates {
		done, err := delivery.Redrive(ctx, s.projections, s.store, s.store, aggregate)
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
