package schema

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
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

// imagesOption came with 6.0.
const imagesOption = "changeStreamPreAndPostImages"

// read takes one field; known is false if it is none of the options.
func (s *collectionSettings) read(a *command.Arguments, name string, v bson.RawValue) (known bool) {
	switch name {
	case "capped":
		s.capped = a.Truth(name, v)
	case "size":
		s.size = a.Integer(name, v)
	case "max":
		s.most = a.Integer(name, v)
	case "validator":
		s.validator = a.Document(name, v)
	case "validationLevel":
		s.level = a.OneOf(name, v, "off", "strict", "moderate")
	case "validationAction":
		s.action = a.OneOf(name, v, "error", "warn")
	case "viewOn":
		if s.viewOn = a.Text(name, v); s.viewOn == "" {
			a.Fail(mongoerr.InvalidOptions, "'viewOn' cannot be empty")
		}
	case "pipeline":
		s.pipeline = append([]bson.Raw{}, a.Documents(name, v)...)
	case imagesOption:
		enabled, there := bsonkit.Get(a.Document(name, v), "enabled")
		if !there {
			a.Fail(40414, "BSON field 'changeStreamPreAndPostImages.enabled' is missing but a required field")
		}
		s.images = there && a.Boolean("changeStreamPreAndPostImages.enabled", enabled)
	case "collation":
		s.by = a.Collation(v)
	case "storageEngine", "indexOptionDefaults":
		s.others = append(s.others, bson.E{Key: name, Value: a.Document(name, v)})
	default:
		return false
	}
	return true
}

// maxCappedBytes bounds a capped collection: 1 PB, as on the server.
const maxCappedBytes = 1 << 50

// check refuses options that do not go together.
func (s *collectionSettings) check(a *command.Arguments) {
	switch {
	case s.capped && s.size <= 0:
		a.Fail(mongoerr.InvalidOptions, "the 'size' field is required when 'capped' is true")
	case s.size > maxCappedBytes:
		a.Fail(mongoerr.BadValue, "size cannot exceed 1 PB")
	case s.viewOn != "" && (s.capped || s.validator != nil || s.images):
		a.Fail(mongoerr.InvalidOptions, "a view takes no other options than 'pipeline' and 'collation'")
	case s.pipeline != nil && s.viewOn == "":
		a.Fail(mongoerr.InvalidOptions, "'pipeline' requires 'viewOn' to also be specified")
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
	if len(s.validator) > len(bsonkit.Empty) {
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
	if len(listed) <= len(bsonkit.Empty) {
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
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	for it := bsonkit.Iterate(o.Listed); it.Next(); {
		s.read(&a, string(it.Key()), it.Value())
	}
	return s
}
