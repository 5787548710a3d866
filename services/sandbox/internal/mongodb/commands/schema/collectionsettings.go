package schema

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/match"
	"changerelay/services/sandbox/internal/mongodb/serverversion"
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
	// preImages keeps those before each change, as servers before 6.0 can.
	preImages bool
	// by is the collation of statements that name none.
	by *collation.Collation
	// others are options that do nothing here: they are listed as they came.
	others bson.D
}

// imagesOption came with 6.0.
const imagesOption = "changeStreamPreAndPostImages"

// preImagesOption is what there was before that.
const preImagesOption = "recordPreImages"

// optionOf tells an option of the version, of those that not all have.
func optionOf(version serverversion.Version, name string) bool {
	switch name {
	case imagesOption:
		return version.Has(6)
	case preImagesOption:
		return !version.Has(6)
	}
	return true
}

// read takes one field; known is false if there is no such option.
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
		if _, err := match.Compile(s.validator, expression.Env{}); err != nil && a.Err == nil {
			a.Err = err
		}
	case "validationLevel":
		s.level = a.OneOf(name, v, "off", "strict", "moderate")
	case "validationAction":
		s.action = a.OneOf(name, v, "error", "warn")
	case "viewOn":
		if s.viewOn = a.Text(name, v); s.viewOn == "" {
			a.Fail(mongoerr.BadValue, "'viewOn' cannot be empty")
		}
	case "pipeline":
		s.pipeline = append([]bson.Raw{}, a.Documents(name, v)...)
	case imagesOption:
		enabled, there := bsonkit.Get(a.Document(name, v), "enabled")
		if !there {
			a.Fail(40414, "BSON field 'changeStreamPreAndPostImages.enabled' is missing but a required field")
		}
		s.images = there && a.Boolean("changeStreamPreAndPostImages.enabled", enabled)
	case preImagesOption:
		s.preImages = a.Truth(name, v)
	case "collation":
		s.by = collationSetting(a, v)
	case "storageEngine":
		s.others = append(s.others, bson.E{Key: name, Value: engineSettings(a, name, v)})
	case "indexOptionDefaults":
		s.others = append(s.others, bson.E{Key: name, Value: indexDefaults(a, name, v)})
	default:
		return false
	}
	return true
}

// collationSetting is one that is kept, and cannot be empty.
func collationSetting(a *command.Arguments, v bson.RawValue) *collation.Collation {
	if doc, ok := v.DocumentOK(); ok && len(doc) == len(bsonkit.Empty) {
		a.Fail(mongoerr.BadValue, "'collation' cannot be an empty document.")
		return nil
	}
	return a.Collation(v)
}

// engineSettings are documents by the name of a storage engine.
func engineSettings(a *command.Arguments, name string, v bson.RawValue) bson.Raw {
	doc := a.Document(name, v)
	for it := bsonkit.Iterate(doc); it.Next(); {
		if it.Value().Type != bson.TypeEmbeddedDocument {
			a.Fail(mongoerr.BadValue, "'storageEngine.%s' has to be an embedded document.", it.Key())
		}
		switch engine := string(it.Key()); engine {
		case "wiredTiger", "devnull", "ephemeralForTest":
		default:
			a.Fail(mongoerr.InvalidOptions, "%s is not a registered storage engine for this server", engine)
		}
	}
	return doc
}

// indexDefaults can only be settings of a storage engine.
func indexDefaults(a *command.Arguments, name string, v bson.RawValue) bson.Raw {
	doc := a.Document(name, v)
	for it := bsonkit.Iterate(doc); it.Next(); {
		if option := string(it.Key()); option != "storageEngine" {
			a.Fail(mongoerr.InvalidOptions, "indexOptionDefaults.%s is not a supported option.", option)
		}
		engineSettings(a, "storageEngine", it.Value())
	}
	return doc
}

// maxCappedBytes bounds a capped collection: 1 PB, as on the server.
const maxCappedBytes = 1 << 50

// check refuses options that do not go together.
func (s *collectionSettings) check(a *command.Arguments) {
	switch {
	case s.capped && s.size <= 0:
		a.Fail(mongoerr.InvalidOptions, "the 'size' field is required when 'capped' is true")
	case !s.capped && (s.size != 0 || s.most != 0):
		a.Fail(mongoerr.InvalidOptions, "the 'capped' field needs to be true when either the 'size' or 'max' fields are present")
	case s.size > maxCappedBytes:
		a.Fail(mongoerr.BadValue, "size cannot exceed 1 PB")
	case s.viewOn != "" && (s.capped || s.validator != nil || s.images || s.preImages):
		a.Fail(mongoerr.InvalidOptions, "a view takes no other options than 'pipeline' and 'collation'")
	}
	// The server rounds up to a multiple of 256.
	s.size = (s.size + 255) &^ 255
}

// refuseIn refuses what the server keeps out of its own databases.
func (s *collectionSettings) refuseIn(a *command.Arguments, db string) {
	if s.preImages && (db == "admin" || db == "local") {
		a.Fail(mongoerr.InvalidOptions, "recordPreImages collection option is not supported on the %s database", db)
	}
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
	if s.preImages {
		b.AppendBoolean(preImagesOption, true)
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
