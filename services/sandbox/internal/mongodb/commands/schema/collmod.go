package schema

import (
	"context"
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/serverversion"
)

// modifications are the arguments of collMod
// (https://www.mongodb.com/docs/v4.4/reference/command/collMod/).
type modifications struct {
	settings collectionSettings
	index    *indexModification
	// indexOnly tells that nothing else is to be changed.
	indexOnly bool
}

// indexModification is what becomes of one index. A value that is missing
// stays as it is.
type indexModification struct {
	name                string
	pattern             bson.Raw
	expireAfter, hidden bson.RawValue
}

// collMod changes a collection's validator, or whether it keeps pre- and
// post-images; when the documents of an index expire, or whether it is hidden;
// or what a view is made of.
func collMod(ctx context.Context, c *command.Call, r *command.Reply) error {
	ns, err := c.Collection()
	if err != nil {
		return err
	}
	info, there := c.Server.Engine.Collection(ns)
	if !there {
		return mongoerr.New(mongoerr.NamespaceNotFound, "ns does not exist")
	}
	m, err := parseModifications(c, info.Options)
	if err != nil {
		return err
	}
	if m.index != nil {
		if err := modifyIndex(ctx, c, ns, *m.index, r); err != nil {
			return err
		}
		if m.indexOnly {
			return nil
		}
	}
	options, err := m.settings.options()
	if err != nil {
		return err
	}
	if options.View != nil {
		if err := checkView(c, ns, options.View); err != nil {
			return err
		}
	}
	asked := requested(c)
	if m.index != nil {
		asked = nil // the event of the index tells it
	}
	return c.Server.Engine.SetOptions(ctx, ns, asked, func(engine.CollectionOptions) (engine.CollectionOptions, error) {
		return options, nil
	})
}

// requested is what a collMod asks for, without what any command may have.
func requested(c *command.Call) bson.Raw {
	b := bsonkit.NewBuilder(nil)
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		if name := string(it.Key()); name != c.Name && !command.IsGeneric(name) {
			b.Append(name, it.Value())
		}
	}
	return b.Finish()
}

func parseModifications(c *command.Call, o engine.CollectionOptions) (modifications, error) {
	m := modifications{settings: settingsOf(o), indexOnly: true}
	a := command.Arguments{Mismatch: mongoerr.InvalidOptions}
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		if name == c.Name || command.IsGeneric(name) {
			continue
		}
		m.indexOnly = m.indexOnly && name == "index"
		switch {
		case o.View != nil && name != "viewOn" && name != "pipeline":
			a.Fail(mongoerr.InvalidOptions, "option not supported on a view: %s", name)
		case name == "index":
			objectElement(&a, name, v)
			m.index = parseIndexModification(&a, v, c.Server.Version)
		case name == "validator", name == "validationLevel", name == "validationAction", name == imagesOption && c.Server.Version.Has(6):
			if name == "validator" {
				objectElement(&a, name, v)
			} else if name != imagesOption && v.Type != bson.TypeString {
				a.Fail(13111, "wrong type for field (%s) %d != 2", name, v.Type)
			}
			m.settings.read(&a, name, v)
		case name == preImagesOption:
			m.settings.preImages = bsonkit.Truthy(v) && optionOf(c.Server.Version, name)
		case o.View == nil && (name == "viewOn" || name == "pipeline"):
			a.Fail(mongoerr.InvalidOptions, "'%s' option only supported on a view", name)
		case name == "viewOn" || name == "pipeline":
			m.settings.read(&a, name, v)
		default:
			a.Fail(mongoerr.InvalidOptions, "unknown option to collMod: %s", name)
		}
	}
	m.settings.check(&a)
	m.settings.refuseIn(&a, c.DB)
	return m, a.Err
}

// objectElement refuses what is no document, as the server does where it reads
// an element unchecked.
func objectElement(a *command.Arguments, name string, v bson.RawValue) {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		a.Fail(10065, "invalid parameter: expected an object (%s)", name)
	}
}

// parseIndexModification passes over a field that there is not, as the server did
// before 5.0 (coll_mod.cpp).
func parseIndexModification(a *command.Arguments, v bson.RawValue, version serverversion.Version) *indexModification {
	var m indexModification
	hasName, hasKey := false, false
	for it := bsonkit.Iterate(a.Document("index", v)); it.Next(); {
		switch name, v := string(it.Key()), it.Value(); name {
		case "name":
			m.name, hasName = a.Text(name, v), true
		case "keyPattern":
			m.pattern, hasKey = a.Document(name, v), true
		case "expireAfterSeconds":
			if m.expireAfter = v; !bsonkit.IsNumber(v.Type) {
				a.Fail(mongoerr.InvalidOptions, "expireAfterSeconds field must be a number")
			}
		case "hidden":
			m.hidden = v
			a.Boolean(name, v)
		default:
			if version.Has(5) {
				a.Fail(mongoerr.InvalidOptions, "Unrecognized field '%s' in 'index' option", name)
			}
		}
	}
	switch {
	case hasName && hasKey:
		a.Fail(mongoerr.InvalidOptions, "Cannot specify both key pattern and name.")
	case !hasName && !hasKey:
		a.Fail(mongoerr.InvalidOptions, "Must specify either index name or key pattern.")
	case m.expireAfter.Type == 0 && m.hidden.Type == 0:
		a.Fail(mongoerr.InvalidOptions, "no expireAfterSeconds or hidden field")
	}
	return &m
}

