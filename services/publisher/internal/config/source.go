package config

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/mapping"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/settings"
)

// Values of ON_COLLECTION_CHANGE; report is a decision in the ledger, too.
const (
	StopReplaced  = "stop-replaced"
	StopChanged   = "stop"
	ReportChanged = "report"
)

// checkCollectionChange says what is wrong with ON_COLLECTION_CHANGE.
func (c *Config) checkCollectionChange() error {
	known := []string{StopReplaced, StopChanged, ReportChanged}
	if !slices.Contains(known, c.OnCollectionChange) {
		return fmt.Errorf("is %q, not one of %q", c.OnCollectionChange, known)
	}
	return nil
}

// wholeDatabase as SOURCE_COLLECTIONS is every collection of the database.
const wholeDatabase = "*"

// Values of MODE.
const (
	modeEvents    = "events"
	ModeDocuments = "documents"
)

// off as a setting asks for nothing.
const off = "off"

// defaultData is the default of FIELD_DATA, a path that an event may lack.
const defaultData = "data"

// Collections are those that are read; none are all of the database.
func (c *Config) Collections() []string {
	switch {
	case c.SourceCollection != "":
		return []string{c.SourceCollection}
	case slices.Equal(c.SourceCollections, []string{wholeDatabase}):
		return nil
	default:
		return c.SourceCollections
	}
}

// filter is SOURCE_FILTER as a document; nil where there is none.
func (c *Config) filter() (bson.D, error) {
	if c.SourceFilter == "" {
		return nil, nil
	}
	var filter bson.D
	if err := bson.UnmarshalExtJSON([]byte(c.SourceFilter), false, &filter); err != nil {
		return nil, err
	}
	if len(filter) == 0 {
		return nil, errors.New("an empty document matches everything")
	}
	return filter, nil
}

// Stream says what is to be read through client.
func (c *Config) Stream(client *mongo.Client) changestream.Source {
	filter, _ := c.filter() // checked when the configuration was read
	source := changestream.Source{
		Database:    client.Database(c.SourceDatabase),
		Collections: c.Collections(),
		Filter:      filter,
		ReadBytes:   c.readBytes(),
	}
	if c.Mode == ModeDocuments {
		source.FullDocument, source.BeforeChange = image(c.FullDocument), image(c.FullDocumentBeforeChange)
	}
	return source
}

func image(setting string) options.FullDocument {
	if setting == off {
		return ""
	}
	return options.FullDocument(setting)
}

// Mapper returns what turns changes of the stream into events: those of the
// aggregates that keep says, or of all where it is nil.
func (c *Config) Mapper(keep func(aggregateID string) bool) relay.Mapper {
	hidden, _ := mapping.NewHidden(c.DropFields, c.MaskFields) // checked when the configuration was read
	o := mapping.Options{
		Database:    c.SourceDatabase,
		Collections: c.Collections(),
		Hidden:      hidden,
		TraceParent: c.FieldTraceParent,
		Keep:        keep,
	}
	if c.Mode == ModeDocuments {
		return mapping.NewDocuments(o, c.DocumentAggregateID, len(o.Collections) != 1)
	}
	return mapping.NewEvents(o, mapping.Paths{
		AggregateID: c.FieldAggregateID,
		Type:        c.FieldType,
		Version:     c.FieldVersion,
		Time:        c.FieldTime,
		Data:        c.FieldData,
		MayLackData: c.FieldData == defaultData,
	}, mapping.OtherOperations(c.OnOtherOperation))
}

// sampled is how many events of a collection are looked at.
const sampled = 20

// Emptied looks at the latest events, and says that none has a payload where
// FIELD_DATA says by default; empty where some have, or where there are none. With
// any other path such an event cannot be mapped.
func (c *Config) Emptied(ctx context.Context, client *mongo.Client) (string, error) {
	if c.Mode != modeEvents || c.FieldData != defaultData {
		return "", nil
	}
	for _, name := range c.Collections() {
		cursor, err := client.Database(c.SourceDatabase).Collection(name).Find(ctx, bson.D{},
			options.Find().SetSort(bson.D{{Key: "_id", Value: -1}}).SetLimit(sampled).SetProjection(bson.D{{Key: defaultData, Value: 1}}))
		if err != nil {
			return "", fmt.Errorf("look at the latest events: %w", err)
		}
		var latest []bson.Raw
		if err := cursor.All(ctx, &latest); err != nil {
			return "", fmt.Errorf("look at the latest events: %w", err)
		}
		lacks := func(event bson.Raw) bool {
			_, err := event.LookupErr(defaultData)
			return err != nil
		}
		if len(latest) > 0 && !slices.ContainsFunc(latest, func(event bson.Raw) bool { return !lacks(event) }) {
			return fmt.Sprintf("has no field %q in the latest %d events of %q, which FIELD_DATA names by default: each is sent with an empty body",
				defaultData, len(latest), name), nil
		}
	}
	return "", nil
}

