package command

import (
	"math"
	"slices"

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

// leastStaleness is the shortest maxStalenessSeconds, in seconds.
const leastStaleness = 90

// readPreference refuses one that cannot be
// (https://www.mongodb.com/docs/v4.4/core/read-preference/).
func (a *Arguments) readPreference(v bson.RawValue) {
	doc, ok := v.DocumentOK()
	if !ok {
		a.Fail(mongoerr.TypeMismatch, "$readPreference has incorrect type: expected object but got %s", bsonkit.TypeName(v.Type))
		return
	}
	var mode string
	var staleness int64
	given, hedged, tagged := false, false, false
	for it := bsonkit.Iterate(doc); it.Next(); {
		switch name, v := string(it.Key()), it.Value(); name {
		case "mode":
			mode, given = a.fieldText(name, v), true
		case "hedge":
			hedged = hedges(v)
		case "tags":
			tagged = a.tags(v)
		case "maxStalenessSeconds":
			staleness = a.staleness(v)
		}
	}
	primary := mode == "primary"
	switch {
	case !given:
		a.Fail(mongoerr.NoSuchKey, "Missing expected field \"mode\"")
	case !slices.Contains([]string{"primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"}, mode):
		a.Fail(mongoerr.BadValue, "Could not parse $readPreference mode '%s'.", mode)
	case primary && hedged:
		a.Fail(mongoerr.InvalidOptions, "cannot enable hedging for $readPreference mode \"primaryOnly\"")
	case primary && tagged:
		a.Fail(mongoerr.BadValue, "Only empty tags are allowed with primary read preference")
	case staleness < 0:
		a.Fail(mongoerr.BadValue, "maxStalenessSeconds must be a non-negative integer")
	case staleness > 0 && staleness < leastStaleness:
		a.Fail(mongoerr.MaxStalenessOutOfRange, "maxStalenessSeconds value can not be less than %d", leastStaleness)
	case primary && staleness > 0:
		a.Fail(mongoerr.BadValue, "maxStalenessSeconds can not be set for the primary mode")
	}
}

// hedges reads whether a read is to be sent to two members: it is unless told.
func hedges(v bson.RawValue) bool {
	enabled, given := bsonkit.Lookup(v.Value, "enabled")
	return v.Type == bson.TypeEmbeddedDocument && (!given || bsonkit.Truthy(enabled))
}

// tags reads whether there is a tag: one set without any is any member.
func (a *Arguments) tags(v bson.RawValue) bool {
	if v.Type != bson.TypeArray {
		a.wrongFieldType("tags", v, "array")
		return false
	}
	sets := a.Array("tags", v)
	return len(sets) > 1 || len(sets) == 1 && len(sets[0].Value) > len(bsonkit.Empty)
}

func (a *Arguments) staleness(v bson.RawValue) int64 {
	f, ok := v.AsFloat64OK()
	switch {
	case !ok:
		a.wrongFieldType("maxStalenessSeconds", v, "number")
	case f != math.Trunc(f):
		a.Fail(mongoerr.BadValue, "Expected field \"maxStalenessSeconds\" to have a value exactly representable as a 64-bit integer, but found %v", f)
	}
	return int64(f)
}
