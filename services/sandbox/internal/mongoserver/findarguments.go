package mongoserver

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
	"changerelay/services/sandbox/internal/query/collation"
)

// findArguments are those of find.
type findArguments struct {
	filter, sort, projection bson.Raw
	min, max                 bson.Raw
	hint                     engine.Hint
	skip, limit              int64
	batchSize                int
	single                   bool
	collation                *collation.Collation
	returnKey, showRecordID  bool
	tailable, awaitData      bool
}

func (c *call) parseFind() (findArguments, error) {
	f := findArguments{batchSize: firstBatch}
	a := arguments{mismatch: mongoerr.FailedToParse}
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.name, "allowDiskUse", "allowPartialResults", "noCursorTimeout", "oplogReplay":
		case "filter":
			f.filter = a.document(name, v)
		case "sort":
			f.sort = a.document(name, v)
		case "projection":
			f.projection = a.document(name, v)
		case "hint":
			f.hint = a.hint(name, v)
		case "skip":
			f.skip = a.count(name, v)
		case "limit":
			f.limit = a.count(name, v)
		case "batchSize":
			f.batchSize = int(min(a.count(name, v), noLimit))
		case "singleBatch":
			f.single = a.boolean(name, v)
		case "collation":
			f.collation = a.collation(v)
		case "tailable":
			f.tailable = a.boolean(name, v)
		case "awaitData":
			f.awaitData = a.boolean(name, v)
		case "returnKey":
			f.returnKey = a.boolean(name, v)
		case "showRecordId":
			f.showRecordID = a.boolean(name, v)
		case "min":
			f.min = a.document(name, v)
		case "max":
			f.max = a.document(name, v)
		default:
			if !isGeneric(name) {
				a.fail(mongoerr.FailedToParse, "Failed to parse: Unrecognized field '%s'.", name)
			}
		}
	}
	f.refuse(&a)
	return f, a.err
}

// refuse finds arguments that do not go together, and puts the bounds into the
// hint that they need.
func (f *findArguments) refuse(a *arguments) {
	if len(f.min) > len(emptyDocument) {
		f.hint.Min = f.min
	}
	if len(f.max) > len(emptyDocument) {
		f.hint.Max = f.max
	}
	bounded := f.hint.Min != nil || f.hint.Max != nil
	switch {
	case bounded && f.hint.IsZero():
		a.fail(51173, "When using min()/max() a hint of which index to use must be provided")
	case f.awaitData && !f.tailable:
		a.fail(mongoerr.FailedToParse, "Cannot set 'awaitData' without also setting 'tailable'")
	case f.tailable && f.single:
		a.fail(mongoerr.BadValue, "cannot use tailable option with the 'singleBatch' option")
	case f.tailable && len(f.sort) > len(emptyDocument) && !f.naturally():
		a.fail(mongoerr.BadValue, "cannot use tailable option with a sort other than {$natural: 1}")
	}
}

// naturally tells a find in the order of insertion.
func (f *findArguments) naturally() bool {
	natural, _ := bsonkit.Get(f.sort, "$natural")
	n, _ := natural.AsInt64OK()
	return n > 0
}
