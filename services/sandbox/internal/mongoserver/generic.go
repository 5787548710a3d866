package mongoserver

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/mongoerr"
)

// generic are the arguments that any command may have ("Generic command
// arguments" in the server).
type generic struct {
	db    string
	hasDB bool
	// lsid is {id: UUID, uid: Binary}; nil for none.
	lsid             bson.Raw
	txnNumber        *int64
	startTransaction bool
	autocommit       *bool
	maxTime          time.Duration
	readConcern      bson.Raw
	writeConcern     bson.Raw
	// unsatisfied is a write concern that one member can not fulfil. The write
	// is done all the same, and reported so.
	unsatisfied *mongoerr.Error
}

// isGeneric tells argument names that parseGeneric deals with, or that change
// nothing.
func isGeneric(name string) bool {
	switch name {
	case "$db", "lsid", "txnNumber", "startTransaction", "autocommit", "maxTimeMS", "readConcern", "writeConcern",
		"comment", "$clusterTime", "$readPreference", "$audit", "$client", "$configServerState", "$oplogQueryData",
		"$queryOptions", "$replData", "allowImplicitCollectionCreation", "coordinator", "databaseVersion", "help",
		"maxTimeMSOpOnly", "shardVersion", "tracking_info", "$topologyTime":
		return true
	}
	return false
}

func parseGeneric(body bson.Raw, owner []byte) (generic, error) {
	var g generic
	a := arguments{mismatch: mongoerr.TypeMismatch}
	for it := bsonkit.Iterate(body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "$db":
			g.db, g.hasDB = a.text(name, v), true
		case "lsid":
			g.lsid = parseSessionID(&a, v, owner)
		case "txnNumber":
			if number, ok := v.Int64OK(); ok {
				g.txnNumber = &number
			} else {
				a.wrongType(name, v, "long")
			}
		case "startTransaction":
			g.startTransaction = a.boolean(name, v)
		case "autocommit":
			autocommit := a.boolean(name, v)
			g.autocommit = &autocommit
		case "maxTimeMS":
			g.maxTime = a.milliseconds(name, v)
		case "readConcern":
			g.readConcern = a.document(name, v)
		case "writeConcern":
			g.writeConcern = a.document(name, v)
		}
	}
	return g, a.err
}

// parseSessionID reads {id: UUID} and adds the uid of its owner: nobody has
// sessions of others.
func parseSessionID(a *arguments, v bson.RawValue, owner []byte) bson.Raw {
	doc := a.document("lsid", v)
	if a.err != nil {
		return nil
	}
	var id []byte
	for it := bsonkit.Iterate(doc); it.Next(); {
		switch name := string(it.Key()); name {
		case "id":
			subtype, data, ok := it.Value().BinaryOK()
			if !ok || subtype != bson.TypeBinaryUUID || len(data) != 16 {
				a.wrongType("lsid.id", it.Value(), "binData (UUID)")
				return nil
			}
			id = data
		case "uid", "txnNumber", "txnUUID":
			// Those are the server's to say.
		default:
			a.fail(40415, "BSON field 'OperationSessionInfo.lsid.%s' is an unknown field.", name)
			return nil
		}
	}
	if id == nil {
		a.fail(40414, "BSON field 'OperationSessionInfo.lsid.id' is missing but a required field")
		return nil
	}
	return bson.Raw(bsoncore.NewDocumentBuilder().
		AppendBinary("id", bson.TypeBinaryUUID, id).
		AppendBinary("uid", bson.TypeBinaryGeneric, owner).
		Build())
}

func (g generic) inTransaction() bool { return g.autocommit != nil }

