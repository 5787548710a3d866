package mongoserver

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
	"changerelay/services/sandbox/internal/mongowire"
	"changerelay/services/sandbox/internal/query"
)

// call is one command being run.
type call struct {
	server  *Server
	conn    *conn
	request *mongowire.Request
	command *command
	// name is the command as the client wrote it.
	name string
	db   string
	body bson.Raw
	// generic are the arguments that any command may have.
	generic generic
	session *engine.Session
	txn     *engine.Txn
	retry   *engine.Retry
	// now is the clock for the whole command ($$NOW).
	now time.Time
	// streaming tells commands of change streams, whose errors clients resume
	// after.
	streaming bool
	// hangUp closes the connection instead of an answer.
	hangUp bool
	// more asks for another run, with another reply, without a new request.
	more bool
}

// command says how a command is run and what it may be used for.
type command struct {
	run func(context.Context, *call, *reply) error
	// needs is what a client must be granted.
	needs requirement
	// member says which members of the replica set run it.
	member member
	// admin commands run on the admin database only.
	admin bool
	// write commands may be retryable.
	write bool
	// inTransaction commands may run in a transaction.
	inTransaction bool
}

// run runs a request. An error means that the connection is to be closed;
// everything else, errors of commands too, is a reply.
func (s *Server) run(ctx context.Context, conn *conn, request *mongowire.Request) (body bson.Raw, more bool, err error) {
	s.commands.Add(1)
	c := &call{server: s, conn: conn, request: request, body: request.Body, now: s.engine.Now()}
	r := newReply()
	failure := c.prepare()
	if failure == nil {
		failure = c.runPast(ctx, r)
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
	return r.finish(s.engine.OperationTime()), c.more && failure == nil, nil
}

// prepare finds out what is to be run.
func (c *call) prepare() error {
	first, err := c.body.IndexErr(0)
	if err != nil {
		return mongoerr.New(mongoerr.FailedToParse, "the command is empty")
	}
	c.name = first.Key()
	if c.generic, err = parseGeneric(c.body, c.conn.login.sessionOwner()); err != nil {
		return err
	}
	if c.db = c.generic.db; c.request.Legacy {
		c.db = c.request.Database
	} else if !c.generic.hasDB {
		return mongoerr.New(40571, "OP_MSG requests require a $db argument")
	}
	if err := engine.ValidateDatabase(c.db); err != nil {
		return err
	}
	c.command = c.server.commandsByName[c.name]
	if c.command == nil {
		return mongoerr.New(mongoerr.CommandNotFound, "no such command: '%s'", c.name)
	}
	if c.command.admin && c.db != "admin" {
		return mongoerr.New(mongoerr.Unauthorized, "%s may only be run against the admin database.", c.name)
	}
	return c.authorize()
}

// runPast runs the command, unless a fail point stands in its way.
func (c *call) runPast(ctx context.Context, r *reply) error {
	fault := c.server.failPoints.command.take(c)
	if err := fault.before(ctx); err != nil {
		return err
	}
	if err := c.server.faults.before(ctx, c); err != nil {
		return err
	}
	err := c.runInSession(ctx, r)
	if c.hangUp {
		return errHangUp
	}
	if err != nil {
		return err
	}
	fault.after(r, c)
	return nil
}

// failWrite is what onPrimaryTransactionalWrite does to a retryable write.
func (c *call) failWrite() error {
	fault := c.server.failPoints.transactionalWrite.take(c)
	c.hangUp = c.hangUp || fault.closeConnection
	if fault.errorCode == 0 {
		return nil
	}
	return mongoerr.New(fault.errorCode, "Failing write due to failpoint. The write must not be reflected.")
}

// runInSession checks the session out, for the time of the command.
func (c *call) runInSession(ctx context.Context, r *reply) error {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	if err := c.generic.check(c.command); err != nil {
		return err
	}
	leave, err := c.enter()
	if err != nil {
		return err
	}
	defer leave()
	if c.generic.lsid != nil && c.generic.txnNumber != nil {
		session, err := c.server.engine.CheckOut(ctx, c.generic.lsid)
		if err != nil {
			return timedOut(ctx, err)
		}
		defer session.CheckIn()
		c.session = session
		if err := c.begin(); err != nil {
			return err
		}
	}
	err = c.command.run(ctx, c, r)
	if err != nil {
		c.abort()
		return timedOut(ctx, err)
	}
	if c.generic.unsatisfied != nil {
		r.writeConcernError(c.generic.unsatisfied)
	}
	return nil
}

// begin finds the transaction or retryable write that the command is part of.
func (c *call) begin() (err error) {
	number := *c.generic.txnNumber
	switch {
	case !c.generic.inTransaction():
		c.retry, err = c.session.Retryable(number)
	case c.generic.startTransaction:
		c.txn, err = c.session.StartTransaction(number)
	case c.name == "commitTransaction" || c.name == "abortTransaction":
		// They look at the state of the transaction themselves.
	default:
		c.txn, err = c.session.Transaction(number)
	}
	return err
}

// abort ends the transaction of a command that failed.
func (c *call) abort() {
	if c.txn != nil {
		_ = c.session.Abort(*c.generic.txnNumber) // it may be over already
	}
}

func (c *call) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.generic.maxTime == 0 || c.name == "getMore" {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.generic.maxTime)
}

// timedOut turns the end of maxTimeMS into the server's error.
func timedOut(ctx context.Context, err error) error {
	if err != nil && errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		return mongoerr.New(mongoerr.MaxTimeMSExpired, "operation exceeded time limit")
	}
	return err
}

// view takes a view of a collection. A majority read waits until all that it
// shows is durable.
func (c *call) view(ns engine.Namespace) (*engine.View, error) {
	view := c.server.engine.View(c.txn, ns)
	level, _ := bsonkit.Get(c.generic.readConcern, "level")
	if s, _ := level.StringValueOK(); s == "majority" || s == "linearizable" {
		if err := c.server.engine.Durable(); err != nil {
			return nil, err
		}
	}
	return view, nil
}

// write is in whose name the command's statements run.
func (c *call) write() engine.Write {
	w := engine.Write{Txn: c.txn, Retry: c.retry}
	if c.server.failPoints.transactionalWrite.armed() {
		w.Fault = c.failWrite
	}
	return w
}

// env is what expressions of the command may read.
func (c *call) env(let bson.Raw) query.Env {
	at := c.server.engine.OperationTime()
	return query.Env{Now: c.now, ClusterTime: bson.Timestamp{T: at.Seconds(), I: at.Increment()}, Let: let}
}

// collection is the namespace in the command's first field.
func (c *call) collection() (engine.Namespace, error) {
	first, _ := c.body.IndexErr(0)
	name, ok := first.Value().StringValueOK()
	if !ok {
		return engine.Namespace{}, mongoerr.New(mongoerr.InvalidNamespace,
			"collection name has invalid type %s", first.Value().Type)
	}
	ns := engine.Namespace{DB: c.db, Collection: name}
	return ns, ns.Validate()
}
