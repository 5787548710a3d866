// Package app puts the publisher together and runs it.
//
// The life of a process:
//
//	starting ─▶ standing by ─▶ publishing ⇄ blocked, halted ─▶ draining ─▶ stopped
//	                ▲               │
//	                └─ lease lost ──┘
//
// The order of a stop, each step bounded in time: end the intake, finish what
// is in flight, save the checkpoint a last time, release the lease, close the
// clients.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"golang.org/x/sync/errgroup"

	"changerelay/services/publisher/internal/admin"
	"changerelay/services/publisher/internal/backoff"
	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/redact"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/servicebus"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/stream"
	"changerelay/services/publisher/internal/tracing"
)

// errNotStopped is returned when a stop takes longer than SHUTDOWN_TIMEOUT.
var errNotStopped = errors.New("not stopped within SHUTDOWN_TIMEOUT")

// App is one publisher process.
type App struct {
	config  config.Config
	log     zerolog.Logger
	secrets *redact.Redactor

	source, stateful *mongo.Client
	dial             servicebus.Dial
	traces           *tracing.Provider // nil while traces are off
	registry         *prometheus.Registry
	admin            *admin.Server
	closing          sync.WaitGroup // connections of terms that have ended

	// whole is the stream; where it is split it shows the process alone, and parts
	// are what publishes.
	whole *stream.Stream
	parts []*stream.Stream
	state *mongostate.Database
}

// New builds a publisher and binds its admin port. It makes no round trip. Logs
// go to logTo, without the configuration's secrets.
func New(cfg config.Config, version string, logTo io.Writer) (*App, error) {
	secrets := cfg.Redactor()
	troubles := admin.NewTroubles(secrets.Writer(logTo), secrets.Text)
	a := &App{config: cfg, secrets: secrets, log: logger(cfg, troubles), registry: prometheus.NewRegistry()}
	if err := a.connect(); err != nil {
		return nil, err
	}
	var err error
	if a.traces, err = cfg.Traces(version, a.log); err != nil {
		return nil, err
	}
	a.state = mongostate.New(a.stateful, cfg.StateDatabase)
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	latency := status.NewSendSeconds()
	a.registry.MustRegister(latency, status.BuildInfo(version))
	a.whole = stream.New(cfg, a.shared(version, latency), a.log)
	shown := func() any {
		status := a.whole.Tracker().Status()
		status.Troubles = troubles.Latest()
		return status
	}
	if a.parts = a.split(); a.parts == nil {
		a.registry.MustRegister(status.Collector(a.whole.Tracker()))
	} else {
		shown = func() any {
			overview := a.overview()
			overview.Troubles = troubles.Latest()
			return overview
		}
	}
	server, err := admin.New(cfg.AdminAddr, admin.Source{
		Live:    map[string]func() error{"lease": a.every((*status.Tracker).Live)},
		Ready:   map[string]func() error{"publishing": a.every((*status.Tracker).Ready)},
		Metrics: a.registry,
		Status:  shown,
		Sample:  a.sample,
	})
	a.admin = server
	return a, err
}

// shared is what the streams have in common.
func (a *App) shared(version string, latency relay.Observer) stream.Shared {
	shared := stream.Shared{Secrets: a.secrets, Source: a.source, State: a.state, Dial: a.dial, Closing: &a.closing, Version: version, Latency: latency}
	if a.traces != nil {
		shared.Tracer = a.traces.Changes(a.config.ServiceBusTopic, a.secrets.Text)
	}
	return shared
}

// logger writes times in milliseconds: whole seconds do not tell the story of a
// handover.
func logger(cfg config.Config, to io.Writer) zerolog.Logger {
	stamp := zerolog.HookFunc(func(e *zerolog.Event, _ zerolog.Level, _ string) {
		e.Str(zerolog.TimestampFieldName, time.Now().UTC().Format("2006-01-02T15:04:05.000Z"))
	})
	return zerolog.New(to).Level(cfg.LogLevel).Hook(stamp).With().
		Str("service", "publisher").Str("instance", cfg.InstanceID).Logger()
}

func (a *App) connect() (err error) {
	if a.dial, err = a.config.Dial(); err != nil {
		return fmt.Errorf("prepare Service Bus: %w", err)
	}
	if a.source, err = config.ConnectMongo(a.config.MongoURI); err != nil {
		return fmt.Errorf("prepare the source: %w", err)
	}
	a.stateful = a.source
	if a.config.StateMongoURI != a.config.MongoURI {
		if a.stateful, err = config.ConnectMongo(a.config.StateMongoURI); err != nil {
			return fmt.Errorf("prepare the state database: %w", err)
		}
	}
	return nil
}

// AdminAddr is the admin port's address in use.
func (a *App) AdminAddr() string { return a.admin.Addr() }

