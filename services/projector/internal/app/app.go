// Package app puts the projector together: what it is made of, and in which order
// that starts and stops.
package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/sync/errgroup"

	"changerelay/services/projector/internal/admin"
	"changerelay/services/projector/internal/backoff"
	"changerelay/services/projector/internal/cli"
	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/rate"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/rebuild"
	"changerelay/services/projector/internal/servicebus"
	"changerelay/services/projector/internal/session"
	"changerelay/services/projector/internal/tracing"
	"changerelay/services/projector/internal/watch"
)

// App is a projector. Create it with New, run it once.
type App struct {
	cfg     config.Config
	version string
	log     zerolog.Logger
	redact  func(string) string
	started time.Time
	phase   atomic.Value // of type phase
	asking  atomic.Int64 // when sessions were first asked for, in Unix nanoseconds

	client       *mongo.Client
	store        *readmodel.Store
	collections  []string
	sessions     config.Acceptor
	views        []projection.View
	subscription *servicebus.Subscription
	process      *readmodel.Process
	waiting      *watch.Waiting
	dead         *watch.DeadWatch
	ledger       watch.LedgerWatch
	parked       watch.ParkedWatch
	halts        *delivery.Halts
	brake        *delivery.Brake
	handler      *delivery.Handler
	engine       *session.Engine
	metrics      *watch.Metrics
	emptied      watch.EmptiedWatch
	lacks        watch.LackWatch
	verified     watch.VerifyWatch
	completing   *rate.Meter
	admin        *admin.Server
	traces       *tracing.Provider // nil while traces are off
	mongo        session.Outage
	halted       seen // aggregates
	beats        session.Outage
	// declared are the projections of the configuration, and works tells by which
	// records of rebuilds the projector works.
	declared projection.Projections
	works    string
	// warned are the documents that were warned of: see checkPositions.
	warned map[string]bool
	// lookEvery is how often it is looked whether the projector still belongs here.
	lookEvery time.Duration
}

// New builds a projector and binds its admin port. It needs no server to be up. Its Run
// ends with a *ChangedError where the read database has records of rebuilds: see Serve.
func New(ctx context.Context, cfg config.Config, projections projection.Projections, version string, logs io.Writer) (*App, error) {
	return With(ctx, cfg, projections, nil, version, logs)
}

// With is New for a projector that works by records of rebuilds.
func With(ctx context.Context, cfg config.Config, declared projection.Projections, records rebuild.Records, version string, logs io.Writer) (*App, error) {
	projections, err := records.Versions(declared)
	if err != nil {
		return nil, err
	}
	level, err := zerolog.ParseLevel(cfg.LogLevel)
	if err != nil {
		return nil, fmt.Errorf("set log level: %w", err)
	}
	secrets := cfg.Redactor()
	troubles := admin.NewTroubles(secrets.Writer(logs), secrets.Text)
	a := &App{
		cfg:         cfg,
		version:     version,
		log:         zerolog.New(troubles).Level(level).With().Timestamp().Str("service", "projector").Str("instance", cfg.InstanceID).Logger(),
		redact:      secrets.Text,
		started:     time.Now(),
		collections: projections.Collections(),
		declared:    declared,
		works:       records.Signature(declared),
		metrics:     watch.NewMetrics(watch.NewProgress(projections, records.Filled(declared))),
		warned:      map[string]bool{},
		lookEvery:   10 * time.Second,
	}
	projections = projections.Telling(a.panicked)
	a.phase.Store(starting)
	if err := a.connect(); err != nil {
		return nil, err
	}
	a.store = readmodel.New(a.client, a.readModel(projections))
	a.halts = delivery.NewHalts(a.store.Halts)
	for _, p := range projections {
		// Which version readers see is not for a start to say.
		if _, versioned := projection.VersionOf(p); !versioned {
			a.views = append(a.views, projection.Views(p)...)
		}
	}
	a.brake = delivery.NewBrake(a.store.Halts, cfg.HaltLimit, cfg.HaltWindow, a.log)
	process := cfg.InstanceID + "-" + rand.Text()[:10]
	a.process = a.store.Process(process, cfg.InstanceID)
	a.process.Works = a.works
	a.process.Progress = func() []readmodel.Progress {
		return slices.Collect(maps.Values(a.metrics.Projections(a.engine)))
	}
	policed := cfg.Policed(projections)
	policed.Filled = records.Filled(declared)
	deps := delivery.Deps{
		Decider: records.Decider(projections, declared), Policed: policed, Store: a.store.Writes, Parking: a.store.Parking, Halts: a.halts, Observer: a.metrics, Log: a.log, CrashNotes: a.process, Brake: a.brake,
		Filling: rebuild.Filled(cfg.Group, records, declared, a.store.Writes),
		Records: &skipRecords{a.store.Skipped, policed.LeavesOut(), a.parked.Skipped},
	}
	if cfg.OnGap == config.GapWait {
		deps.Versions, deps.Parked = a.store.AggregateVersions, a.store.Parked
	}
	if a.traces, err = cfg.Traces(version, a.log); err != nil {
		return nil, errors.Join(err, a.client.Disconnect(ctx))
	}
	if a.traces != nil {
		deps.Tracer = a.traces.Messages(cfg.Topic, cfg.Subscription, a.redact)
	}
	a.handler = delivery.New(cfg.Delivery(process), deps)
	engine := cfg.Engine()
	engine.Paused = a.paused
	a.engine = session.New(engine, a.sessions, heard{a.handler, a.process}, a.log)
	a.completing = rate.New(a.engine.Counts().Completed.Load)
	a.waiting = &watch.Waiting{Count: a.subscription.SessionsWithMessages}
	a.dead = &watch.DeadWatch{Count: a.subscription.CountDeadLetters, Redact: a.redact, Log: a.log}
	a.parked.Log, a.emptied.Log, a.lacks.Log = a.log, a.log, a.log
	a.metrics.Watch(a.engine, a.store, a.handler, a.halts, a.waiting, a.brake, &a.parked)
	a.metrics.Registry.MustRegister(watch.BuildInfo(version), a.dead, &a.ledger, &a.emptied, &a.lacks, &a.verified)
	a.admin, err = admin.New(cfg.AdminAddr, admin.Source{
		Live:    map[string]func() error{"sessions": a.engine.Stalled},
		Ready:   map[string]func() error{"running": a.ready},
		Metrics: a.metrics.Registry,
		Status: func() any {
			status := a.Status()
			status.Troubles = troubles.Latest()
			return status
		},
		Sample:   a.sample,
		Handlers: map[string]http.Handler{"GET /wait": watch.NewWaiter(a.store, records.Current(declared))},
	})
	if err != nil {
		return nil, errors.Join(err, a.client.Disconnect(ctx))
	}
	return a, nil
}

