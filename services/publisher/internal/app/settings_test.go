package app_test

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/settings"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// edit changes one field of the one document of a collection.
func edit(t *testing.T, collection *mongo.Collection, operator, field string, value any) {
	t.Helper()
	result, err := collection.UpdateOne(t.Context(), bson.D{}, bson.D{{Key: operator, Value: bson.D{{Key: field, Value: value}}}})
	if err != nil || result.MatchedCount != 1 {
		t.Fatalf("edit %s: %+v, %v", field, result, err)
	}
}

// entered is the ledger's entry of a decision.
func entered(t *testing.T, servers testserver.Servers, decision string) bson.Raw {
	t.Helper()
	var entry bson.Raw
	testserver.Eventually(t, "the ledger to have an entry "+decision, func() bool {
		var err error
		entry, err = state(t, servers, "stream_gaps").FindOne(t.Context(), bson.D{{Key: "decision", Value: decision}}).Raw()
		return err == nil
	})
	return entry
}

// documents makes a configuration one of plain documents.
func documents(c *config.Config) {
	c.Mode, c.DocumentAggregateID, c.FullDocument, c.FullDocumentBeforeChange = "documents", "_id", "updateLookup", "off"
}

// namespace makes a configuration one that sends to a namespace of that name.
func namespace(host string) func(*config.Config) {
	return func(c *config.Config) {
		c.ServiceBusConnection = settings.Secret("Endpoint=sb://" + host + "/;SharedAccessKeyName=n;SharedAccessKey=k")
	}
}

// TestSettings_FromOneNamespaceToAnotherAndBackHalts starts a stream of a namespace
// that has a name with the settings of another, and with its own again.
func TestSettings_FromOneNamespaceToAnotherAndBackHalts(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	published(t, servers, events(t, servers), 20)
	edit(t, state(t, servers, "streams"), "$set", "settings.SERVICEBUS_NAMESPACE", "a.servicebus.invalid")
	other := run(t, configured(servers, namespace("b.servicebus.invalid")))
	other.awaitHalt(t, "stream settings changed", `was "a.servicebus.invalid", now it is "b.servicebus.invalid"`)
	if err := other.quit(); err != nil {
		t.Fatal(err)
	}
	same := run(t, configured(servers, namespace("a.servicebus.invalid:5671")))
	same.await(t, "the one that it was to be tried", func(s status.Status) bool { return s.Term > 0 && s.State != "halted" })
	_ = same.quit() // what is blocked is not drained
}