// check refuses arguments that do not go together, or not with the command.
func (g *generic) check(c *command) error {
	switch {
	case g.txnNumber == nil && (g.autocommit != nil || g.startTransaction):
		return mongoerr.New(mongoerr.InvalidOptions, "'autocommit' and 'startTransaction' need a txnNumber")
	case g.txnNumber != nil && g.lsid == nil:
		return mongoerr.New(mongoerr.InvalidOptions, "Transaction number requires a session ID to also be specified")
	case g.txnNumber != nil && *g.txnNumber < 0:
		return mongoerr.New(mongoerr.InvalidOptions, "Transaction number cannot be negative")
	case g.autocommit != nil && *g.autocommit:
		return mongoerr.New(mongoerr.InvalidOptions, "Specifying autocommit=true is not allowed.")
	case g.startTransaction && g.autocommit == nil:
		return mongoerr.New(mongoerr.InvalidOptions, "'startTransaction' field requires 'autocommit' field to also be specified")
	case g.inTransaction() && !c.inTransaction:
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "the command can not be run in a transaction")
	case !g.inTransaction() && g.txnNumber != nil && !c.write:
		return mongoerr.New(50768, "the command cannot be part of a retryable write")
	}
	if err := g.checkReadConcern(); err != nil {
		return err
	}
	return g.checkWriteConcern(c)
}

func (g generic) checkReadConcern() error {
	if g.inTransaction() && !g.startTransaction && g.readConcern != nil {
		return mongoerr.New(mongoerr.InvalidOptions,
			"Only the first command in a transaction may specify a readConcern")
	}
	for it := bsonkit.Iterate(g.readConcern); it.Next(); {
		switch name := string(it.Key()); name {
		case "level":
			level, ok := it.Value().StringValueOK()
			if !ok {
				return mongoerr.New(mongoerr.TypeMismatch, "\"level\" had the wrong type. Expected string, found %s", it.Value().Type)
			}
			if err := g.checkLevel(level); err != nil {
				return err
			}
		case "afterClusterTime", "atClusterTime":
			if it.Value().Type != bson.TypeTimestamp {
				return mongoerr.New(mongoerr.TypeMismatch, "\"%s\" had the wrong type. Expected timestamp, found %s", name, it.Value().Type)
			}
		case "provenance", "afterOpTime":
		default:
			return mongoerr.New(mongoerr.InvalidOptions, "Unrecognized option in readConcern: %s", name)
		}
	}
	return nil
}

func (g generic) checkLevel(level string) error {
	switch level {
	case "local", "majority":
		return nil
	case "available", "linearizable":
		if !g.inTransaction() {
			return nil
		}
		return mongoerr.New(mongoerr.InvalidOptions, "readConcern level '%s' is not supported in a transaction", level)
	case "snapshot":
		if g.inTransaction() {
			return nil
		}
		return mongoerr.New(mongoerr.InvalidOptions, "readConcern level snapshot is only valid in a transaction")
	default:
		return mongoerr.New(mongoerr.FailedToParse,
			"readConcern.level must be either 'local', 'majority', 'linearizable', 'available', or 'snapshot'")
	}
}

func (g *generic) checkWriteConcern(c *command) error {
	if g.writeConcern == nil {
		return nil
	}
	if g.inTransaction() && !c.admin {
		return mongoerr.New(mongoerr.InvalidOptions,
			"writeConcern is not allowed within a multi-statement transaction")
	}
	for it := bsonkit.Iterate(g.writeConcern); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "w":
			if err := g.checkW(v); err != nil {
				return err
			}
		case "j", "fsync", "wtimeout", "provenance", "getLastError":
		default:
			return mongoerr.New(mongoerr.FailedToParse, "unrecognized write concern field: %s", name)
		}
	}
	return nil
}

func (g *generic) checkW(v bson.RawValue) error {
	if mode, ok := v.StringValueOK(); ok {
		if mode != "majority" {
			g.unsatisfied = mongoerr.New(mongoerr.UnknownReplWriteConcern,
				"No write concern mode named '%s' found in replica set configuration", mode)
		}
		return nil
	}
	n, ok := v.AsInt64OK()
	switch {
	case !ok:
		return mongoerr.New(mongoerr.FailedToParse, "w has to be a number or a string")
	case n < 0 || n > 50:
		return mongoerr.New(mongoerr.FailedToParse, "w has to be a non-negative number and not greater than 50")
	case n > 1:
		g.unsatisfied = mongoerr.New(unsatisfiableWriteConcern, "Not enough data-bearing nodes")
	}
	return nil
}

const unsatisfiableWriteConcern mongoerr.Code = 100
