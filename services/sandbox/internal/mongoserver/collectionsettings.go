package mongoserver

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
	"changerelay/services/sandbox/internal/query/collation"
)

// collectionSettings are the options of a collection: what create and collMod
// set and listCollections shows.
type collectionSettings struct {
	capped        bool
	size, most    int64
	validator     bson.Raw
	level, action string
	viewOn        string
	pipeline      []bson.Raw
	// images keeps documents as they were before and after each change.
	images bool
	// by is the collation of statements that name none.
	by *collation.Collation
	// others are options that do nothing here: they are listed as they came.
	others bson.D
}

// read takes one field; known is false if it is none of the options.
func (s *collectionSettings) read(a *arguments, name string, v bson.RawValue) (known bool) {
	switch name {
	case "capped":
		s.capped = a.truth(name, v)
	case "size":
		s.size = a.integer(name, v)
	case "max":
		s.most = a.integer(name, v)
	case "validator":
		s.validator = a.document(name, v)
	case "validationLevel":
		s.level = a.oneOf(name, v, "off", "strict", "moderate")
	case "validationAction":
		s.action = a.oneOf(name, v, "error", "warn")
	case "viewOn":
		s.viewOn = a.text(name, v)
	case "pipeline":
		s.pipeline = a.documents(name, v)
	case "changeStreamPreAndPostImages":
		enabled, there := bsonkit.Get(a.document(name, v), "enabled")
		if !there {
			a.fail(40414, "BSON field 'changeStreamPreAndPostImages.enabled' is missing but a required field")
		}
		s.images = there && a.boolean("changeStreamPreAndPostImages.enabled", enabled)
	case "collation":
		s.by = a.collation(v)
	case "storageEngine", "indexOptionDefaults":
		s.others = append(s.others, bson.E{Key: name, Value: a.document(name, v)})
	default:
		return false
	}
	return true
}

// maxCappedBytes bounds a capped collection: 1 PB, as on the server.
const maxCappedBytes = 1 << 50

// check refuses options that do not go together.
func (s *collectionSettings) check(a *arguments) {
	switch {
	case s.capped && s.size <= 0:
		a.fail(mongoerr.InvalidOptions, "the 'size' field is required when 'capped' is true")
	case s.size > maxCappedBytes:
		a.fail(mongoerr.BadValue, "size cannot exceed 1 PB")
	case s.viewOn != "" && (s.capped || s.validator != nil || s.images):
		a.fail(mongoerr.InvalidOptions, "a view takes no other options than 'pipeline' and 'collation'")
	case s.pipeline != nil && s.viewOn == "":
		a.fail(mongoerr.InvalidOptions, "'pipeline' requires 'viewOn' to also be specified")
	}
	// The server rounds up to a multiple of 256.
	s.size = (s.size + 255) &^ 255
}

// options makes a collection's options of the settings.
func (s collectionSettings) options() (engine.CollectionOptions, error) {
	b := bsoncore.NewDocumentBuilder()
	if s.capped {
		b.AppendBoolean("capped", true).AppendValue("size", shortNumber(s.size))
		if s.most > 0 {
			b.AppendValue("max", shortNumber(s.most))
		}
	}
	if len(s.validator) > len(emptyDocument) {
		b.AppendDocument("validator", bsoncore.Document(s.validator))
	}
	if s.level != "" {
		b.AppendString("validationLevel", s.level)
	}
	if s.action != "" {
		b.AppendString("validationAction", s.action)
	}
	if s.viewOn != "" {
		stages := bsoncore.NewArrayBuilder()
		for _, stage := range s.pipeline {
			stages.AppendDocument(bsoncore.Document(stage))
		}
		b.AppendString("viewOn", s.viewOn).AppendArray("pipeline", stages.Build())
	}
	if s.images {
		b.StartDocument("changeStreamPreAndPostImages").AppendBoolean("enabled", true).FinishDocument()
	}
	if !s.by.IsSimple() {
		b.AppendDocument("collation", bsoncore.Document(s.by.Spec()))
	}
	for _, option := range s.others {
		doc, _ := option.Value.(bson.Raw)
		b.AppendDocument(option.Key, bsoncore.Document(doc))
	}
	listed := bson.Raw(b.Build())
	if len(listed) <= len(emptyDocument) {
		return engine.CollectionOptions{}, nil
	}
	return engine.NewCollectionOptions(listed)
}

// shortNumber is an int32 where that holds the number.
func shortNumber(n int64) bsoncore.Value {
	if n == int64(int32(n)) {
		return bsoncore.Value{Type: bsoncore.TypeInt32, Data: bsoncore.AppendInt32(nil, int32(n))}
	}
	return bsoncore.Value{Type: bsoncore.TypeInt64, Data: bsoncore.AppendInt64(nil, n)}
}

// settingsOf reads back what options has written.
func settingsOf(o engine.CollectionOptions) collectionSettings {
	var s collectionSettings
	a := arguments{mismatch: mongoerr.TypeMismatch}
	for it := bsonkit.Iterate(o.Listed); it.Next(); {
		s.read(&a, string(it.Key()), it.Value())
	}
	return s
}
