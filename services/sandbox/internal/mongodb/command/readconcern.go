package command

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// ReadConcern says how settled what a command reads has to be
// (https://www.mongodb.com/docs/v4.4/reference/read-concern/).
type readConcern struct {
	given bool
	// Level is empty where none is named: it is local then.
	Level string
	// after is a cluster time that what is read must include, at the one that it
	// must show; nil for none.
	after, at *oplog.Timestamp
	// Text is the read concern as the client wrote it.
	Text bson.Raw
}

// readLevels says which levels, other than local, a command takes.
type readLevels uint8

// The zero readLevels is of any command: the level local changes nothing.
const (
	// SettledReads takes all levels outside a transaction but snapshot.
	SettledReads readLevels = iota + 1
	// AnyReads takes snapshot as well, where the version has it.
	AnyReads
)

func (a *Arguments) readConcern(v bson.RawValue) readConcern {
	doc, ok := v.DocumentOK()
	if !ok {
		a.Fail(mongoerr.FailedToParse, "readConcern field should be an object")
		return readConcern{}
	}
	rc := readConcern{given: true, Text: doc}
	for it := bsonkit.Iterate(doc); it.Next(); {
		switch name, v := string(it.Key()), it.Value(); name {
		case "level":
			rc.Level = a.fieldText(name, v)
			a.readLevel(rc.Level)
		case "afterClusterTime":
			rc.after = a.clusterTime(name, v)
		case "atClusterTime":
			rc.at = a.clusterTime(name, v)
		case "afterOpTime":
			a.fieldDocument(name, v)
		case "provenance":
			a.provenance("readConcern", v)
		default:
			a.Fail(mongoerr.InvalidOptions, "Unrecognized option in readConcern: %s", name)
		}
	}
	switch {
	case rc.after != nil && (rc.Level == "available" || rc.Level == "linearizable"):
		a.Fail(mongoerr.InvalidOptions, "afterClusterTime field can be set only if level is equal to majority, local, or snapshot")
	case rc.at != nil && rc.Level != "snapshot":
		a.Fail(mongoerr.InvalidOptions, "atClusterTime field can be set only if level is equal to snapshot")
	case rc.at != nil && rc.after != nil:
		a.Fail(mongoerr.InvalidOptions, "Specifying a timestamp for both atClusterTime and afterClusterTime is not allowed")
	}
	return rc
}

func (a *Arguments) readLevel(level string) {
	switch level {
	case "local", "available", "majority", "linearizable", "snapshot":
	default:
		a.Fail(mongoerr.FailedToParse,
			"readConcern.level must be either 'local', 'majority', 'linearizable', 'available', or 'snapshot'")
	}
}

// clusterTime reads a timestamp that must not be null.
func (a *Arguments) clusterTime(name string, v bson.RawValue) *oplog.Timestamp {
	t, i, ok := v.TimestampOK()
	if !ok {
		a.wrongFieldType(name, v, "timestamp")
		return nil
	}
	if t == 0 && i == 0 {
		a.Fail(mongoerr.InvalidOptions, "%s cannot be a null timestamp", name)
	}
	at := oplog.NewTimestamp(t, i)
	return &at
}

// provenance says where a concern comes from; drivers never send it.
func (a *Arguments) provenance(of string, v bson.RawValue) {
	switch from := a.Text(of+".provenance", v); from {
	case "clientSupplied", "implicitDefault", "customDefault", "getLastErrorDefaults", "":
	default:
		a.Fail(mongoerr.BadValue, "Enumeration value '%s' for field '%s.provenance' is not a valid value.", from, of)
	}
}

// checkReadConcern refuses what the command, or its place in a transaction, does
// not take.
func (g *generic) checkReadConcern(c *Command) error {
	rc := g.ReadConcern
	if !rc.given {
		return nil
	}
	if g.InTransaction() {
		return rc.checkInTransaction(g.startTransaction)
	}
	if rc.Level == "" || rc.Level == "local" || c.Reads == AnyReads && rc.Level != "snapshot" ||
		c.Reads == SettledReads && rc.Level != "snapshot" {
		return nil
	}
	return mongoerr.New(mongoerr.InvalidOptions, "Command does not support this readConcern: %s :: caused by :: read concern not supported",
		bsonkit.Describe(bsonkit.Document(rc.Text)))
}

func (rc readConcern) checkInTransaction(starts bool) error {
	switch {
	case !starts && (rc.Level != "" || rc.after != nil || rc.at != nil):
		return mongoerr.New(mongoerr.InvalidOptions,
			"Only the first command in a transaction may specify a readConcern")
	case rc.Level == "available" || rc.Level == "linearizable":
		return mongoerr.New(mongoerr.InvalidOptions,
			"The readConcern level must be either 'local' (default), 'majority' or 'snapshot' in order to run in a transaction")
	}
	return nil
}

// majority reports a level that shows only what a majority has.
func (rc readConcern) majority() bool {
	return rc.Level == "majority" || rc.Level == "linearizable" || rc.Level == "snapshot"
}

// reached refuses a time to wait for that has not been given out yet, and one to
// read at that has passed: there is no history to read.
func (c *Call) reached() error {
	now := c.Server.Engine.OperationTime()
	for _, wanted := range []*oplog.Timestamp{c.Generic.ReadConcern.after, c.Generic.ReadConcern.at} {
		if wanted != nil && *wanted > now {
			return mongoerr.New(mongoerr.InvalidOptions,
				"readConcern afterClusterTime value must not be greater than the current clusterTime. "+
					"Requested clusterTime: %s; current clusterTime: %s", *wanted, now)
		}
	}
	if at := c.Generic.ReadConcern.at; at != nil && *at < now {
		return mongoerr.New(mongoerr.SnapshotTooOld, "Read timestamp %s is older than the oldest available timestamp.", *at)
	}
	return nil
}

// awaitRead waits until a majority has what the command is to show: all that was
// written where it is linearizable, or what was written up to a time.
func (c *Call) awaitRead(ctx context.Context) error {
	rc, e := c.Generic.ReadConcern, c.Server.Engine
	switch {
	case !rc.majority() || c.Generic.InTransaction():
		return nil
	case rc.Level == "linearizable":
		return e.AwaitTime(ctx, e.OperationTime())
	case rc.after != nil:
		return e.AwaitTime(ctx, *rc.after)
	}
	return nil
}