// connect makes the clients. Neither connects before it is used.
func (a *App) connect() error {
	var err error
	a.client, err = mongo.Connect(options.Client().ApplyURI(a.cfg.MongoURI.Reveal()).
		SetAppName(readmodel.Application).
		SetTimeout(a.cfg.MongoTimeout).
		SetServerSelectionTimeout(min(a.cfg.MongoTimeout, 5*time.Second)).
		SetMaxPoolSize(uint64(a.cfg.MaxSessions + 4)))
	if err != nil {
		return errors.New("open the read database: " + a.redact(err.Error()))
	}
	a.sessions, a.subscription, err = a.cfg.Acceptor(a.log)
	return err
}

// panicked logs a panic of a projection's code; the aggregate is halted for it.
func (a *App) panicked(p *projection.PanicError) {
	a.log.Error().Str("projection", p.Projection).Str("aggregate_id", p.AggregateID).Str("event_id", p.EventID).Str("event_type", p.EventType).
		Str("panic", fmt.Sprint(p.Value)).Bytes("stack", p.Stack).Msg("a projection's code has panicked")
}

// AdminAddr is the address of the admin port.
func (a *App) AdminAddr() string { return a.admin.Addr() }

// Run works until ctx ends, then drains and closes everything within
// ShutdownTimeout.
func (a *App) Run(ctx context.Context) error {
	a.log.Info().Str("addr", a.admin.Addr()).Msg("admin listening")
	a.log.Info().Str("version", a.version).Str("topic", a.cfg.Topic).Str("subscription", a.cfg.Subscription).
		Str("database", a.cfg.Database).Strs("collections", a.collections).Msg("projector starting")

	// The admin port is the last to go, so that it can tell of the drain.
	group, ctx := errgroup.WithContext(ctx)
	outlive, end := context.WithCancel(context.WithoutCancel(ctx))
	group.Go(func() error { return a.admin.Run(outlive) })
	group.Go(func() error {
		a.completing.Run(outlive)
		return nil
	})
	group.Go(func() error { return a.metrics.Run(outlive) })
	group.Go(func() error {
		defer end()
		return errors.Join(a.work(ctx), a.close(ctx))
	})
	err := group.Wait()
	a.log.Info().Err(err).Msg("projector stopped")
	return err
}

// work waits for the read database, then holds sessions until ctx ends.
func (a *App) work(ctx context.Context) error {
	if err := a.awaitMongo(ctx); err != nil {
		if lasts(err) {
			return err
		}
		// Asked to stop before there was anything to do.
		return nil
	}
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	a.asking.Store(time.Now().UnixNano())
	a.phase.Store(running)
	a.log.Info().Int("max_sessions", a.cfg.MaxSessions).Msg("taking sessions")
	stop := context.AfterFunc(ctx, func() {
		a.phase.Store(draining)
		a.log.Info().Int64("sessions", a.engine.Counts().Held.Load()).Msg("draining")
	})
	defer stop()

	// The list of halts is needed until the last session is given back, and only
	// then has the process stopped as asked.
	lists, end := context.WithCancel(context.WithoutCancel(ctx))
	var group errgroup.Group
	group.Go(func() error { return a.halts.Run(lists) })
	group.Go(func() error { return a.brake.Run(lists) })
	group.Go(func() error {
		defer leave()
		return a.keepPlace(ctx)
	})
	group.Go(func() error {
		defer leave()
		return a.keepRecords(ctx)
	})
	group.Go(func() error { return a.waiting.Run(ctx) })
	group.Go(func() error { return a.dead.Run(ctx) })
	group.Go(func() error { return a.parked.Run(ctx, a.store) })
	group.Go(func() error {
		if err := a.process.Run(lists, a.belongs, a.beaten); err != nil {
			a.log.Info().Err(err).Msg("the others may take this process for dead")
		}
		return nil
	})
	group.Go(func() error {
		defer end()
		return a.engine.Run(ctx)
	})
	return group.Wait()
}