// TestSettings_AnotherStreamHaltsUntilItIsAccepted starts publishers whose
// settings say another stream, behind a token and at a time that an operator set.
func TestSettings_AnotherStreamHaltsUntilItIsAccepted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*config.Config)
		names  string
	}{
		"another collection":  {func(c *config.Config) { c.SourceCollection = "others" }, `SOURCE_COLLECTION was "events", now it is "others"`},
		"several collections": {list("events", "others"), `SOURCE_COLLECTION was "events", now it is "events,others"`},
		"another database":    {func(c *config.Config) { c.SourceDatabase = "warehouse" }, `SOURCE_DATABASE was "shop", now it is "warehouse"`},
		"another topic":       {func(c *config.Config) { c.ServiceBusTopic = "others" }, `SERVICEBUS_TOPIC was "changes", now it is "others"`},
		"another namespace":   {namespace("b.servicebus.invalid"), `now it is "b.servicebus.invalid"`},
		"another mode":        {documents, `MODE was "events", now it is "documents"`},
	} {
		for _, set := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", at a time"}[set], func(t *testing.T) {
				t.Parallel()
				servers := testserver.Start(t)
				published(t, servers, events(t, servers), 20)
				if set {
					if _, err := say[command.MoveView](t, configured(servers), "checkpoint", "set", "--why", "test", time.Now().Add(-time.Minute).Format(time.RFC3339)); err != nil {
						t.Fatal(err)
					}
				}
				other := configured(servers, tt.change)
				p := run(t, other)
				if status := p.awaitHalt(t, "stream settings changed", tt.names, "publisher checkpoint accept --why TEXT"); status.Read != 0 {
					t.Errorf("%d changes were read, want none", status.Read)
				}
				for _, args := range [][]string{{"checkpoint", "set", "--why", "x", time.Now().Add(-time.Minute).Format(time.RFC3339)}, {"parked", "purge", "--older-than", "1h"}, {"parked", "discard", "x"}, {"parked", "replay", "--all"}} {
					if _, err := say[any](t, other, args...); err == nil || !strings.Contains(err.Error(), tt.names) {
						t.Errorf("%q = %v, want it refused: the stream is another one", args, err)
					}
				}
				if view, err := say[command.StreamView](t, other, "status"); err != nil || !strings.Contains(strings.Join(view.Warnings, "\n"), tt.names) {
					t.Errorf("status = %+v, %v, want a warning", view, err)
				}
				if moved, err := say[command.MoveView](t, other, "checkpoint", "accept", "--why", "it was meant"); err != nil || !strings.Contains(strings.Join(moved.Accepts, "\n"), tt.names) {
					t.Fatalf("accept = %+v, %v, want it to say what it accepts", moved, err)
				}
				p.await(t, "it to go on", func(s status.Status) bool { return s.Term > 0 && s.State != "halted" }) // blocked where there is no such topic
				if entry := entered(t, servers, "accept"); !strings.Contains(entry.Lookup("error").StringValue(), tt.names) ||
					entry.Lookup("fromTime").Time().Unix() <= 0 || entry.Lookup("toTime").Time().Unix() <= 0 {
					t.Errorf("the ledger says %s", entry)
				}
				_ = p.quit()                        // what is blocked is not drained
				back := run(t, configured(servers)) // what it was before is another one now
				back.await(t, "that to halt", func(s status.Status) bool {
					return s.State == "halted" && strings.Contains(s.LastError, "stream settings changed")
				})
			})
		}
	}
}

func TestSettings_WhatIsSentOtherwiseIsInTheLedger(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*config.Config)
		says   string
	}{
		"another path of the aggregate id": {func(c *config.Config) { c.FieldAggregateID = "type" }, `FIELD_AGGREGATE_ID was "aggregateId", now it is "type"`},
		"hidden fields": {
			func(c *config.Config) { c.DropFields, c.MaskFields = []string{"data.b", "data.a"}, []string{"note"} },
			`DROP_FIELDS was "", now it is "data.a,data.b", MASK_FIELDS was "", now it is "note"`,
		},
		"other paths": {
			func(c *config.Config) { c.FieldType, c.FieldTime, c.FieldData = "_id", "at", "-" },
			`FIELD_TYPE was "type", now it is "_id", FIELD_TIME was "time", now it is "at", FIELD_DATA was "data", now it is "-"`,
		},
		"what is no insert": {func(c *config.Config) { c.OnOtherOperation = "pass" }, `ON_OTHER_OPERATION was "refuse-changes", now it is "pass"`},
		"a filter":          {func(c *config.Config) { c.SourceFilter = `{"fullDocument.type": "OrderPlaced"}` }, "SOURCE_FILTER"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			published(t, servers, events(t, servers), 20)
			if _, err := say[command.MoveView](t, configured(servers), "checkpoint", "set", "--why", "test", time.Now().Add(-time.Minute).Format(time.RFC3339)); err != nil {
				t.Fatal(err)
			}
			p := run(t, configured(servers, tt.change))
			shown := p.await(t, "the publisher to lead", func(s status.Status) bool { return leading(s) && s.GapCounts["report"] == 1 })
			if gap := shown.Gaps[len(shown.Gaps)-1]; gap.Cause != "stream settings changed" || !strings.Contains(gap.Error, tt.says) || !gap.ToTime.Equal(gap.FromTime) {
				t.Errorf("the ledger says %+v, want %s", gap, tt.says)
			}
		})
	}
}

func TestSettings_AnotherNameOfTheNamespaceIsAWarning(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	published(t, servers, events(t, servers), 20)
	_, through := busProxy(t, servers)
	p := run(t, configured(servers, func(c *config.Config) { c.ServiceBusConnection = through }))
	if status := p.await(t, "the publisher to lead", leading); len(status.Gaps) != 0 {
		t.Errorf("gaps are %+v, want none", status.Gaps)
	}
	if !strings.Contains(p.log.String(), "SERVICEBUS_NAMESPACE was") {
		t.Error("the log does not warn")
	}
}

