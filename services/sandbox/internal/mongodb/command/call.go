package command

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/interrupt"
	"changerelay/services/sandbox/internal/mongodb/javascript"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/mongowire"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
)

// Call is one command being run.
type Call struct {
	Server  *Server
	Conn    *conn
	Request *mongowire.Request
	command *Command
	// Name is the command as the client wrote it.
	Name string
	DB   string
	Body bson.Raw
	// Generic are the arguments that any command may have.
	Generic generic
	Session *engine.Session
	Txn     *engine.Txn
	Retry   *engine.Retry
	// Now is the clock for the whole command ($$NOW).
	Now time.Time
	// arrived is when the command came, by the machine's clock.
	arrived time.Time
	// let are the command's own variables, evaluated, the last one first.
	let []bson.Raw
	// Streaming tells commands of change streams, whose errors clients resume
	// after.
	Streaming bool
	// work is what the command, and the cursor that it opens, reads under.
	work *interrupt.Context
	// scripts runs the JavaScript of the command and its cursor.
	scripts *javascript.Session
	// wrote tells that its statements may have done what is not durable yet.
	wrote bool
	// begun tells that the command has begun to run.
	begun bool
	// hangUp closes the connection instead of an answer.
	hangUp bool
	// More asks for another run, with another reply, without a new request.
	More bool
}

// Command says how a command is run and what it may be used for.
type Command struct {
	Run func(context.Context, *Call, *Reply) error
	// Needs is what a client must be granted.
	Needs Requirement
	// Member says which members of the replica set run it.
	Member member
	// Admin commands run on the admin database only.
	Admin bool
	// Write commands may be retryable.
	Write bool
	// InTransaction commands may run in a transaction.
	InTransaction bool
	// Typed commands are those whose fields the server reads by a declaration
	// (IDL): it answers otherwise to a first field of the wrong type.
	Typed bool
	// Reads says which read concerns the command takes.
	Reads readLevels
	// waits tells that the command takes a write concern; ends, that it does so
	// within the transaction that it ends.
	Waits, Ends bool
}

// run runs a request. An error means that the connection is to be closed;
// everything else, errors of commands too, is a reply.
func (s *Server) run(ctx context.Context, conn *conn, request *mongowire.Request) (body bson.Raw, more bool, err error) {
	s.Commands.Add(1)
	c := &Call{Server: s, Conn: conn, Request: request, Body: request.Body, Now: s.Engine.Now(), arrived: time.Now()}
	r := NewReply()
	failure := c.prepare()
	if failure == nil {
		working, end := s.Operations.begin(ctx, c)
		failure = c.runPast(working, r)
		end()
	}
	if errors.Is(failure, errHangUp) {
		return nil, false, errHangUp
	}
	if ctx.Err() != nil {
		return nil, false, context.Cause(ctx)
	}
	if failure != nil {
		r = c.failed(failure)
	}
	s.Profiler.note(ctx, c, len(r.Doc))
	return c.finish(r), c.More && failure == nil, nil
}

// finish ends the reply. The time of a read of a majority is that which a majority
// has.
func (c *Call) finish(r *Reply) bson.Raw {
	now := c.Server.Engine.OperationTime()
	operation := now
	if c.Streaming || c.Generic.ReadConcern.Level == "majority" {
		operation = c.Server.Engine.CommittedTime()
	}
	return r.finish(now, operation)
}

// prepare finds out what is to be run.
func (c *Call) prepare() error {
	if c.Request.Refused != "" {
		return mongoerr.New(mongoerr.Overflow, "%s", c.Request.Refused)
	}
	first, err := c.Body.IndexErr(0)
	if err != nil {
		return mongoerr.New(mongoerr.FailedToParse, "the command is empty")
	}
	c.Name = first.Key()
	if err := c.refuseLegacy(); err != nil {
		return err
	}
	if c.Generic, err = parseGeneric(c.Body, c.Conn.Login.SessionOwner()); err != nil {
		return err
	}
	if c.DB = c.Generic.db; c.Request.Legacy {
		c.DB = c.Request.Database
	} else if !c.Generic.hasDB {
		return mongoerr.New(40571, "OP_MSG requests require a $db argument")
	}
	if err := oplog.ValidateDatabase(c.DB); err != nil {
		return err
	}
	c.command = c.Server.commandsByName[c.Name]
	if c.command == nil {
		return mongoerr.New(mongoerr.CommandNotFound, "no such command: '%s'", c.Name)
	}
	if c.command.Admin && c.DB != "admin" {
		return mongoerr.New(mongoerr.Unauthorized, "%s may only be run against the admin database.", c.Name)
	}
	return c.authorize()
}

// runPast runs the command, unless a fail point stands in its way.
func (c *Call) runPast(ctx context.Context, r *Reply) error {
	c.Streaming = c.opensStream()
	fault := c.Server.FailPoints.Command.Take(c)
	if err := fault.Before(ctx); err != nil {
		return err
	}
	if err := c.Server.faults.before(ctx, c); err != nil {
		return err
	}
	err := c.runInSession(ctx, r)
	if c.hangUp {
		return errHangUp
	}
	if err != nil {
		return err
	}
	if c.command.Write && c.Name != "findAndModify" && c.Name != "findandmodify" && c.Generic.writeConcern.silent() &&
		c.Request.Flags&mongowire.MoreToCome == 0 { // what is not sent is for getLastError
		*r = *NewReply()
	}
	if unsatisfied := c.Generic.writeConcern.unsatisfied(); unsatisfied != nil {
		r.writeConcernError(unsatisfied)
	}
	fault.after(r, c)
	return nil
}

