package mongoserver

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/mongoerr"
)

// failPoints are those that clients can set
// (https://github.com/mongodb/mongo/wiki/The-%22failCommand%22-fail-point).
type failPoints struct {
	// command is failCommand: the commands it names fail.
	command failPoint
	// getMore is failGetMoreAfterCursorCheckout.
	getMore failPoint
	// transactionalWrite is onPrimaryTransactionalWrite: retryable writes lose
	// their connection, and are not done if it says so.
	transactionalWrite failPoint
}

// named gives a fail point by the server's name for it, nil for none.
func (f *failPoints) named(name string) *failPoint {
	switch name {
	case "failCommand":
		return &f.command
	case "failGetMoreAfterCursorCheckout":
		return &f.getMore
	case "onPrimaryTransactionalWrite":
		return &f.transactionalWrite
	}
	return nil
}

// armed reports that commands are being made to fail.
func (f *failPoints) armed() bool {
	return f.command.armed() || f.getMore.armed() || f.transactionalWrite.armed()
}

// failPoint is a place where things go wrong when a client asks for it.
type failPoint struct {
	mu   sync.Mutex
	rule *failRule
	// hits is how often the rule has been met.
	hits int64
}

// failRule says what fails, how often and how.
type failRule struct {
	// commands are the names of those that fail; nil means any.
	commands []string
	appName  string
	// skip is how many are let through first, times how many then fail; -1 for
	// all.
	skip, times int64
	// block tells that the fault's time is to be waited.
	block bool
	fault fault
}

// fault is what happens to one command. The zero fault is nothing.
type fault struct {
	closeConnection   bool
	block             time.Duration
	errorCode         mongoerr.Code
	labels            []string
	hasLabels         bool
	writeConcernError bson.Raw
}

// take finds what is to happen to a command, and counts it.
func (p *failPoint) take(c *call) fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	rule := p.rule
	if rule == nil || rule.times == 0 || !rule.matches(c) {
		return fault{}
	}
	if rule.skip > 0 {
		rule.skip--
		return fault{}
	}
	if rule.times > 0 {
		rule.times--
	}
	p.hits++
	return rule.fault
}

func (p *failPoint) armed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rule != nil && p.rule.times != 0
}

// set exchanges the rule and returns how often the old one has been hit.
func (p *failPoint) set(rule *failRule) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = rule
	hits := p.hits
	p.hits = 0
	return hits
}

func (rule *failRule) matches(c *call) bool {
	if c.name == "configureFailPoint" || rule.appName != "" && rule.appName != c.conn.appName {
		return false
	}
	return rule.commands == nil || slices.ContainsFunc(rule.commands, func(name string) bool {
		return c.server.commandsByName[name] == c.command
	})
}

// before is what happens instead of the command, or before it.
func (f fault) before(ctx context.Context) error {
	if f.block > 0 && !pause(ctx, f.block) {
		return context.Cause(ctx)
	}
	if f.closeConnection {
		return errHangUp
	}
	if f.errorCode == 0 {
		return nil
	}
	err := mongoerr.New(f.errorCode, "Failing command via 'failCommand' failpoint").WithLabels(f.labels...)
	if f.hasLabels {
		return &exactLabels{of: err}
	}
	return err
}

// after adds a write concern error to a command that was done.
func (f fault) after(r *reply, c *call) {
	if f.writeConcernError == nil {
		return
	}
	r.document("writeConcernError", f.writeConcernError)
	labels := f.labels
	if !f.hasLabels {
		code, _ := bsonkit.Get(f.writeConcernError, "code")
		n, _ := code.AsInt64OK()
		labels = slices.DeleteFunc(c.labels(mongoerr.New(mongoerr.Code(n), "")), func(label string) bool {
			return label == transientTransaction // the command itself was done
		})
	}
	if len(labels) > 0 {
		r.strings("errorLabels", labels)
	}
}

// exactLabels marks an error whose labels a fail point has given: the server
// adds none of its own.
type exactLabels struct{ of *mongoerr.Error }

func (e *exactLabels) Error() string { return e.of.Error() }
func (e *exactLabels) Unwrap() error { return e.of }