// TestSettings_OtherOptionsAreAcceptedFromTheTimeOfTheCheckpoint goes on under a
// filter, for which the token is no good.
func TestSettings_OtherOptionsAreAcceptedFromTheTimeOfTheCheckpoint(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	published(t, servers, source, 20)
	source.write(t, 20, 5)
	filtered := configured(servers, func(c *config.Config) { c.SourceFilter = `{"fullDocument.type": "OrderPlaced"}` })
	p := run(t, filtered)
	p.await(t, "the publisher to halt", func(s status.Status) bool {
		return s.State == "halted" && strings.Contains(s.LastError, "publisher checkpoint accept")
	})
	moved, err := say[command.MoveView](t, filtered, "checkpoint", "accept", "--why", "only these")
	if err != nil || moved.After.Token || moved.After.StartAt == nil || moved.After.Options != "" {
		t.Errorf("accept = %+v, %v, want it to go on at a time", moved, err)
	}
	p.await(t, "what came after to be sent", func(s status.Status) bool { return leading(s) && s.Sent >= 20 })
	source.wantAll(t, source.drain(t, servers))
}

// TestSettings_WhatACommandIsRunWithIsInTheLedgerOnceItIsSentSo decides with settings
// that the stream has not had, and starts a publisher with them.
func TestSettings_WhatACommandIsRunWithIsInTheLedgerOnceItIsSentSo(t *testing.T) {
	t.Parallel()
	place := time.Now().Add(-time.Minute).Format(time.RFC3339)
	filter := func(c *config.Config) { c.SourceFilter = `{"fullDocument.type": "OrderPlaced"}` }
	for name, tt := range map[string]struct {
		change func(*config.Config)
		halts  string // what is halted for before
		decide []string
		says   []string
	}{
		"a filter that is accepted": {filter, "stream options changed", []string{"accept"}, []string{`SOURCE_FILTER was "", now it is "{`}},
		"a filter behind a place":   {filter, "", []string{"set", place}, []string{`SOURCE_FILTER was "", now it is "{`}},
		"fields behind a place": {
			func(c *config.Config) { c.DropFields, c.FieldTime = []string{"data.a"}, "at" }, "",
			[]string{"set", place},
			[]string{`DROP_FIELDS was "", now it is "data.a"`, `FIELD_TIME was "time", now it is "at"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			published(t, servers, events(t, servers), 20)
			changed := configured(servers, tt.change)
			if tt.halts != "" {
				p := run(t, changed)
				p.awaitHalt(t, tt.halts)
				if err := p.quit(); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := say[command.MoveView](t, changed, append([]string{"checkpoint", "--why", "test"}, tt.decide...)...); err != nil {
				t.Fatal(err)
			}
			run(t, changed).await(t, "the publisher to lead", leading)
			report := entered(t, servers, "report")
			for _, want := range tt.says {
				if said := report.Lookup("error").StringValue(); !strings.Contains(said, want) {
					t.Errorf("the ledger says %q, without %q", said, want)
				}
			}
		})
	}
}

// TestSettings_ThoseOfACommandAloneAreNotTheStreams moves a checkpoint with a filter that
// no publisher has.
func TestSettings_ThoseOfACommandAloneAreNotTheStreams(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	published(t, servers, events(t, servers), 20)
	filtered := configured(servers, func(c *config.Config) { c.SourceFilter = `{"fullDocument.type": "OrderPlaced"}` })
	if _, err := say[command.MoveView](t, filtered, "checkpoint", "set", "--why", "test", time.Now().Add(-time.Minute).Format(time.RFC3339)); err != nil {
		t.Fatal(err)
	}
	p := run(t, configured(servers))
	if shown := p.await(t, "the publisher to lead", leading); shown.GapCounts["report"] != 0 {
		t.Errorf("gaps are %+v, want none: it is sent as before", shown.Gaps)
	}
}