// checkSource finds what is wrong with the settings of source and mapping.
func (c *Config) checkSource() []*settings.Problem {
	var problems []*settings.Problem
	bad := func(variable, format string, args ...any) {
		problems = append(problems, settings.Problemf(variable, format, args...))
	}
	oneOf := func(variable, value string, known ...string) {
		if !slices.Contains(known, value) {
			bad(variable, "is %q, not one of %q", value, known)
		}
	}
	if err := c.checkCollectionChange(); err != nil {
		bad("ON_COLLECTION_CHANGE", "%s", err)
	}
	if problem := c.checkCollections(); problem != nil {
		problems = append(problems, problem)
	}
	if _, err := c.filter(); err != nil {
		bad("SOURCE_FILTER", "is not a filter in Extended JSON such as {\"fullDocument.tenant\": \"a\"}: %s", err)
	}
	oneOf("MODE", c.Mode, modeEvents, ModeDocuments)
	oneOf("ON_OTHER_OPERATION", c.OnOtherOperation, string(mapping.RefuseChanges), string(mapping.RefuseAll), string(mapping.PassAll))
	oneOf("FULL_DOCUMENT", c.FullDocument, string(options.UpdateLookup), string(options.WhenAvailable), string(options.Required), off)
	oneOf("FULL_DOCUMENT_BEFORE_CHANGE", c.FullDocumentBeforeChange, string(options.WhenAvailable), string(options.Required), off)
	if _, err := mapping.NewHidden(c.DropFields, c.MaskFields); err != nil {
		bad("DROP_FIELDS", "with MASK_FIELDS: %s", err)
	}
	for _, field := range []struct {
		variable, path string
		optional       bool
	}{
		{"FIELD_AGGREGATE_ID", c.FieldAggregateID, false},
		{"FIELD_TYPE", c.FieldType, false},
		{"FIELD_VERSION", c.FieldVersion, true},
		{"FIELD_TIME", c.FieldTime, true},
		{"FIELD_DATA", c.FieldData, true},
		{"FIELD_TRACEPARENT", c.FieldTraceParent, true},
		{"DOCUMENT_AGGREGATE_ID", c.DocumentAggregateID, false},
		{"HEAL_FIELD", c.HealField, false},
	} {
		switch {
		case field.path != mapping.None:
			if !isPath(field.path) {
				bad(field.variable, "is %q, not a path such as order.id", field.path)
			}
		case !field.optional:
			bad(field.variable, "must be a path: every change has one")
		}
	}
	return problems
}

// isPath tells whether text is a path of field names with dots between them.
func isPath(text string) bool {
	for name := range strings.SplitSeq(text, ".") {
		if name == "" || strings.HasPrefix(name, "$") || strings.ContainsRune(name, 0) {
			return false
		}
	}
	return true
}

// checkCollections finds what is wrong with the choice of collections.
func (c *Config) checkCollections() *settings.Problem {
	switch {
	case (c.SourceCollection == "") == (len(c.SourceCollections) == 0):
		return settings.Problemf("SOURCE_COLLECTION", "set either this or SOURCE_COLLECTIONS")
	case len(c.SourceCollections) > 1 && slices.Contains(c.SourceCollections, wholeDatabase):
		return settings.Problemf("SOURCE_COLLECTIONS", "has * beside names; * alone is the whole database")
	case slices.Contains(c.SourceCollections, ""):
		return settings.Problemf("SOURCE_COLLECTIONS", "has an empty name")
	case len(c.Collections()) > 1 && c.StreamName == "":
		return settings.Problemf("STREAM_NAME", "is required with a list of collections: a name made of the list would change with it, and with it the checkpoint")
	case c.Collections() == nil && c.StateDatabase == c.SourceDatabase:
		return settings.Problemf("STATE_DATABASE", "is the source, whose whole database is read: every checkpoint would be a change; name another database")
	}
	return nil
}
