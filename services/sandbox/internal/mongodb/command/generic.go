package command

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// generic are the arguments that any command may have ("Generic command
// arguments" in the server).
type generic struct {
	db    string
	hasDB bool
	// lsid is {id: UUID, uid: Binary}; nil for none.
	lsid             bson.Raw
	TxnNumber        *int64
	startTransaction bool
	autocommit       *bool
	MaxTime          time.Duration
	ReadConcern      readConcern
	writeConcern     writeConcern
}

// IsGeneric tells argument names that parseGeneric deals with, or that change
// nothing.
func IsGeneric(name string) bool {
	switch name {
	case "$db", "lsid", "txnNumber", "startTransaction", "autocommit", "maxTimeMS", "readConcern", "writeConcern",
		"stmtId", "comment", "$clusterTime", "$readPreference", "$audit", "$client", "$configServerState", "$oplogQueryData",
		"$queryOptions", "$replData", "allowImplicitCollectionCreation", "coordinator", "databaseVersion", "help",
		"maxTimeMSOpOnly", "shardVersion", "tracking_info", "$topologyTime":
		return true
	}
	return false
}

func parseGeneric(body bson.Raw, owner []byte) (generic, error) {
	var g generic
	a := Arguments{Mismatch: mongoerr.TypeMismatch}
	for it := bsonkit.Iterate(body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "$db":
			g.db, g.hasDB = a.Text(name, v), true
		case "lsid":
			g.lsid = ParseSessionID(&a, v, owner)
		case "txnNumber":
			if number, ok := v.Int64OK(); ok {
				g.TxnNumber = &number
			} else {
				a.WrongType(name, v, "long")
			}
		case "startTransaction":
			if g.startTransaction = a.Boolean(name, v); a.Err == nil && !g.startTransaction {
				a.Fail(mongoerr.InvalidOptions, "Specifying startTransaction=false is not allowed.")
			}
		case "autocommit":
			autocommit := a.Boolean(name, v)
			g.autocommit = &autocommit
		case "maxTimeMS":
			g.MaxTime = a.Milliseconds(name, v)
		case "readConcern":
			g.ReadConcern = a.readConcern(v)
		case "writeConcern":
			g.writeConcern = a.writeConcern(v)
		case "$readPreference":
			a.readPreference(v)
		}
	}
	return g, a.Err
}

// ParseSessionID reads {id: UUID} and adds the uid of its owner: nobody has
// sessions of others.
func ParseSessionID(a *Arguments, v bson.RawValue, owner []byte) bson.Raw {
	doc := a.Document("lsid", v)
	if a.Err != nil {
		return nil
	}
	var id []byte
	for it := bsonkit.Iterate(doc); it.Next(); {
		switch name := string(it.Key()); name {
		case "id":
			subtype, data, ok := it.Value().BinaryOK()
			if !ok || subtype != bson.TypeBinaryUUID {
				a.WrongType("lsid.id", it.Value(), "binData (UUID)")
				return nil
			}
			if len(data) != 16 {
				a.Fail(mongoerr.InvalidUUID, "uuid must be a 16-byte binary field with UUID (4) subtype")
				return nil
			}
			id = data
		case "uid", "txnNumber", "txnUUID":
			// Those are the server's to say.
		default:
			a.Fail(40415, "BSON field 'OperationSessionInfo.lsid.%s' is an unknown field.", name)
			return nil
		}
	}
	if id == nil {
		a.Fail(40414, "BSON field 'OperationSessionInfo.lsid.id' is missing but a required field")
		return nil
	}
	return bson.Raw(bsoncore.NewDocumentBuilder().
		AppendBinary("id", bson.TypeBinaryUUID, id).
		AppendBinary("uid", bson.TypeBinaryGeneric, owner).
		Build())
}

func (g generic) InTransaction() bool { return g.autocommit != nil }

// check refuses arguments that do not go together, or not with the command.
func (c *Call) check() error {
	g := &c.Generic
	switch {
	case g.TxnNumber == nil && (g.autocommit != nil || g.startTransaction):
		return mongoerr.New(mongoerr.InvalidOptions, "'autocommit' and 'startTransaction' need a txnNumber")
	case g.TxnNumber != nil && g.lsid == nil:
		return mongoerr.New(mongoerr.InvalidOptions, "Transaction number requires a session ID to also be specified")
	case g.TxnNumber != nil && *g.TxnNumber < 0:
		return mongoerr.New(mongoerr.InvalidOptions, "Transaction number cannot be negative")
	case g.autocommit != nil && *g.autocommit:
		return mongoerr.New(mongoerr.InvalidOptions, "Specifying autocommit=true is not allowed.")
	case g.startTransaction && g.autocommit == nil:
		return mongoerr.New(mongoerr.InvalidOptions, "'startTransaction' field requires 'autocommit' field to also be specified")
	case !g.InTransaction() && g.TxnNumber != nil && !c.command.Write:
		return mongoerr.New(50768, "txnNumber may only be provided for multi-document transactions and retryable write commands. "+
			"autocommit:false was not provided, and %s is not a retryable write command.", c.Name)
	}
	if g.InTransaction() {
		if err := c.checkInTransaction(); err != nil {
			return err
		}
	}
	if err := g.checkReadConcern(c.command); err != nil {
		return err
	}
	return g.checkWriteConcern(c.command)
}

// checkInTransaction refuses what cannot be run in a transaction
// (https://www.mongodb.com/docs/v4.4/core/transactions/#restricted-operations).
func (c *Call) checkInTransaction() error {
	switch {
	case !c.command.InTransaction:
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "Cannot run '%s' in a multi-document transaction.", c.Name)
	case c.command.Admin && c.Generic.startTransaction:
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "Cannot start a transaction with %s", c.Name)
	case c.command.Admin: // it ends the transaction
		return nil
	case c.DB == "admin" || c.DB == "config" || c.DB == "local":
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction,
			"Cannot run command against the '%s' database in a transaction.", c.DB)
	case c.Generic.startTransaction && c.Name == "killCursors":
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction,
			"Cannot run killCursors as the first operation in a multi-document transaction.")
	}
	return nil
}
