package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// member says which members of a replica set run a command; the zero member is
// any.
type member uint8

const (
	// PrimaryOnly commands write.
	PrimaryOnly member = iota + 1
	// PrimaryUnlessTold commands read: a secondary runs them for clients whose
	// read preference allows it.
	PrimaryUnlessTold
)

// enter lets a command in that this member may run at present. leave is to be
// called when it has run.
func (c *Call) enter() (leave func(), err error) {
	if c.writes() {
		return c.Server.Election.Enter()
	}
	if c.command.Member == PrimaryUnlessTold && !c.secondaryOK() && !c.Server.Election.Now().Primary {
		return nil, mongoerr.New(mongoerr.NotPrimaryNoSecondaryOk, "not master and slaveOk=false")
	}
	return func() {}, nil
}

// writes tells commands that only a primary can run: those that write, and all
// of a transaction.
func (c *Call) writes() bool {
	if c.command.Member == PrimaryOnly || c.Generic.InTransaction() {
		return true
	}
	return c.Name == "aggregate" && storesResults(ArrayOf(c.Body, "pipeline"))
}

func storesResults(pipeline bson.Raw) (stores bool) {
	EachStage(pipeline, func(name string, _ bson.RawValue) { stores = stores || IsOutStage(name) })
	return stores
}

// secondaryOK reports that the client's read preference allows a secondary.
func (c *Call) secondaryOK() bool {
	mode, given := bsonkit.Lookup(c.Body, "$readPreference.mode")
	name, _ := mode.StringValueOK()
	return given && name != "primary"
}
