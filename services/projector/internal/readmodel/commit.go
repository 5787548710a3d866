package readmodel

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

const (
	// commandsMost is how many commands with writes to one collection are under way
	// before what comes waits for one of them to end.
	commandsMost = 2
	// sharedMost is how many writes share a command.
	sharedMost = 128
	// apartTime is how long no command is shared after one that failed as a whole.
	apartTime = 10 * time.Second
)

// errApart means that a write is to go by itself.
var errApart = errors.New("what was sent together has failed as a whole")

// groupCommit sends writes of many sessions, each of one document, to a collection in
// shared commands: for a short session, a command and its answer cost more than the write
// itself. No write waits for others to arrive. One that arrives while enough commands are
// under way goes with the next command, together with all that have arrived by then.
//
// Writes that share a command have nothing else in common. The server tries each of them
// whatever becomes of the others, and each has its own outcome. When a command fails as a
// whole, a single write may be the cause: then each goes by itself, and so do those that
// arrive for a while.
type groupCommit struct {
	// send sends writes, in any order, each whether or not another is refused.
	send func(context.Context, []mongo.WriteModel) error

	mu       sync.Mutex
	underWay int       // guarded by mu: commands
	waiting  []*member // guarded by mu, in the order in which they came
	apart    time.Time // guarded by mu: until when nothing is shared
}

// member is one write that waits to be sent.
type member struct {
	ctx   context.Context
	model mongo.WriteModel
	// group gets the members that this one is to send, itself first. It then owns one of
	// the commands under way.
	group chan []*member
	// sent gets the outcome of the write where another member has sent it, or errApart.
	sent chan error
}

// write sends one write, with others or by itself. It returns when ctx ends, even though
// the write may still be under way.
func (g *groupCommit) write(ctx context.Context, model mongo.WriteModel) error {
	m := &member{ctx: ctx, model: model, group: make(chan []*member, 1), sent: make(chan error, 1)}
	err := errApart
	if g.enter(m) {
		select {
		case group := <-m.group:
			err = g.lead(m, group)
		case err = <-m.sent:
		case <-ctx.Done():
			g.leave(m)
		}
	}
	switch {
	case ctx.Err() != nil && err != nil:
		return context.Cause(ctx)
	case errors.Is(err, errApart):
		return g.send(ctx, []mongo.WriteModel{model})
	}
	return err
}

// enter queues a write for its turn, which may come at once. It is false where the write
// goes by itself.
func (g *groupCommit) enter(m *member) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Now().Before(g.apart) {
		return false
	}
	g.waiting = append(g.waiting, m)
	if g.underWay < commandsMost {
		g.underWay++
		g.next()
	}
	return true
}

// next has the first member that waits send all that wait, up to sharedMost, in place of a
// command that has ended. Called with mu held.
func (g *groupCommit) next() {
	if len(g.waiting) == 0 {
		g.underWay--
		return
	}
	n := min(len(g.waiting), sharedMost)
	group := slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	group[0].group <- group
}

// leave takes out a write whose time is over. If it was to send others, another does.
func (g *groupCommit) leave(m *member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if place := slices.Index(g.waiting, m); place >= 0 {
		g.waiting = slices.Delete(g.waiting, place, place+1)
		return
	}
	select {
	case group := <-m.group:
		g.waiting = slices.Concat(group[1:], g.waiting)
		g.next()
	default: // it was sent by another
	}
}

// lead sends a group, whose first member is m, and tells the others the outcome of theirs.
// A write whose time is over is not sent any more.
func (g *groupCommit) lead(m *member, group []*member) error {
	group = slices.DeleteFunc(group, func(one *member) bool { return one != m && one.ctx.Err() != nil })
	models := make([]mongo.WriteModel, len(group))
	for i, one := range group {
		models[i] = one.model
	}
	err := g.send(m.ctx, models)
	if len(group) == 1 {
		g.ended(false)
		return err
	}
	each, known := eachOf(err, len(group))
	g.ended(!known && m.ctx.Err() == nil)
	for i, one := range group[1:] {
		one.sent <- each[i+1]
	}
	return each[0]
}

// ended notes that a command has ended, and whether it failed as a whole.
func (g *groupCommit) ended(failed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if failed {
		g.apart = time.Now().Add(apartTime)
	}
	g.next()
}

// eachOf returns the outcome of each of n writes that were sent together. Where the error
// is of the whole command, known is false, and the outcome of all is errApart.
func eachOf(err error, n int) (each []error, known bool) {
	each = make([]error, n)
	if err == nil {
		return each, true
	}
	bulk, known := errors.AsType[mongo.BulkWriteException](err)
	stray := func(failure mongo.BulkWriteError) bool { return failure.Index < 0 || failure.Index >= n }
	if known = known && bulk.WriteConcernError == nil && !slices.ContainsFunc(bulk.WriteErrors, stray); !known {
		for i := range each {
			each[i] = errApart
		}
		return each, false
	}
	for _, failure := range bulk.WriteErrors {
		place := failure.Index
		failure.Index = 0
		each[place] = mongo.BulkWriteException{WriteErrors: []mongo.BulkWriteError{failure}, Labels: bulk.Labels}
	}
	return each, true
}
