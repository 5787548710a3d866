package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/sync/errgroup"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/majority"
)

// How deaths are noticed.
const (
	// beatEvery is how often a process says that it lives.
	beatEvery = 10 * time.Second
	// deadAfter is how long a process that says nothing counts as alive.
	deadAfter = 45 * time.Second
	// noteTime is how long the others note what they do after a death.
	noteTime = 10 * time.Minute
	// beatAgain is when a process tries again that could not say that it lives.
	beatAgain = time.Second
	// silentAfter is how long after it has last said that it lives a process begins to
	// apply nothing more, and endAfter how long what it has begun may go on: both by its
	// own clock, from before it said so. So whoever takes it for dead meets none of it.
	silentAfter = deadAfter - 15*time.Second
	endAfter    = deadAfter - 5*time.Second
)

// ErrSilent means that the process could not say for so long that it lives that others
// may soon take it for dead.
var ErrSilent = errors.New("the process cannot say in the read database that it lives, so it applies nothing")

// waitsForGaps is the OnGap of projectors that note the versions of aggregates.
const waitsForGaps = "wait"

// Process is this process among the projectors of a read database. One document
// for each says that it lives, or that it has stopped as asked; a process that
// does neither has died.
type Process struct {
	store        *Store
	id, instance string
	// Works tells by which records of rebuilds the process works; see rebuild.Records.
	// It is set before the first Beat.
	Works string
	// Progress is told with each beat: how far the process's projections are. It is set
	// before the first Beat; nil tells nothing.
	Progress func() []Progress
	crashed  atomic.Bool
	// beaten is when the process last said that it lives, by the server's clock.
	beaten time.Time
	// wentBack tells that the database went back, and that rebuilds do not say so yet.
	wentBack bool
	// heard is when the process last began to say that it lives, by its own clock, in
	// nanoseconds since began.
	heard atomic.Int64
	began time.Time
}

var _ delivery.CrashNotes = (*Process)(nil)

// Process returns this process. id is unique; instance is what a successor of
// it is called too, where the platform gives it the same name again.
func (s *Store) Process(id, instance string) *Process {
	return &Process{store: s, id: id, instance: instance, began: time.Now()}
}

// Run says that the process lives until ctx ends, and then that it has stopped.
// A beat that fails is tried again, and told. The first Beat comes before Run. After a
// silence belongs is asked whether what the process writes is still its own: it may have
// been taken for dead. Until it is, the process is silent.
func (p *Process) Run(ctx context.Context, belongs func(context.Context) error, told func(error)) error {
	timer := time.NewTimer(beatEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return p.Stop(context.WithoutCancel(ctx))
		case <-timer.C:
		}
		err := p.beat(ctx, belongs)
		if ctx.Err() == nil {
			told(err)
		}
		next := beatEvery
		if err != nil {
			next = beatAgain
		}
		timer.Reset(next)
	}
}

func (p *Process) beat(ctx context.Context, belongs func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, beatEvery)
	defer cancel()
	silent := p.Silent() != nil
	asked := time.Now()
	said, err := p.say(ctx)
	if err != nil {
		return err
	}
	if silent {
		if err := belongs(ctx); err != nil {
			return err
		}
	}
	p.heardAt(asked)
	return p.findDead(ctx, said, false)
}

func (p *Process) heardAt(at time.Time) { p.heard.Store(int64(at.Sub(p.began))) }

// left is what is left of a time since the process last said that it lives.
func (p *Process) left(of time.Duration) time.Duration {
	return time.Until(p.began.Add(time.Duration(p.heard.Load()) + of))
}

// Silent is ErrSilent while the process must begin nothing more.
func (p *Process) Silent() error {
	if p.left(silentAfter) > 0 {
		return nil
	}
	return ErrSilent
}

// WhileHeard is ctx until others may take the process for dead. end gives back what it
// holds.
func (p *Process) WhileHeard(ctx context.Context) (heard context.Context, end func()) {
	heard, cancel := context.WithCancelCause(ctx)
	var mu sync.Mutex
	var timer *time.Timer // guarded by mu
	var check func()
	check = func() {
		mu.Lock()
		defer mu.Unlock()
		left := p.left(endAfter)
		switch {
		case heard.Err() != nil:
		case left <= 0:
			cancel(ErrSilent)
		default:
			timer = time.AfterFunc(left, check)
		}
	}
	check()
	return heard, func() {
		cancel(nil)
		mu.Lock()
		defer mu.Unlock()
		if timer != nil {
			timer.Stop()
		}
	}
}

// Beat says that the process lives, and looks for others that have died. The
// first one takes a live process of the same instance for dead.
func (p *Process) Beat(ctx context.Context, first bool) error {
	asked := time.Now()
	said, err := p.say(ctx)
	if err != nil {
		return err
	}
	p.heardAt(asked)
	return p.findDead(ctx, said, first)
}