// awaitMongo waits until the read database answers and is set up.
func (a *App) awaitMongo(ctx context.Context) error {
	wait := backoff.Backoff{Initial: 100 * time.Millisecond, Max: 5 * time.Second}
	for {
		err := a.setUp(ctx)
		if err == nil {
			if lasted, ended := a.mongo.Recovered(); ended {
				a.log.Info().Dur("lasted_ms", lasted).Msg("the read database answers")
			}
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if lasts(err) {
			return err
		}
		if a.mongo.Failed(err) {
			a.log.Warn().Err(err).Msg("waiting for the read database")
		}
		if err := wait.Wait(ctx); err != nil {
			return err
		}
	}
}

// lasts tells that a projector must not start, or go on, however long it waits.
func lasts(err error) bool {
	if _, changed := errors.AsType[*ChangedError](err); changed || errors.Is(err, rebuild.ErrTaken) {
		return true
	}
	return errors.Is(err, readmodel.ErrShardKey) || errors.Is(err, readmodel.ErrElsewhere) || errors.Is(err, readmodel.ErrReshaped) || errors.Is(err, readmodel.ErrPositionsLost)
}

func (a *App) setUp(ctx context.Context) error {
	if err := a.store.Ping(ctx); err != nil {
		return err
	}
	if err := a.checkRecords(ctx); err != nil {
		return err
	}
	checked, err := a.store.CheckShardKeys(ctx, a.collections)
	switch {
	case err != nil:
		return err
	case !checked:
		a.log.Debug().Msg("the role may not read how collections are sharded")
	}
	if err := a.store.Claim(ctx, a.collections, a.cfg.InstanceID); err != nil {
		return err
	}
	if err := a.checkPositions(ctx); err != nil {
		return err
	}
	if err := a.emptied.Look(ctx, a.store); err != nil {
		return err
	}
	allowed, err := a.store.EnsureIndexes(ctx, a.collections, a.cfg.TombstoneTTL)
	switch {
	case errors.Is(err, readmodel.ErrOtherExpiry):
		// The index does its work, if at another time: no reason to stop.
		a.log.Warn().Err(err).Msg("TOMBSTONE_TTL is not in effect")
	case err != nil:
		return err
	case !allowed:
		a.log.Info().Msg("the role may not create indexes; run projector setup with one that may, or tombstones stay")
	}
	presented, err := a.store.EnsureViews(ctx, a.views)
	switch {
	case err != nil:
		return err
	case !presented:
		a.log.Info().Msg("the role may not create views; run projector setup with one that may, or readers see what is deleted")
	}
	if err := a.store.Deploy(ctx, a.cfg.InstanceID); err != nil {
		return err
	}
	// Before the first session: a brake that is on keeps it away, and after a death attempts must be noted.
	if err := a.brake.Look(ctx); err != nil {
		return err
	}
	if err := a.process.Beat(ctx, true); err != nil {
		return err
	}
	// Whoever has changed the records since they were checked may not have seen the beat
	// when looking for processes that work by others.
	return a.checkRecords(ctx)
}

// close closes the clients after the drain, in its own time.
func (a *App) close(ctx context.Context) error {
	a.phase.Store(stopped)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.cfg.CloseTime())
	defer cancel()
	var flush sync.WaitGroup
	flush.Go(func() { a.flushTraces(ctx) })
	defer flush.Wait()
	err := errors.Join(a.sessions.Close(ctx), a.subscription.Close(ctx))
	if e := a.client.Disconnect(ctx); e != nil {
		err = errors.Join(err, fmt.Errorf("close the read database: %w", e))
	}
	return err
}

// Serve runs the projector until ctx ends. Where a rebuild begins, or goes on, it drains
// and begins anew with what the records say.
func Serve(ctx context.Context, version string, stderr io.Writer) error {
	cfg, projections, err := config.Load(ctx)
	if err != nil {
		return cli.Misconfigured(err)
	}
	// As long as the service runs.
	defer runtime.KeepAlive(cfg.PaceCollector())
	return Keep(ctx, func(records rebuild.Records) (*App, error) {
		return With(ctx, cfg, projections, records, version, stderr)
	})
}