// failWrite is what onPrimaryTransactionalWrite does to a retryable write.
func (c *Call) failWrite() error {
	fault := c.Server.FailPoints.TransactionalWrite.Take(c)
	c.hangUp = c.hangUp || fault.CloseConnection
	if fault.ErrorCode == 0 {
		return nil
	}
	return mongoerr.New(fault.ErrorCode, "Failing write due to failpoint. The write must not be reflected.")
}

// runInSession checks the session out, for the time of the command.
func (c *Call) runInSession(ctx context.Context, r *Reply) error {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	if err := c.check(); err != nil {
		return err
	}
	if err := c.reached(); err != nil {
		return err
	}
	leave, err := c.enter()
	if err != nil {
		return err
	}
	defer leave()
	if c.Generic.lsid != nil {
		c.Server.Cursors.Refresh(c.Generic.lsid)
	}
	if c.Generic.lsid != nil && c.Generic.TxnNumber != nil {
		session, err := c.Server.Engine.CheckOut(ctx, c.Generic.lsid)
		if err != nil {
			return timedOut(ctx, err)
		}
		defer session.CheckIn()
		session.UsedBy(engine.Client{Application: c.Conn.AppName, Address: c.Conn.Nc.RemoteAddr().String()})
		c.Session = session
		if err := c.begin(); err != nil {
			return err
		}
	}
	if c.Generic.MaxTime > 0 && c.Name != "getMore" && c.Server.FailPoints.MaxTime.Meets(c) {
		return ErrTimedOut()
	}
	c.Server.Counters.add(c)
	if err := c.awaitRead(ctx); err != nil {
		return timedOut(ctx, err)
	}
	c.begun = true
	ctx, c.work = interrupt.New(ctx)
	defer c.work.End()
	c.scripts = c.Server.scripts.Session(c.work)
	err = c.command.Run(ctx, c, r)
	if c.wrote {
		if failure := c.Server.Engine.Durable(); failure != nil {
			return failure
		}
	}
	if err != nil {
		c.Abort()
		return timedOut(ctx, err)
	}
	return c.awaitMajority(ctx, r)
}

// begin finds the transaction or retryable write that the command is part of.
func (c *Call) begin() (err error) {
	number := *c.Generic.TxnNumber
	switch {
	case !c.Generic.InTransaction():
		c.Retry, err = c.Session.Retryable(number)
	case c.Generic.startTransaction:
		if c.Txn, err = c.Session.StartTransaction(number); err == nil {
			c.Txn.Level = c.Generic.ReadConcern.Level
		}
	case c.Name == "commitTransaction" || c.Name == "abortTransaction":
		// They look at the state of the transaction themselves.
	default:
		c.Txn, err = c.Session.Transaction(number)
	}
	return err
}

// Abort ends the transaction of a command that failed.
func (c *Call) Abort() {
	if c.Txn != nil {
		_ = c.Session.Abort(*c.Generic.TxnNumber) // it may be over already
	}
}

func (c *Call) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.Generic.MaxTime == 0 || c.Name == "getMore" {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.Generic.MaxTime)
}

// timedOut turns the end of maxTimeMS into the server's error.
func timedOut(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return ErrTimedOut()
	}
	return err
}

// ErrTimedOut is the answer to a command that had no time left.
func ErrTimedOut() error {
	return mongoerr.New(mongoerr.MaxTimeMSExpired, "operation exceeded time limit")
}

// View takes a view of a collection. A majority read waits until all that it
// shows is durable.
func (c *Call) View(ns oplog.Namespace) (*engine.View, error) {
	if !c.Generic.ReadConcern.majority() || c.Txn != nil {
		return c.Server.Engine.View(c.Txn, ns)
	}
	view := c.Server.Engine.MajorityView(ns)
	return view, c.Server.Engine.Durable()
}

// majority reports that the command waits for a majority: but for 4.4 it does
// so unless told otherwise.
func (c *Call) majority() bool {
	w := c.Generic.writeConcern
	return w.mode == "majority" || !w.given && c.Server.Version.Has(5)
}

// Write is in whose name the command's statements run. What they do is durable before
// the command is answered.
func (c *Call) Write() engine.Write {
	c.wrote = true
	w := engine.Write{Txn: c.Txn, Retry: c.Retry, Majority: c.majority() || c.Generic.writeConcern.journaled(), Deferred: true}
	if c.Server.FailPoints.TransactionalWrite.armed() {
		w.Fault = c.failWrite
	}
	return w
}

// Env is what expressions of the command may read: constants of a statement come
// before the variables of the command.
func (c *Call) Env(constants bson.Raw) expression.Env {
	at := c.Server.Engine.OperationTime()
	return expression.Env{
		Now: c.Now, ClusterTime: bson.Timestamp{T: at.Seconds(), I: at.Increment()}, Let: c.variables(constants), Interrupted: c.Interrupted,
		Patterns: &expression.Patterns{},
		Scripts:  c.scripts, Where: true,
	}
}

// Scripts runs the JavaScript of the command and its cursor.
func (c *Call) Scripts() *javascript.Session { return c.scripts }

// Interrupted is why the command is to end, nil for none.
func (c *Call) Interrupted() error {
	if c.work == nil {
		return nil
	}
	return c.work.Interrupted()
}

// Collection is the namespace in the command's first field.
func (c *Call) Collection() (oplog.Namespace, error) {
	first, _ := c.Body.IndexErr(0)
	name, ok := first.Value().StringValueOK()
	if !ok {
		code := mongoerr.InvalidNamespace
		if c.command.Typed {
			code = mongoerr.BadValue
		}
		return oplog.Namespace{}, mongoerr.New(code, "collection name has invalid type %s", bsonkit.TypeName(first.Value().Type))
	}
	ns := oplog.Namespace{DB: c.DB, Collection: name}
	return ns, ns.Validate()
}