// say says that the process lives, and returns when that was by the server's clock. It
// waits for a majority once, which may take long: what it writes is on its way together.
func (p *Process) say(ctx context.Context) (time.Time, error) {
	var before, at time.Time
	group, together := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		before, at, err = p.sayLives(together)
		return err
	})
	group.Go(func() error { return p.sayNoting(together) })
	if err := group.Wait(); err != nil {
		return time.Time{}, err
	}
	// A majority had the last beat.
	if before.Before(p.beaten) {
		p.store.config.WentBack()
		p.wentBack = true
	}
	p.beaten = at
	if p.wentBack {
		if err := p.store.wentBack(ctx); err != nil {
			return time.Time{}, err
		}
		p.wentBack = false
	}
	return at, nil
}

// sayLives returns when the beat was, and when the one before was as far as the database
// has it.
func (p *Process) sayLives(ctx context.Context) (before, at time.Time, err error) {
	var me struct {
		HeartbeatAt time.Time `bson:"heartbeatAt"`
		Before      time.Time `bson:"beatBefore"`
	}
	progress := []Progress{}
	if p.Progress != nil {
		progress = p.Progress()
	}
	err = p.store.own(projection.Processes).FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: p.id}},
		mongo.Pipeline{{{Key: "$set", Value: bson.D{{Key: "instance", Value: bson.D{{Key: "$literal", Value: p.instance}}}, {Key: "works", Value: literal(p.Works)}, {Key: "progress", Value: literal(progress)}, {Key: "beatBefore", Value: "$heartbeatAt"}, {Key: "heartbeatAt", Value: "$$NOW"}}}}, {{Key: "$unset", Value: "diedAt"}}},
		options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)).Decode(&me)
	if err != nil {
		return before, at, fmt.Errorf("say that the process lives: %w", majority.Explain(ctx, p.store.db.Client(), err))
	}
	return me.Before, me.HeartbeatAt, nil
}

// findDead looks for others that have died until this process said that it lives. It
// writes only where it finds one, since a write that changes nothing waits for a majority
// as well.
func (p *Process) findDead(ctx context.Context, said time.Time, first bool) error {
	processes := p.store.own(projection.Processes)
	silent := bson.D{{Key: "heartbeatAt", Value: bson.D{{Key: "$lt", Value: said.Add(-deadAfter)}}}}
	dead := bson.D{
		{Key: "_id", Value: bson.D{{Key: "$ne", Value: p.id}}},
		{Key: "stoppedAt", Value: nil},
		{Key: "diedAt", Value: nil},
	}
	if first {
		dead = append(dead, bson.E{Key: "$or", Value: bson.A{silent, bson.D{{Key: "instance", Value: p.instance}}}})
	} else {
		dead = append(dead, silent...)
	}
	err := processes.FindOne(ctx, dead).Err()
	if err == nil {
		_, err = processes.UpdateMany(ctx, dead, bson.D{{Key: "$set", Value: bson.D{{Key: "diedAt", Value: said}}}})
	}
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return fmt.Errorf("look for processes that have died: %w", err)
	}
	err = processes.FindOne(ctx, bson.D{{Key: "diedAt", Value: bson.D{{Key: "$gt", Value: said.Add(-noteTime)}}}}).Err()
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return fmt.Errorf("look for processes that have died: %w", err)
	}
	p.crashed.Store(err == nil)
	return nil
}

// sayNoting says since when versions of aggregates are noted; where the process notes
// none, that it may apply events until it says so again, or counts as dead.
func (p *Process) sayNoting(ctx context.Context) error {
	var said mongo.Pipeline
	switch p.store.config.OnGap {
	case "":
		return nil
	case waitsForGaps:
		said = mongo.Pipeline{{{Key: "$set", Value: bson.D{{Key: "notedSince", Value: bson.D{{Key: "$ifNull", Value: bson.A{"$notedSince", "$$NOW"}}}}}}}}
	default:
		until := bson.D{{Key: "$add", Value: bson.A{"$$NOW", deadAfter.Milliseconds()}}}
		said = mongo.Pipeline{{{Key: "$set", Value: bson.D{{Key: "unnotedAt", Value: until}}}}, {{Key: "$unset", Value: "notedSince"}}}
	}
	if _, err := p.store.own(projection.Processes).UpdateOne(ctx, bson.D{{Key: "_id", Value: feedKey}}, said); err != nil {
		return fmt.Errorf("say whether versions are noted: %w", majority.Explain(ctx, p.store.db.Client(), err))
	}
	return nil
}

