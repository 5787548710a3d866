package modify

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// Update is a compiled update: operators, a replacement, or a pipeline.
type Update struct {
	// One of the three is set.
	operators   *operatorUpdate
	replacement bson.Raw
	pipeline    *query.Pipeline
	paths       bool // Options.SinceFive
}

// Options go with an update.
type Options struct {
	// SinceFive is for servers of 5.0 and later: what pipelines change is told by
	// path and not as a replacement, an element that is unset as set to null, and an
	// operator may be without fields.
	SinceFive bool
	// ArrayFilters say which elements $[name] means.
	ArrayFilters []bson.Raw
	Env          expression.Env
}

// Compile reads the u of an update statement.
func Compile(spec bson.RawValue, o Options) (*Update, error) {
	u := &Update{paths: o.SinceFive}
	var err error
	switch {
	case spec.Type == bson.TypeArray:
		if len(o.ArrayFilters) > 0 {
			return nil, mongoerr.New(mongoerr.FailedToParse, "arrayFilters may not be specified for pipeline-syle updates")
		}
		u.pipeline, err = query.CompileForUpdate(spec, o.Env)
	case spec.Type != bson.TypeEmbeddedDocument:
		err = mongoerr.New(mongoerr.FailedToParse, "Update argument must be either an object or an array")
	case match.IsOperators(spec):
		u.operators, err = compileOperators(spec.Value, o)
	case len(o.ArrayFilters) > 0:
		err = mongoerr.New(mongoerr.FailedToParse, "arrayFilters may not be specified for replacement-style updates")
	default:
		u.replacement = spec.Value
		err = checkStorable(spec.Value)
	}
	if err != nil {
		return nil, err
	}
	return u, nil
}

// IsReplacement reports that the update is a whole document.
func (u *Update) IsReplacement() bool { return u.replacement != nil }

// IsPipeline reports that the update is an aggregation pipeline.
func (u *Update) IsPipeline() bool { return u.pipeline != nil }

// Applied is what an update made of a document.
type Applied struct {
	// Doc is the new document, or the old one where nothing changed.
	Doc bson.Raw
	// Changed is what nModified counts and what an oplog entry is written for.
	Changed bool
	// Delta is what operators changed, or a pipeline where it is told by path,
	// for a change stream's updateDescription. It is nil for what the server
	// logs as a replacement, for what is too long to be told by path, and where
	// nothing changed.
	Delta *Delta
}

// Delta is a change in terms of dotted paths.
type Delta struct {
	// Updated are the fields that were set: {dotted path: value, …}.
	Updated bson.Raw
	// Removed are the paths that are gone. One that ends at an array's element
	// has become null; only without Options.SinceFive.
	Removed []string
	// Truncated are the arrays that lost their end.
	Truncated []Truncation
	// Ambiguous are the parts of those paths that can be read in two ways:
	// {dotted path: [name or index, …], …}. It may be nil.
	Ambiguous bson.Raw
}

// Truncation is the new length of an array.
type Truncation struct {
	Path string
	Size int
}

// Apply changes a document. The filter is the one that found it: positional
// operators ask it for the array element; it may be nil. With an error the
// document is the old one.
func (u *Update) Apply(doc bson.Raw, f *match.Filter) (Applied, error) {
	applied, err := u.apply(doc, f)
	if err != nil || !applied.Changed {
		return Applied{Doc: doc}, err
	}
	if len(applied.Doc) > bsonkit.MaxDocument {
		return Applied{Doc: doc}, tooLarge(false)
	}
	return applied, nil
}

// tooLarge refuses a document that an update made, or one to be inserted.
func tooLarge(inserting bool) error {
	if inserting {
		return mongoerr.New(17420, "Document to upsert is larger than %d", bsonkit.MaxDocument)
	}
	return mongoerr.New(17419, "Resulting document after update is larger than %d", bsonkit.MaxDocument)
}

func (u *Update) apply(doc bson.Raw, f *match.Filter) (Applied, error) {
	switch {
	case u.operators != nil:
		return u.operators.apply(doc, f)
	case u.pipeline != nil:
		made, ok, err := u.pipeline.Each(doc)
		if err != nil || !ok {
			return Applied{}, err
		}
		if err := checkStorable(made); err != nil {
			return Applied{}, err
		}
		applied, err := replace(doc, made)
		if u.paths && applied.Changed {
			applied.Delta = diff(doc, applied.Doc)
		}
		return applied, err
	}
	return replace(doc, u.replacement)
}

// replace keeps the _id. What is given counts as a change unless it is, with
// its _id, the same bytes.
func replace(doc, by bson.Raw) (Applied, error) {
	if bytes.Equal(doc, by) {
		return Applied{Doc: doc}, nil
	}
	old, _ := bsonkit.Get(doc, "_id")
	id, given := bsonkit.Get(by, "_id")
	if given && old.Type != bsonkit.Missing && !bsonkit.Equal(old, id) {
		return Applied{}, mongoerr.New(mongoerr.ImmutableField,
			"After applying the update, the (immutable) field '_id' was found to have been altered to _id: %s", bsonkit.Describe(id))
	}
	if !given {
		id = old
	}
	return Applied{Doc: withID(id, by), Changed: true}, nil
}

// withID puts an _id in front of what else is in a document.
func withID(id bson.RawValue, doc bson.Raw) bson.Raw {
	b := bsonkit.NewBuilder(make([]byte, 0, len(doc)+len(id.Value)+8))
	b.Append("_id", id)
	for it := bsonkit.Iterate(doc); it.Next(); {
		if key := string(it.Key()); key != "_id" {
			b.Append(key, it.Value())
		}
	}
	return b.Finish()
}
