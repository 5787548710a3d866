package mongoserver

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/mongoerr"
)

// collation takes the simple collation, the only one there is, and any other
// where it changes nothing: no text is compared with the documents of what,
// and none is put in order.
func (a *arguments) collation(v bson.RawValue, ordered bool, what ...bson.Raw) {
	doc := a.document("collation", v)
	locale, there := bsonkit.Get(doc, "locale")
	if s, _ := locale.StringValueOK(); s == "simple" || len(doc) <= len(emptyDocument) {
		return
	}
	if !there {
		a.fail(mongoerr.FailedToParse, "Missing expected field \"locale\"")
		return
	}
	compares := ordered
	for _, filter := range what {
		compares = compares || comparesText(filter)
	}
	if compares {
		a.fail(mongoerr.NotImplemented, "collation %s is not supported", doc)
	}
}

// comparesText tells a filter that holds text, or that may compare fields with
// each other.
func comparesText(filter bson.Raw) bool {
	for it := bsonkit.Iterate(filter); it.Next(); {
		v := it.Value()
		switch v.Type {
		case bson.TypeString, bson.TypeSymbol:
			return true
		case bson.TypeEmbeddedDocument, bson.TypeArray:
			if string(it.Key()) == "$expr" || comparesText(v.Value) {
				return true
			}
		}
	}
	return false
}