// Stop says that the process stops as asked.
func (p *Process) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := p.store.own(projection.Processes).UpdateOne(ctx, bson.D{{Key: "_id", Value: p.id}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "stoppedAt", Value: time.Now()}}}})
	if err != nil {
		return fmt.Errorf("say that the process stops: %w", err)
	}
	return nil
}

// CrashedLately implements delivery.CrashNotes.
func (p *Process) CrashedLately() bool { return p.crashed.Load() }

// attempts is an aggregate's document: which processes have which of its
// messages in hand. What is done is taken out, so it stays small however often
// the aggregate has had its turn.
type attempts struct {
	InHand []attempt `bson:"inHand"`
}

type attempt struct {
	Process  string   `bson:"process"`
	Messages []string `bson:"messages"`
	Alone    bool     `bson:"alone"`
}

// Deaths implements delivery.CrashNotes. A process that has stopped as asked has not
// died, whatever it left in hand.
func (p *Process) Deaths(ctx context.Context, aggregate string) ([]delivery.Death, error) {
	var noted attempts
	err := p.store.own(projection.Attempts).FindOne(ctx, bson.D{{Key: "_id", Value: aggregate}}).Decode(&noted)
	if errors.Is(err, mongo.ErrNoDocuments) || err == nil && len(noted.InHand) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up attempts at aggregate %q: %w", aggregate, err)
	}
	ids := bson.A{}
	for _, a := range noted.InHand {
		ids = append(ids, a.Process)
	}
	var dead []string
	err = p.store.own(projection.Processes).Distinct(ctx, "_id", bson.D{
		{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}},
		{Key: "diedAt", Value: bson.D{{Key: "$ne", Value: nil}}},
		{Key: "stoppedAt", Value: nil},
	}).Decode(&dead)
	if err != nil {
		return nil, fmt.Errorf("look for dead processes: %w", err)
	}
	var deaths []delivery.Death
	for _, a := range noted.InHand {
		if slices.Contains(dead, a.Process) && len(a.Messages) > 0 {
			deaths = append(deaths, delivery.Death{Messages: a.Messages, Alone: a.Alone})
		}
	}
	return deaths, nil
}

// Note implements delivery.CrashNotes.
func (p *Process) Note(ctx context.Context, aggregate string, messages []string, alone bool) error {
	mine := bson.D{{Key: "process", Value: literal(p.id)}, {Key: "messages", Value: literal(messages)}, {Key: "alone", Value: literal(alone)}}
	return p.note(ctx, aggregate, bson.D{{Key: "$concatArrays", Value: bson.A{p.others(), bson.A{mine}}}})
}

// Clear implements delivery.CrashNotes.
func (p *Process) Clear(ctx context.Context, aggregate string, done []string) error {
	left := bson.D{{Key: "$setDifference", Value: bson.A{bson.D{{Key: "$ifNull", Value: bson.A{"$$a.messages", bson.A{}}}}, literal(append([]string{}, done...))}}}
	less := bson.D{{Key: "$map", Value: bson.D{
		{Key: "input", Value: p.others()},
		{Key: "as", Value: "a"},
		{Key: "in", Value: bson.D{{Key: "process", Value: "$$a.process"}, {Key: "messages", Value: left}, {Key: "alone", Value: "$$a.alone"}}},
	}}}
	return p.note(ctx, aggregate, bson.D{{Key: "$filter", Value: bson.D{
		{Key: "input", Value: less},
		{Key: "as", Value: "a"},
		{Key: "cond", Value: bson.D{{Key: "$ne", Value: bson.A{"$$a.messages", bson.A{}}}}},
	}}})
}

// others is what other processes have in hand.
func (p *Process) others() bson.D {
	return bson.D{{Key: "$filter", Value: bson.D{
		{Key: "input", Value: bson.D{{Key: "$ifNull", Value: bson.A{"$inHand", bson.A{}}}}},
		{Key: "as", Value: "a"},
		{Key: "cond", Value: bson.D{{Key: "$ne", Value: bson.A{"$$a.process", literal(p.id)}}}},
	}}}
}

func literal(v any) bson.D { return bson.D{{Key: "$literal", Value: v}} }

func (p *Process) note(ctx context.Context, aggregate string, inHand bson.D) error {
	_, err := p.store.own(projection.Attempts).UpdateOne(ctx, bson.D{{Key: "_id", Value: aggregate}},
		mongo.Pipeline{{{Key: "$set", Value: bson.D{{Key: "inHand", Value: inHand}, {Key: "at", Value: time.Now()}}}}}, options.UpdateOne().SetUpsert(true))
	if err != nil {
		return fmt.Errorf("note an attempt at aggregate %q: %w", aggregate, err)
	}
	return nil
}
