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
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/redact"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/servicebus"
	"changerelay/services/publisher/internal/tracing"
)

const (
	// attemptTimeout bounds one call to a database, outside the loops.
	attemptTimeout = 5 * time.Second
	// closeTimeout bounds closing the clients.
	closeTimeout = 2 * time.Second
	// overdue is how long a leader may be beyond its lease before liveness fails.
	overdue = time.Minute
)

// errNotStopped is returned when a stop takes longer than SHUTDOWN_TIMEOUT.
var errNotStopped = errors.New("not stopped within SHUTDOWN_TIMEOUT")

// App is one publisher process.
type App struct {
	config  Config
	log     zerolog.Logger
	secrets *redact.Redactor

	source   *mongo.Client
	stateful *mongo.Client
	state    *mongostate.Database
	dial     servicebus.Dial
	elector  *lease.Elector
	holder   lease.Holder
	counters *relay.Counters
	board    *board
	registry *prometheus.Registry
	admin    *admin.Server
	closing  *sync.WaitGroup   // connections of terms that have ended
	traces   *tracing.Provider // nil while traces are off
	tracer   relay.Tracer      // nil while traces are off

	parts    []*App // where the stream is split: a publisher for each partition
	index    int    // of a partition: which one
	parkedAs string // name of the stream among parked changes: that of the whole

	// wholeLease is LEASE_NAME, whatever partition this is.
	wholeLease string
	// These belong to the leading loop: the record of the stream as of the last
	// claim, when an operator had last decided, and the term that was confirmed then,
	// or claimed since: a halt is none of a later one.
	record    checkpoint.Record
	decidedAt time.Time
	judged    int64
	made      made // the mark of the stream; while it publishes, of markAside
	// learning guards the source in the record.
	learning sync.Mutex
	knows    knowledge
}

// New builds a publisher and binds its admin port. It makes no round trip. Logs
// go to logTo, without the configuration's secrets.
func New(config Config, version string, logTo io.Writer) (*App, error) {
	secrets := config.redactor()
	troubles := admin.NewTroubles(secrets.Writer(logTo), secrets.Text)
	a := &App{
		config:  config,
		secrets: secrets,
		log:     logger(config, troubles),
		closing: &sync.WaitGroup{},
		// Parked changes are for an operator, who need not know of partitions.
		parkedAs:   config.StreamName,
		wholeLease: config.LeaseName,
	}
	if err := a.connect(); err != nil {
		return nil, err
	}
	if err := a.trace(version); err != nil {
		return nil, err
	}
	a.state = mongostate.New(a.stateful, config.StateDatabase)
	a.elect()

	a.registry = prometheus.NewRegistry()
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	latency := newSendSeconds()
	a.counters = relay.NewCounters(latency)
	a.board = newBoard(config, version, a.holder, a.elector, a.counters, secrets)
	a.registry.MustRegister(latency, buildInfo(version))
	status := func() any {
		status := a.board.status()
		status.Troubles = troubles.Latest()
		return status
	}
	if a.parts = a.split(a.registry, version, latency); a.parts == nil {
		a.registry.MustRegister(metrics{a.board})
	} else {
		status = func() any {
			overview := a.overview()
			overview.Troubles = troubles.Latest()
			return overview
		}
	}
	server, err := admin.New(config.AdminAddr, admin.Source{
		Live:    map[string]func() error{"lease": a.every((*board).live)},
		Ready:   map[string]func() error{"publishing": a.every((*board).ready)},
		Metrics: a.registry,
		Status:  status,
	})
	a.admin = server
	return a, err
}

// logger writes times in milliseconds: whole seconds do not tell the story of a
// handover.
func logger(config Config, to io.Writer) zerolog.Logger {
	stamp := zerolog.HookFunc(func(e *zerolog.Event, _ zerolog.Level, _ string) {
		e.Str(zerolog.TimestampFieldName, time.Now().UTC().Format("2006-01-02T15:04:05.000Z"))
	})
	return zerolog.New(to).Level(config.LogLevel).Hook(stamp).With().
		Str("service", "publisher").Str("instance", config.InstanceID).Logger()
}

func (a *App) connect() (err error) {
	if a.dial, err = a.config.dial(); err != nil {
		return fmt.Errorf("prepare Service Bus: %w", err)
	}
	if a.source, err = connectMongo(a.config.MongoURI); err != nil {
		return fmt.Errorf("prepare the source: %w", err)
	}
	a.stateful = a.source
	if a.config.StateMongoURI != a.config.MongoURI {
		if a.stateful, err = connectMongo(a.config.StateMongoURI); err != nil {
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
	for _, one := range append([]*App{a}, a.parts...) {
		group.Go(func() error {
			one.board.sending.run(serving)
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
	a.board.draining()
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
	defer a.board.stopped()
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
		one.look(ctx) // before it can lead
		watch.Go(func() { one.remember(watching) })
	}
	if a.parts != nil {
		return a.publishParts(ctx)
	}
	return a.elector.Run(ctx, a.lead)
}

// streams are the publishers of the stream: one for each partition.
func (a *App) streams() []*App {
	if a.parts != nil {
		return a.parts
	}
	return []*App{a}
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
		a.board.notFound(err)
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
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if err := a.state.EnsureIndexes(attempt); err != nil {
		a.log.Info().Err(err).Msg("indexes of the state database not created, going on without")
	}
}

func (a *App) close(ctx context.Context) {
	defer a.flushTraces(ctx)
	a.closing.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
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
