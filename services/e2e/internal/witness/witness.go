package witness

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/cluster"
	"changerelay/services/e2e/internal/observe"
	"changerelay/services/e2e/internal/poll"
	"changerelay/services/e2e/internal/source"
	"changerelay/services/e2e/internal/watch"
)

// Collections of the publishers' state database.
const (
	checkpoints = "resume_tokens"
	leases      = "leader_leases"
)

// Projection says which read model the projectors keep, and so how it is
// computed anew.
type Projection struct {
	// Collection is where its documents are.
	Collection string
	// Counts says that it is what orders.yaml declares, whose documents count their
	// events in a field of their own.
	Counts bool
}

// The read models that can be judged.
var (
	// Orders is what orders.yaml declares.
	Orders = Projection{Collection: "orders", Counts: true}
	// Latest is the projectors' default.
	Latest = Projection{Collection: "latest"}
)

// Witness watches one relay. Its methods are safe for concurrent use, where
// they do not say otherwise.
type Witness struct {
	// Client is the witness's own connection to MongoDB.
	Client *mongo.Client
	// Ledger keeps count; whoever writes tells it.
	Ledger *Ledger
	// Observer sees the topic.
	Observer *observe.Observer
	// Applies sees the read model's writes.
	Applies *watch.Applies
	// Checkpoints sees the checkpoint's writes.
	Checkpoints *watch.Checkpoints
	// Leases sees the lease's writes.
	Leases *watch.Leases

	names      cluster.Names
	endpoints  cluster.Endpoints
	projection Projection
	// archived is what Archive took out of the source.
	archived *record
}

// Open connects and begins to watch. What happened before is not seen.
func Open(ctx context.Context, endpoints cluster.Endpoints, names cluster.Names, projection Projection) (*Witness, error) {
	return open(ctx, endpoints, names, projection, observe.Taking)
}

// OpenSettling is Open for servers whose connections break: it misses no message
// for that, and costs more.
func OpenSettling(ctx context.Context, endpoints cluster.Endpoints, names cluster.Names, projection Projection) (*Witness, error) {
	return open(ctx, endpoints, names, projection, observe.Settling)
}

func open(ctx context.Context, endpoints cluster.Endpoints, names cluster.Names, projection Projection, mode observe.Mode) (*Witness, error) {
	client, err := mongo.Connect(options.Client().ApplyURI(endpoints.MongoURI))
	if err != nil {
		return nil, fmt.Errorf("connect to MongoDB: %w", err)
	}
	w := &Witness{Client: client, Ledger: NewLedger(), names: names, endpoints: endpoints, projection: projection, archived: newRecord(projection)}
	if err := w.open(ctx, mode); err != nil {
		w.Close(ctx)
		return nil, err
	}
	return w, nil
}

func (w *Witness) open(ctx context.Context, mode observe.Mode) (err error) {
	if w.Observer, err = observe.New(w.endpoints.ServiceBus, w.names.Topic, w.names.Observer, w.names.Source(), mode); err != nil {
		return err
	}
	model := w.Client.Database(w.names.ReadModelDatabase).Collection(w.projection.Collection)
	if w.Applies, err = watch.OpenApplies(ctx, model, w.Ledger.SawApply); err != nil {
		return err
	}
	if w.Checkpoints, err = watch.OpenCheckpoints(ctx, w.State().Collection(checkpoints)); err != nil {
		return err
	}
	w.Leases, err = watch.OpenLeases(ctx, w.State().Collection(leases))
	return err
}

// Run watches until ctx ends, which is no error.
func (w *Witness) Run(ctx context.Context) error {
	// Clients cut their waits short when a deadline comes near, and some fail.
	endless, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	g, ctx := errgroup.WithContext(endless)
	g.Go(func() error { return w.Observer.Run(ctx) })
	g.Go(func() error { return w.Applies.Run(ctx) })
	g.Go(func() error { return w.Checkpoints.Run(ctx) })
	g.Go(func() error { return w.Leases.Run(ctx) })
	return g.Wait()
}

// closeTimeout bounds the closing of connections.
const closeTimeout = 5 * time.Second

// Close ends the connection to MongoDB. Call it after Run.
func (w *Witness) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	_ = w.Client.Disconnect(ctx)
}

// State is the publishers' state database.
func (w *Witness) State() *mongo.Database { return w.Client.Database(w.names.StateDatabase) }

// ReadModel is the read model's database.
func (w *Witness) ReadModel() *mongo.Database { return w.Client.Database(w.names.ReadModelDatabase) }

// Archive removes events from the source and remembers them for the verdict, so
// that a long run does not fill its servers. It is not to be called while Judge
// is, nor by two at once; events of one aggregate must be given in their order.
func (w *Witness) Archive(ctx context.Context, from *source.Writer, ids []string) error {
	events, err := from.Take(ctx, ids)
	for _, e := range events {
		w.archived.add(e)
	}
	return err
}

// AwaitDrain waits until all that was written has been seen on the topic and in
// the read model.
func (w *Witness) AwaitDrain(ctx context.Context) error {
	return poll.Until(ctx, "the backlog to drain", func(context.Context) (bool, string) {
		written, applied := w.Ledger.Counts()
		seen := w.Observer.Count()
		return applied >= written && seen >= written, fmt.Sprintf("%d of %d events in the read model, %d on the topic", applied, written, seen)
	})
}
