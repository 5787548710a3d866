package data

import (
	"bytes"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
)

// findArguments are those of find.
type findArguments struct {
	filter, sort, projection bson.Raw
	min, max                 bson.Raw
	hint                     storage.Hint
	skip, limit              int64
	batchSize                int
	single                   bool
	collation                *collation.Collation
	returnKey, showRecordID  bool
	tailable, awaitData      bool
	spills                   bool
	// ofCursors is an option that is heeded by nothing here.
	ofCursors string
}

func parseFind(c *command.Call, body bson.Raw) (findArguments, error) {
	f := findArguments{batchSize: command.FirstBatch}
	a := command.Arguments{Mismatch: mongoerr.FailedToParse}
	for it := bsonkit.Iterate(body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		if v.Type == bson.TypeNull && !c.Server.Version.Has(5) {
			notNull(&a, name, v)
		}
		switch name {
		case "find":
		case "allowDiskUse":
			f.spills = a.Boolean(name, v)
		case "allowPartialResults", "noCursorTimeout", "oplogReplay":
			if a.Boolean(name, v) && name != "oplogReplay" {
				f.ofCursors = name
			}
		case "filter":
			f.filter = a.Document(name, v)
		case "sort":
			f.sort = a.Document(name, v)
		case "projection":
			f.projection = a.Document(name, v)
		case "hint":
			f.hint = a.Hint(name, v)
		case "skip":
			f.skip = a.Count(name, v)
		case "limit":
			f.limit = a.Count(name, v)
		case "batchSize":
			f.batchSize = int(min(a.Count(name, v), command.NoLimit))
		case "singleBatch":
			f.single = a.Boolean(name, v)
		case "collation":
			f.collation = a.Collation(v)
		case "tailable":
			f.tailable = a.Boolean(name, v)
		case "awaitData":
			f.awaitData = a.Boolean(name, v)
		case "returnKey":
			f.returnKey = a.Boolean(name, v)
		case "showRecordId":
			f.showRecordID = a.Boolean(name, v)
		case "min":
			f.min = a.Document(name, v)
		case "max":
			f.max = a.Document(name, v)
		default:
			if !command.IsGeneric(name) && !c.TakesLet(&a, name, v) {
				a.Fail(mongoerr.FailedToParse, "Failed to parse: Unrecognized field '%s'.", name)
			}
		}
	}
	f.refuse(&a)
	return f, a.Err
}

// notNull refuses null where a find needs a document: only since 5.0 it stands
// for none.
func notNull(a *command.Arguments, name string, v bson.RawValue) {
	switch name {
	case "filter", "sort", "projection", "min", "max", "collation":
		a.WrongType(name, v, "object")
	}
}

// refuse finds arguments that do not go together, and puts the bounds into the
// hint that they need.
func (f *findArguments) refuse(a *command.Arguments) {
	if len(f.min) > len(bsonkit.Empty) {
		f.hint.Min = f.min
	}
	if len(f.max) > len(bsonkit.Empty) {
		f.hint.Max = f.max
	}
	bounded := f.hint.Min != nil || f.hint.Max != nil
	natural, naturalSort := bsonkit.Get(f.sort, "$natural")
	direction, _ := natural.AsInt64OK()
	switch {
	case f.hint.Min != nil && f.hint.Max != nil && !sameNames(f.hint.Min, f.hint.Max):
		a.Fail(51176, "min and max must have the same field names")
	case naturalSort && countFields(f.sort) > 1:
		a.Fail(mongoerr.BadValue, "Cannot include '$natural' in compound sort: %s", bsonkit.Describe(bsonkit.Document(f.sort)))
	case naturalSort && !f.hint.IsZero() && !f.hint.Natural:
		a.Fail(mongoerr.BadValue, "index hint not allowed with $natural sort order")
	case naturalSort && f.hint.Natural && f.hint.Reverse != (direction < 0):
		a.Fail(mongoerr.BadValue, "$natural hint must be in the same direction as $natural sort order")
	case bounded && f.hint.IsZero():
		a.Fail(51173, "When using min()/max() a hint of which index to use must be provided")
	case f.awaitData && !f.tailable:
		a.Fail(mongoerr.FailedToParse, "Cannot set 'awaitData' without also setting 'tailable'")
	case f.tailable && f.single:
		a.Fail(mongoerr.BadValue, "cannot use tailable option with the 'singleBatch' option")
	case f.tailable && len(f.sort) > len(bsonkit.Empty) && !f.naturally():
		a.Fail(mongoerr.BadValue, "cannot use tailable option with a sort other than {$natural: 1}")
	}
}

// sameNames reports that two documents have the same fields in the same order.
func sameNames(a, b bson.Raw) bool {
	first, second := bsonkit.Iterate(a), bsonkit.Iterate(b)
	for {
		more, other := first.Next(), second.Next()
		if more != other || more && !bytes.Equal(first.Key(), second.Key()) {
			return false
		}
		if !more {
			return true
		}
	}
}

func countFields(doc bson.Raw) int {
	n := 0
	for it := bsonkit.Iterate(doc); it.Next(); {
		n++
	}
	return n
}

// notOfViews refuses what a find on a view cannot have, as it is an aggregation.
func (f *findArguments) notOfViews() error {
	_, natural := bsonkit.Get(f.sort, "$natural")
	for _, option := range []struct {
		name  string
		given bool
	}{
		{"Option min", f.hint.Min != nil},
		{"Option max", f.hint.Max != nil},
		{"Option returnKey", f.returnKey},
		{"Option showRecordId", f.showRecordID},
		{"Option tailable", f.tailable},
		{"Option " + f.ofCursors, f.ofCursors != ""},
		{"Sort option $natural", natural},
		{"Option singleBatch", f.single && f.limit != 1},
	} {
		if option.given {
			return mongoerr.New(mongoerr.InvalidPipelineOperator, "%s not supported in aggregation.", option.name)
		}
	}
	return nil
}

// naturally tells a find in the order of insertion.
func (f *findArguments) naturally() bool {
	natural, _ := bsonkit.Get(f.sort, "$natural")
	n, _ := natural.AsInt64OK()
	return n > 0
}

// stages are a find on a view as a pipeline.
func (f findArguments) stages() []bson.Raw {
	return slices.Concat(command.StageOf("$match", f.filter), command.StageOf("$sort", f.sort), countStage("$skip", f.skip),
		countStage("$limit", f.limit), command.StageOf("$project", f.projection))
}

// countStage makes a stage with a number; nil for 0.
func countStage(name string, n int64) []bson.Raw {
	if n == 0 {
		return nil
	}
	return []bson.Raw{bson.Raw(bsoncore.NewDocumentBuilder().AppendInt64(name, n).Build())}
}
