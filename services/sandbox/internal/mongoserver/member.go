package mongoserver

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/mongoerr"
)

// member says which members of a replica set run a command; the zero member is
// any.
type member uint8

const (
	// primaryOnly commands write.
	primaryOnly member = iota + 1
	// primaryUnlessTold commands read: a secondary runs them for clients whose
	// read preference allows it.
	primaryUnlessTold
)

// assignMembers says of each command which members run it.
func assignMembers(commands map[string]*command) {
	for _, name := range []string{
		"abortTransaction", "collMod", "commitTransaction", "create", "createIndexes", "createRole", "createUser", "delete",
		"drop", "dropDatabase", "dropIndexes", "dropRole", "dropUser", "findAndModify", "insert", "renameCollection",
		"update", "updateRole", "updateUser",
	} {
		commands[name].member = primaryOnly
	}
	for _, name := range []string{
		"aggregate", "collStats", "count", "dbStats", "distinct", "find", "listCollections", "listDatabases", "listIndexes",
	} {
		commands[name].member = primaryUnlessTold
	}
}

// enter lets a command in that this member may run at present. leave is to be
// called when it has run.
func (c *call) enter() (leave func(), err error) {
	if c.writes() {
		return c.server.election.enter()
	}
	if c.command.member == primaryUnlessTold && !c.secondaryOK() && !c.server.election.now().primary {
		return nil, mongoerr.New(mongoerr.NotPrimaryNoSecondaryOk, "not master and slaveOk=false")
	}
	return func() {}, nil
}

// writes tells commands that only a primary can run: those that write, and all
// of a transaction.
func (c *call) writes() bool {
	if c.command.member == primaryOnly || c.generic.inTransaction() {
		return true
	}
	return c.name == "aggregate" && storesResults(arrayOf(c.body, "pipeline"))
}

func storesResults(pipeline bson.Raw) (stores bool) {
	eachStage(pipeline, func(name string, _ bson.RawValue) { stores = stores || isOutStage(name) })
	return stores
}

// secondaryOK reports that the client's read preference allows a secondary.
func (c *call) secondaryOK() bool {
	mode, given := bsonkit.Lookup(c.body, "$readPreference.mode")
	name, _ := mode.StringValueOK()
	return given && name != "primary"
}