// Run publishes until ctx ends; then it stops in order and returns nil. It
// returns early with an error that an operator must see.
func (a *App) Run(ctx context.Context) error {
	a.log.Info().Str("addr", a.AdminAddr()).Msg("admin listening")
	// The admin port outlives the publishing, so that a stop can be watched.
	group, groupCtx := errgroup.WithContext(context.WithoutCancel(ctx))
	serving, stopServing := context.WithCancel(groupCtx)
	group.Go(func() error { return a.admin.Run(serving) })
	for _, one := range append([]*stream.Stream{a.whole}, a.parts...) {
		group.Go(func() error {
			one.Tracker().Run(serving)
			return nil
		})
	}
	group.Go(func() error {
		defer stopServing()
		return a.publishWithin(ctx)
	})
	err := group.Wait()
	if err == nil {
		a.log.Info().Msg("stopped")
	}
	return err
}

// publishWithin publishes, and gives up on a stop that takes too long.
func (a *App) publishWithin(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- a.publish(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	a.whole.Tracker().Draining()
	timer := time.NewTimer(a.config.ShutdownTimeout)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return errNotStopped // the process ends, and with it what did not stop
	}
}

func (a *App) publish(ctx context.Context) error {
	defer a.whole.Tracker().Stopped()
	defer a.close(ctx)
	if err := a.awaitSource(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	if err := a.checkStream(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	if err := a.checkPartitions(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	a.tidy(ctx)
	watching, endWatch := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer endWatch()
	for _, one := range a.streams() {
		one.Look(ctx) // before it can lead
		watch.Go(func() { one.Remember(watching) })
	}
	if a.parts != nil {
		return a.publishParts(ctx)
	}
	return a.whole.Run(ctx)
}

// streams are what publishes: the stream, or its partitions.
func (a *App) streams() []*stream.Stream {
	if a.parts != nil {
		return a.parts
	}
	return []*stream.Stream{a.whole}
}

// awaitSource waits until the source answers. It returns an error when it is
// of a kind that has no change streams.
func (a *App) awaitSource(ctx context.Context) error {
	retry := backoff.Backoff{Initial: 250 * time.Millisecond, Max: 5 * time.Second}
	for first := true; ; first = false {
		err := changestream.Probe(ctx, a.source)
		if halt, ok := errors.AsType[*changestream.HaltError](err); ok {
			return halt
		}
		if err == nil || ctx.Err() != nil {
			return nil
		}
		a.whole.Tracker().NotFound(err)
		if first {
			a.log.Warn().Err(err).Msg("source not reachable, waiting for it")
		}
		if retry.Wait(ctx) != nil {
			return nil
		}
	}
}

// tidy creates the indexes that keep the state database small. The role may
// well not be allowed to: a deploy-time role can do it.
func (a *App) tidy(ctx context.Context) {
	attempt, cancel := context.WithTimeout(ctx, config.AttemptTimeout)
	defer cancel()
	if err := a.state.EnsureIndexes(attempt); err != nil {
		a.log.Info().Err(err).Msg("indexes of the state database not created, going on without")
	}
}

func (a *App) close(ctx context.Context) {
	defer a.flushTraces(ctx)
	a.closing.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), config.CloseTimeout)
	defer cancel()
	clients := []*mongo.Client{a.source}
	if a.stateful != a.source {
		clients = append(clients, a.stateful)
	}
	for _, client := range clients {
		if err := client.Disconnect(ctx); err != nil {
			a.log.Debug().Err(err).Msg("client not closed in order")
		}
	}
}

// Publish runs the publisher until ctx ends. Its error has no secrets.
func Publish(ctx context.Context, cfg config.Config, version string, stderr io.Writer) error {
	cfg.PaceCollector()
	publisher, err := New(cfg, version, stderr)
	if err != nil {
		return err
	}
	if err := publisher.Run(ctx); err != nil {
		return errors.New(publisher.secrets.Text(err.Error()))
	}
	return nil
}

// checkStream asks the source for the stream until it answers, so that a filter or
// an image option that the server does not take is said at the start. Who may not
// read the stream waits here, and leaves the lead to others.
func (a *App) checkStream(ctx context.Context) error {
	retry := backoff.Backoff{Initial: 250 * time.Millisecond, Max: 5 * time.Second}
	for first := true; ; first = false {
		err := a.config.Stream(a.source).Check(ctx)
		halt, ok := errors.AsType[*changestream.HaltError](err)
		if ok && (halt.Reason == changestream.Refused || halt.Reason == changestream.NotReplicated) {
			return fmt.Errorf("open the change stream: %w", halt)
		}
		if err == nil || ctx.Err() != nil {
			a.whole.Tracker().Found()
			return nil
		}
		a.whole.Tracker().NotFound(err)
		if first {
			a.log.Warn().Err(err).Msg("change stream not opened, trying again")
		}
		if retry.Wait(ctx) != nil {
			return nil
		}
	}
}
