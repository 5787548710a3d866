package witness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/check/expect"
	"changerelay/services/e2e/internal/check/observe"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/watch"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/source"
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
	// Shadow is where the documents of shadow.yaml are, if the projectors keep them,
	// too. Without it nothing must be erased: a document that is erased forgets what
	// it has counted.
	Shadow string
	// Keyed is where the documents of keyed.yaml are, which many orders change, if the
	// projectors keep them, too. It is the projection's name as well.
	Keyed string
	// InGo says that the projectors keep the documents of a projection in Go, too.
	InGo bool
	// Documents says that the source is one whose changes are its events, and Collection
	// what documents.yaml declares; nil where documents are events.
	Documents *Documents
	// Hidden is what messages do not show of events, where documents are events.
	Hidden expect.Hidden
	// Views are those of projections that operators build anew, if the projectors keep
	// them, too.
	Views []string
	// Counted says that the shadow counts events and keeps nothing of their data.
	Counted bool
	// OnError is what becomes of an event that Collection's projection cannot apply, where
	// it goes on without: skip or deadletter; empty where that halts the aggregate.
	OnError string
}

// OfDocuments is the projection of a source in documents mode.
func (p Projection) OfDocuments(d Documents) Projection {
	p.Documents, p.Counts = &d, false
	return p
}

// Beside is what is judged where the rules of a read model are the projectors' alone:
// documents of a shadow of its own beside it.
func Beside(collection string) Projection {
	return Projection{Collection: collection}.CountedIn(collection)
}

// CountedIn is the projection with documents beside it that count its events.
func (p Projection) CountedIn(collection string) Projection {
	p.Shadow, p.Counted = collection, true
	return p
}

// ownRules says that nothing but the shadow can be computed anew.
func (p Projection) ownRules() bool { return p.Collection == p.Shadow }

// WithSteps is the projection with the one in Go beside it.
func (p Projection) WithSteps() Projection {
	p.InGo = true
	return p
}

// WithKeyed is the projection with what keyed.yaml declares beside it.
func (p Projection) WithKeyed() Projection {
	p.Keyed = "customers"
	return p
}

// The read models that can be judged.
var (
	// Orders is what orders.yaml declares.
	Orders = Projection{Collection: "orders", Counts: true}
	// Shadowed is Orders with the shadow beside it.
	Shadowed = Projection{Collection: "orders", Counts: true, Shadow: "shadow"}
	// Latest is the projectors' default.
	Latest = Projection{Collection: "latest"}
)

// counting is the collection whose documents count; none where none do.
func (p Projection) counting() string {
	if p.Shadow == "" && p.Counts {
		return p.Collection
	}
	return p.Shadow
}

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
	// tallies sees what counts events; nil where nothing does.
	tallies *watch.Tallies
	// Checkpoints sees the checkpoint's writes.
	Checkpoints *watch.Checkpoints
	// Leases sees the lease's writes.
	Leases *watch.Leases

	names      cluster.Names
	endpoints  cluster.Endpoints
	projection Projection
	// documents sees the changes of a source in documents mode, changes how; nil where
	// documents are events.
	documents *documents
	changes   *watch.Changes
	// archived is what Archive took out of the source.
	archived *record
	// forgiven says of an event what of it need not come; nil for nothing. gone is the
	// same for another group, of whose read model nobody has left anything out.
	forgiven, gone func(source.Stored) pardon
	// overtakenInKeyed says whether an event that came late came after a later one that
	// documents of another key follow. It is set where forgiven may say late.
	overtakenInKeyed func(source.Stored) bool
	// copied are the events that were there before the relay; nil where it copies nothing.
	copied map[validate.Event]bool
	// skipped are the events that the projection goes on without, as Judge has computed.
	skipped map[string]skipped
	// halted are the events that no projection can apply, by their ids, with their aggregates.
	halted map[string]string
	mu     sync.Mutex
	// beside are other groups, by their collections, with what sees each write of theirs.
	beside map[string]*watch.Tallies // guarded by mu
	// joins are watches that Run has to run as well.
	joins chan func(context.Context) error
	// subscriptions are those that must run empty, others those that the first group was on
	// for a while.
	subscriptions []string
	others        []string // guarded by mu
	// repairs are what operators have asked for.
	repairs *repairs
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
	client, err := mongo.Connect(options.Client().ApplyURI(endpoints.MongoURI).SetAppName(application))
	if err != nil {
		return nil, fmt.Errorf("connect to MongoDB: %w", err)
	}
	w := &Witness{Client: client, Ledger: NewLedger(), names: names, endpoints: endpoints, projection: projection, archived: newRecord(projection), beside: make(map[string]*watch.Tallies), joins: make(chan func(context.Context) error, 1), subscriptions: []string{names.Subscription}, repairs: &repairs{groups: make(map[string]bool), may: make(map[string]func(validate.Event) bool)}}
	if err := w.open(ctx, mode); err != nil {
		w.Close(ctx)
		return nil, err
	}
	return w, nil
}

func (w *Witness) open(ctx context.Context, mode observe.Mode) (err error) {
	if w.Observer, err = observe.New(w.endpoints.ServiceBus, w.names.Topic, w.names.Observer, w.names.Sources(), mode); err != nil {
		return err
	}
	model := w.ReadModel().Collection(w.projection.Collection)
	if counting := w.projection.counting(); counting != "" {
		w.tallies, err = watch.OpenTallies(ctx, w.ReadModel().Collection(counting), w.Ledger.SawCount)
		if err != nil {
			return err
		}
		w.Applies, err = watch.OpenApplies(ctx, model, func(validate.Apply) {})
	} else {
		w.Applies, err = watch.OpenApplies(ctx, model, w.Ledger.SawApply)
	}
	if err != nil {
		return err
	}
	if of := w.projection.Documents; of != nil {
		w.documents = newDocuments(*of, w.names, w.archived)
		events := w.Client.Database(w.names.SourceDatabase).Collection(w.names.SourceCollection)
		if w.changes, err = watch.OpenChanges(ctx, events, w.documents.add); err != nil {
			return err
		}
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
	if w.tallies != nil {
		g.Go(func() error { return w.tallies.Run(ctx) })
	}
	if w.changes != nil {
		g.Go(func() error { return w.changes.Run(ctx) })
	}
	g.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case run := <-w.joins:
				g.Go(func() error { return run(ctx) })
			}
		}
	})
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

// Taker removes events from the source, and returns them.
type Taker interface {
	Take(ctx context.Context, ids []string) ([]source.Stored, error)
}

// Archive removes events from the source and remembers them for the verdict, so
// that a long run does not fill its servers. It is not to be called while Judge
// is, nor by two at once; events of one aggregate must be given in their order.
func (w *Witness) Archive(ctx context.Context, from Taker, ids []string) error {
	events, err := from.Take(ctx, ids)
	for _, e := range events {
		err = errors.Join(err, w.archived.add(w.names, e))
	}
	return err
}
