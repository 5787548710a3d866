package command

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// FailPoints are those that clients can set
// (https://github.com/mongodb/mongo/wiki/The-%22failCommand%22-fail-point).
type failPoints struct {
	// Command is failCommand: the commands it names fail.
	Command FailPoint
	// GetMore is failGetMoreAfterCursorCheckout.
	GetMore FailPoint
	// TransactionalWrite is onPrimaryTransactionalWrite: retryable writes lose
	// their connection, and are not done if it says so.
	TransactionalWrite FailPoint
	// MaxTime is maxTimeAlwaysTimeOut: commands with a time limit, and what goes on
	// with their cursors, have none left.
	MaxTime FailPoint
}

// Named gives a fail point by the server's name for it, nil for none.
func (f *failPoints) Named(name string) *FailPoint {
	switch name {
	case "failCommand":
		return &f.Command
	case "failGetMoreAfterCursorCheckout":
		return &f.GetMore
	case "onPrimaryTransactionalWrite":
		return &f.TransactionalWrite
	case "maxTimeAlwaysTimeOut":
		return &f.MaxTime
	}
	return nil
}

// armed reports that commands are being made to fail.
func (f *failPoints) armed() bool {
	return f.Command.armed() || f.GetMore.armed() || f.TransactionalWrite.armed() || f.MaxTime.armed()
}

// FailPoint is a place where things go wrong when a client asks for it.
type FailPoint struct {
	mu   sync.Mutex
	rule *FailRule
	// hits is how often the rule has been met.
	hits int64
}

// FailRule says what fails, how often and how.
type FailRule struct {
	// Commands are the names of those that fail; nil means any.
	Commands []string
	// AppName and Namespace, if not empty, are those of the commands that fail.
	AppName, Namespace string
	// skip is how many are let through first, times how many then fail; -1 for
	// all.
	Skip, Times int64
	// Block tells that the fault's time is to be waited.
	Block bool
	Fault Mishap
}

// Mishap is what happens to one command. The zero Mishap is nothing.
type Mishap struct {
	CloseConnection   bool
	Block             time.Duration
	ErrorCode         mongoerr.Code
	Labels            []string
	HasLabels         bool
	WriteConcernError bson.Raw
}

// Take finds what is to happen to a command, and counts it.
func (p *FailPoint) Take(c *Call) Mishap {
	p.mu.Lock()
	defer p.mu.Unlock()
	rule := p.rule
	if rule == nil || rule.Times == 0 || !rule.matches(c) {
		return Mishap{}
	}
	if rule.Skip > 0 {
		rule.Skip--
		return Mishap{}
	}
	if rule.Times > 0 {
		rule.Times--
	}
	p.hits++
	return rule.Fault
}

// Meets is Take of a fail point that has nothing but its name: whether it is set.
func (p *FailPoint) Meets(c *Call) bool { return p.armed() && p.Take(c).ErrorCode != 0 }

func (p *FailPoint) armed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rule != nil && p.rule.Times != 0
}

// Set exchanges the rule and returns how often the old one has been hit.
func (p *FailPoint) Set(rule *FailRule) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = rule
	hits := p.hits
	p.hits = 0
	return hits
}

func (rule *FailRule) matches(c *Call) bool {
	if c.Name == "configureFailPoint" || rule.AppName != "" && rule.AppName != c.Conn.AppName {
		return false
	}
	if rule.Namespace != "" && rule.Namespace != c.target() {
		return false
	}
	return rule.Commands == nil || slices.ContainsFunc(rule.Commands, func(name string) bool {
		return c.Server.commandsByName[name] == c.command
	})
}

// target is the collection that the command is for, or else the database.
func (c *Call) target() string {
	first, _ := c.Body.IndexErr(0)
	name, _ := first.Value().StringValueOK()
	if c.Name == "getMore" {
		name, _ = c.Body.Lookup("collection").StringValueOK()
	}
	if name == "" {
		return c.DB
	}
	return c.DB + "." + name
}

// Before is what happens instead of the command, or before it.
func (f Mishap) Before(ctx context.Context) error {
	if f.Block > 0 && !pause(ctx, f.Block) {
		return context.Cause(ctx)
	}
	if f.CloseConnection {
		return errHangUp
	}
	if f.ErrorCode == 0 {
		return nil
	}
	err := mongoerr.New(f.ErrorCode, "Failing command via 'failCommand' failpoint").WithLabels(f.Labels...)
	if f.HasLabels {
		return &exactLabels{of: err}
	}
	return err
}

// after adds a write concern error to a command that was done.
func (f Mishap) after(r *Reply, c *Call) {
	if f.WriteConcernError == nil {
		return
	}
	r.Document("writeConcernError", f.WriteConcernError)
	labels := f.Labels
	if !f.HasLabels {
		code, _ := bsonkit.Get(f.WriteConcernError, "code")
		n, _ := code.AsInt64OK()
		labels = slices.DeleteFunc(c.labels(mongoerr.New(mongoerr.Code(n), "")), func(label string) bool {
			return label == transientTransaction // the command itself was done
		})
	}
	if len(labels) > 0 {
		r.Strings("errorLabels", labels)
	}
}

// exactLabels marks an error whose labels a fail point has given: the server
// adds none of its own.
type exactLabels struct{ of *mongoerr.Error }

func (e *exactLabels) Error() string { return e.of.Error() }
func (e *exactLabels) Unwrap() error { return e.of }
