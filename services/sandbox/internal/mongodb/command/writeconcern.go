package command

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// writeConcern says who has to have a write before it is acknowledged
// (https://www.mongodb.com/docs/v4.4/reference/write-concern/).
type writeConcern struct {
	given bool
	// mode is the w that is a text, number the one that is none.
	mode    string
	number  int64
	journal bool
	fsync   bool
	timeout int64
}

// maxMembers is the largest w: that of the largest replica set.
const maxMembers = 50

func (a *Arguments) writeConcern(v bson.RawValue) writeConcern {
	doc := a.fieldDocument("writeConcern", v)
	w := writeConcern{given: len(doc) > len(bsonkit.Empty), number: 1}
	for it := bsonkit.Iterate(doc); it.Next(); {
		switch name, v := string(it.Key()), it.Value(); name {
		case "w":
			a.members(&w, v)
		case "j":
			w.journal = a.switched(name, v)
		case "fsync":
			w.fsync = a.switched(name, v)
		case "wtimeout":
			if bsonkit.IsNumber(v.Type) {
				w.timeout = a.Integer(name, v)
			}
		case "provenance":
			a.provenance("writeConcern", v)
		case "getLastError", "wElectionId", "wOpTime":
		default:
			a.Fail(mongoerr.FailedToParse, "unrecognized write concern field: %s", name)
		}
	}
	if w.journal && w.fsync {
		a.Fail(mongoerr.FailedToParse, "fsync and j options cannot be used together")
	}
	return w
}

// members reads w.
func (a *Arguments) members(w *writeConcern, v bson.RawValue) {
	if mode, ok := v.StringValueOK(); ok {
		w.mode = mode
		return
	}
	if v.Type == bson.TypeNull || v.Type == bson.TypeUndefined {
		return
	}
	if !bsonkit.IsNumber(v.Type) {
		a.Fail(mongoerr.FailedToParse, "w has to be a number or a string")
		return
	}
	if w.number = a.Integer("w", v); w.number < 0 || w.number > maxMembers {
		a.Fail(mongoerr.FailedToParse, "w has to be a non-negative number and not greater than %d", maxMembers)
	}
}

// switched reads j and fsync.
func (a *Arguments) switched(name string, v bson.RawValue) bool {
	if !bsonkit.IsNumber(v.Type) && v.Type != bson.TypeBoolean {
		a.Fail(mongoerr.FailedToParse, "%s must be numeric or a boolean value", name)
		return false
	}
	return bsonkit.Truthy(v)
}

// checkWriteConcern refuses one where the command does not write, or is within a
// transaction.
func (g *generic) checkWriteConcern(c *Command) error {
	switch {
	case !g.writeConcern.given:
		return nil
	case g.InTransaction() && !c.Ends:
		return mongoerr.New(mongoerr.InvalidOptions,
			"writeConcern is not allowed within a multi-statement transaction")
	case !c.Waits:
		return mongoerr.New(mongoerr.InvalidOptions, "Command does not support writeConcern")
	}
	return nil
}

// unsatisfied is the error of a write concern that one member cannot fulfil, nil
// for the others. The write is done all the same, and reported so.
func (w writeConcern) unsatisfied() *mongoerr.Error {
	switch {
	case w.mode != "" && w.mode != "majority":
		return mongoerr.New(mongoerr.UnknownReplWriteConcern,
			"No write concern mode named '%s' found in replica set configuration", w.mode).WithExtra("errInfo", w.info())
	case w.mode == "" && w.number > 1:
		return mongoerr.New(mongoerr.UnsatisfiableWriteConcern, "Not enough data-bearing nodes").WithExtra("errInfo", w.info())
	}
	return nil
}

// info is the write concern in an error.
func (w writeConcern) info() bson.D {
	d := bson.D{{Key: "w", Value: int32(w.number)}}
	if w.mode != "" {
		d[0].Value = w.mode
	}
	if w.journal {
		d = append(d, bson.E{Key: "j", Value: true})
	}
	if w.fsync {
		d = append(d, bson.E{Key: "fsync", Value: true})
	}
	d = append(d, bson.E{Key: "wtimeout", Value: int32(w.timeout)}, bson.E{Key: "provenance", Value: "clientSupplied"})
	return bson.D{{Key: "writeConcern", Value: d}}
}

// silent reports that the client does not want to know how its write went.
func (w writeConcern) silent() bool {
	return w.given && w.mode == "" && w.number == 0 && !w.journal && !w.fsync
}

// journaled reports that a write is acknowledged when it is in the journal.
func (w writeConcern) journaled() bool { return w.journal || w.fsync }

// errWaitedEnough ends the wait for a write concern with a wtimeout.
var errWaitedEnough = errors.New("wtimeout has passed")

// awaitMajority waits for a majority, or for the journal, where the client of a write does; within a transaction, only its end waits,
// and an aggregate only where it writes. A wait that is given up is an error of the write concern: the write is done.
func (c *Call) awaitMajority(ctx context.Context, r *Reply) error {
	w := c.Generic.writeConcern
	await := c.Server.Engine.AwaitMajority
	if !c.majority() {
		await = c.Server.Engine.AwaitJournal
	}
	if !c.command.Waits || c.Txn != nil || !c.majority() && !w.journaled() || c.Name == "aggregate" && !c.writesOut() {
		return nil
	}
	waiting := ctx
	if w.timeout > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeoutCause(ctx, time.Duration(w.timeout)*time.Millisecond, errWaitedEnough)
		defer cancel()
	}
	err := timedOut(ctx, await(waiting))
	switch {
	case errors.Is(err, errWaitedEnough):
		r.writeConcernError(mongoerr.New(mongoerr.WriteConcernFailed, "waiting for replication timed out").
			WithExtra("errInfo", append(bson.D{{Key: "wtimeout", Value: true}}, w.info()...)))
	case mongoerr.Is(err, mongoerr.MaxTimeMSExpired):
		r.writeConcernError(mongoerr.From(err))
	default:
		return err
	}
	return nil
}
