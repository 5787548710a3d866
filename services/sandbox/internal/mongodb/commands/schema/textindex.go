package schema

import (
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func isTextIndex(key bson.Raw) bool {
	for it := bsonkit.Iterate(key); it.Next(); {
		if kind, ok := it.Value().StringValueOK(); ok && kind == "text" {
			return true
		}
	}
	return false
}

// textIndex writes the key and the options of a text index as the server does
// (https://www.mongodb.com/docs/v4.4/core/index-text/): the fields become
// weights. Nothing can be searched by it: $text is refused.
func textIndex(a *command.Arguments, q *indexRequest) {
	if _, done := bsonkit.Get(q.key, storage.TextField); done {
		return
	}
	weights := map[string]int32{}
	for i, option := range q.others {
		if option.Key != "weights" {
			continue
		}
		given, _ := option.Value.(bson.RawValue)
		for it := bsonkit.Iterate(a.Document("weights", given)); it.Next(); {
			weights[string(it.Key())] = int32(a.Integer("weights", it.Value()))
		}
		q.others = slices.Delete(q.others, i, i+1)
		break
	}
	if !q.collation.IsSimple() {
		a.Fail(mongoerr.CannotCreateIndex, "Index type 'text' does not support collation: %s", q.collation.Spec())
	}
	key := bsoncore.NewDocumentBuilder()
	replaced := false
	for it := bsonkit.Iterate(q.key); it.Next(); {
		name, v := string(it.Key()), it.Value()
		if _, text := v.StringValueOK(); !text {
			key.AppendValue(name, bsoncore.Value{Type: bsoncore.Type(v.Type), Data: v.Value})
			continue
		}
		if weights[name] == 0 {
			weights[name] = 1
		}
		if !replaced {
			key.AppendString(storage.TextField, "text").AppendInt32("_ftsx", 1)
			replaced = true
		}
	}
	q.key = bson.Raw(key.Build())
	listed := bson.D{}
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		listed = append(listed, bson.E{Key: name, Value: weights[name]})
	}
	q.others = append(q.others, bson.E{Key: "weights", Value: listed})
	for _, option := range []bson.E{
		{Key: "default_language", Value: "english"},
		{Key: "language_override", Value: "language"},
		{Key: "textIndexVersion", Value: int32(3)},
	} {
		if !slices.ContainsFunc(q.others, func(e bson.E) bool { return e.Key == option.Key }) {
			q.others = append(q.others, option)
		}
	}
}
