package config

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/management"
	"changerelay/services/publisher/internal/mongostate"
)

// Identity are the settings that make the stream this one, as its record keeps
// them: see package checkpoint for what a change of each means.
func (c *Config) Identity() checkpoint.Settings {
	collections := wholeDatabase
	if names := c.Collections(); names != nil {
		collections = strings.Join(slices.Sorted(slices.Values(names)), ",") // in any order it is the same stream
	}
	all := checkpoint.Settings{
		"SOURCE_DATABASE":      c.SourceDatabase,
		"SOURCE_COLLECTION":    collections,
		"SOURCE_FILTER":        c.SourceFilter,
		"MODE":                 c.Mode,
		"SERVICEBUS_TOPIC":     c.ServiceBusTopic,
		"SERVICEBUS_NAMESPACE": c.namespace(),
	}
	maps.Copy(all, c.hides())
	if c.Mode == ModeDocuments {
		all["DOCUMENT_AGGREGATE_ID"] = c.DocumentAggregateID
		all["FULL_DOCUMENT"], all["FULL_DOCUMENT_BEFORE_CHANGE"] = c.FullDocument, c.FullDocumentBeforeChange
	} else {
		all["FIELD_AGGREGATE_ID"], all["FIELD_VERSION"] = c.FieldAggregateID, c.FieldVersion
		all["FIELD_TYPE"], all["FIELD_TIME"], all["FIELD_DATA"] = c.FieldType, c.FieldTime, c.FieldData
		all["ON_OTHER_OPERATION"] = c.OnOtherOperation
	}
	return all
}

// hides are the settings that keep fields out of messages.
func (c *Config) hides() checkpoint.Settings {
	list := func(paths []string) string { return strings.Join(slices.Sorted(slices.Values(paths)), ",") }
	return checkpoint.Settings{"DROP_FIELDS": list(c.DropFields), "MASK_FIELDS": list(c.MaskFields)}
}

// Sends returns an error unless a message that is made by these settings hides what
// the stream hides: what a command calls before it sends.
func (c *Config) Sends(ctx context.Context, state *mongostate.Database) error {
	scope, err := c.scope(ctx, state)
	if err != nil {
		return err
	}
	for _, record := range scope.Records {
		if others := record.Changed(c.hides(), checkpoint.Noted); len(others) > 0 {
			return fmt.Errorf("stream %q hides other fields than these settings: %s; correct them, or start the publishers with them first",
				c.StreamName, strings.Join(others, ", "))
		}
	}
	return nil
}

// ordering are the settings that decide a message's session, and its place there.
var ordering = []string{"FIELD_AGGREGATE_ID", "FIELD_VERSION", "DOCUMENT_AGGREGATE_ID"}

// Reorders are the settings, with both values, by which a message has another session
// or another place there than the stream's messages have; none is nil.
func (c *Config) Reorders(ctx context.Context, state *mongostate.Database) ([]string, error) {
	scope, err := c.scope(ctx, state)
	if err != nil {
		return nil, err
	}
	var others []string
	for _, name := range slices.Sorted(maps.Keys(scope.Records)) {
		record := scope.Records[name]
		for _, change := range record.Changes(c.Identity()) {
			if slices.Contains(ordering, change.Name) && !slices.Contains(others, change.String()) {
				others = append(others, change.String())
			}
		}
	}
	return others, nil
}

// namespace is the Service Bus namespace, as the stream's record keeps it.
func (c *Config) namespace() string {
	if c.ServiceBusConnection == "" {
		return c.ServiceBusNamespace
	}
	return checkpoint.Namespace(management.Endpoint(c.ServiceBusConnection.Reveal()))
}

// Said is what the settings say of the stream, for commands.
func (c *Config) Said() mongostate.Said {
	return mongostate.Said{Partitions: c.Partitions, Lease: c.LeaseName, Settings: c.Identity()}
}

// Checked returns an error unless the state database has the stream, as the
// settings say it: what a command calls before it changes something.
func (c *Config) Checked(ctx context.Context, state *mongostate.Database) error {
	_, err := c.scope(ctx, state)
	return err
}

// Known returns an error unless the state database has the stream, whatever it is
// like: what a command calls that has found nothing of it, which may be no good news.
func (c *Config) Known(ctx context.Context, state *mongostate.Database) error {
	scope, err := state.Scope(ctx, c.StreamName, c.LeaseName)
	if err != nil {
		return err
	}
	return scope.Known()
}

// scope is what the state database has of the stream, if that is the one that the
// settings say.
func (c *Config) scope(ctx context.Context, state *mongostate.Database) (mongostate.Scope, error) {
	scope, err := state.Scope(ctx, c.StreamName, c.LeaseName)
	if err != nil {
		return mongostate.Scope{}, err
	}
	return scope, scope.Check(c.Said())
}