// modifyIndex changes the index, and says what it was and what it is.
func modifyIndex(ctx context.Context, c *command.Call, ns oplog.Namespace, m indexModification, r *command.Reply) error {
	var before, after storage.IndexSpec
	err := c.Server.Engine.AlterIndex(ctx, ns, requested(c), func(present []storage.IndexSpec) (storage.IndexSpec, error) {
		var err error
		if before, err = m.find(ns, present); err != nil {
			return before, err
		}
		after, err = m.alter(before, c.Server.Version)
		return after, err
	})
	if err != nil {
		return err
	}
	if m.expireAfter.Type != 0 {
		if old, had := bsonkit.Get(before.Listed, "expireAfterSeconds"); had {
			r.Value("expireAfterSeconds_old", old)
		}
		r.Value("expireAfterSeconds_new", m.expireAfter)
	}
	if before.Hidden != after.Hidden {
		r.Boolean("hidden_old", before.Hidden)
		r.Boolean("hidden_new", after.Hidden)
	}
	return nil
}

func (m indexModification) find(ns oplog.Namespace, present []storage.IndexSpec) (storage.IndexSpec, error) {
	shown := "\"" + m.name + "\""
	if m.pattern != nil {
		shown = bsonkit.Describe(bsonkit.Document(m.pattern))
	}
	found := slices.Collect(func(yield func(storage.IndexSpec) bool) {
		for _, spec := range present {
			if (m.pattern == nil && spec.Name == m.name || m.pattern != nil && spec.HasKey(m.pattern)) && !yield(spec) {
				return
			}
		}
	})
	switch len(found) {
	case 0:
		return storage.IndexSpec{}, mongoerr.New(mongoerr.IndexNotFound, "cannot find index %s for ns %s", shown, ns)
	case 1:
		return found[0], nil
	}
	return storage.IndexSpec{}, mongoerr.New(mongoerr.AmbiguousIndexKeyPattern,
		"index keyPattern %s matches %d indexes, must use index name.", shown, len(found))
}

// alter makes the index that the old one becomes. What is changed is written
// as a long.
func (m indexModification) alter(old storage.IndexSpec, version serverversion.Version) (storage.IndexSpec, error) {
	expires, had := bsonkit.Get(old.Listed, "expireAfterSeconds")
	wanted := m.expireAfter
	seconds, _ := bsonkit.Truncated(wanted)
	switch {
	case wanted.Type != 0 && !had && !version.Has(6): // it came with 5.1
		return old, mongoerr.New(mongoerr.InvalidOptions, "no expireAfterSeconds field to update")
	case wanted.Type != 0 && !had && old.Name == storage.IDIndexName:
		return old, mongoerr.New(mongoerr.InvalidOptions, "the _id field does not support TTL indexes")
	case wanted.Type != 0 && !had && len(old.Fields) != 1:
		return old, mongoerr.New(mongoerr.InvalidOptions, "TTL indexes are single-field indexes, compound indexes do not support TTL")
	case wanted.Type != 0 && version.Has(5) && (seconds < 0 || seconds > math.MaxInt32):
		return old, mongoerr.New(mongoerr.InvalidOptions, "TTL index 'expireAfterSeconds' option must be within an acceptable range, found %d", seconds)
	}
	hidden, _ := m.hidden.BooleanOK()
	if hidden && old.Name == storage.IDIndexName {
		return old, mongoerr.New(mongoerr.BadValue, "can't hide _id index")
	}
	b := bsoncore.NewDocumentBuilder()
	for it := bsonkit.Iterate(old.Listed); it.Next(); {
		name, v := string(it.Key()), it.Value()
		if name == "hidden" && m.hidden.Type != 0 {
			continue
		}
		if name == "expireAfterSeconds" && wanted.Type != 0 && !bsonkit.Equal(expires, wanted) {
			b.AppendInt64(name, seconds)
			continue
		}
		b.AppendValue(name, bsoncore.Value{Type: bsoncore.Type(v.Type), Data: v.Value})
	}
	if wanted.Type != 0 && !had {
		b.AppendInt64("expireAfterSeconds", seconds)
	}
	if hidden {
		b.AppendBoolean("hidden", true)
	}
	return storage.NewIndexSpec(bson.Raw(b.Build()))
}
