package engine

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
)

// What an expanded event has beside its kind and place
// (https://www.mongodb.com/docs/v6.0/reference/change-events/): the fields
// operationDescription and stateBeforeChange.

// createDescription has the options and the index of _id.
func createDescription(coll *collection) bson.Raw {
	b := bsonkit.NewBuilder(nil)
	for it := bsonkit.Iterate(coll.options.Listed); it.Next(); {
		b.Append(string(it.Key()), it.Value())
	}
	b.Append("idIndex", bsonkit.Document(coll.table.Indexes[0].Spec.Listed))
	return described(b.Finish()).Finish()
}

func indexesDescription(listed []bson.Raw) bson.Raw {
	values := make([]bson.RawValue, len(listed))
	for i, spec := range listed {
		values[i] = bsonkit.Document(spec)
	}
	b := bsonkit.NewBuilder(nil)
	b.Append("indexes", bsonkit.Array(values))
	return described(b.Finish()).Finish()
}

func modifyDescription(what, before bson.Raw) bson.Raw {
	b := described(what)
	b.Append("stateBeforeChange", bsonkit.Document(before))
	return b.Finish()
}

func described(what bson.Raw) *bsonkit.Builder {
	b := bsonkit.NewBuilder(nil)
	b.Append("operationDescription", bsonkit.Document(what))
	return b
}

// indexed is the change that builds indexes.
func (coll *collection) indexed(listed []bson.Raw) oplog.Change {
	return oplog.Change{
		Entry:  oplog.Entry{Operation: oplog.OpCreateIndexes, NS: coll.ns, UUID: coll.uuid, Further: indexesDescription(listed)},
		Listed: listed,
	}
}

// stateBefore is what a collMod is about to change: the collection's options
// and, of an index, when its documents expire and whether it is hidden.
func (coll *collection) stateBefore(index bson.Raw) bson.Raw {
	options := bsonkit.NewBuilder(nil)
	options.Append("uuid", bson.RawValue{Type: bson.TypeBinary, Value: append([]byte{16, 0, 0, 0, 4}, coll.uuid[:]...)})
	for it := bsonkit.Iterate(coll.options.Listed); it.Next(); {
		options.Append(string(it.Key()), it.Value())
	}
	b := bsonkit.NewBuilder(nil)
	b.Append("collectionOptions", bsonkit.Document(options.Finish()))
	if index != nil {
		changeable := bsonkit.NewBuilder(nil)
		for _, name := range []string{"expireAfterSeconds", "hidden"} {
			v, there := bsonkit.Get(index, name)
			if !there && name == "hidden" {
				v = bsonkit.Boolean(false)
			}
			changeable.Append(name, v)
		}
		b.Append("indexOptions", bsonkit.Document(changeable.Finish()))
	}
	return b.Finish()
}
