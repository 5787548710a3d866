package mapping_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/mapping"
	"changerelay/services/publisher/internal/relay"
)

var (
	standard = mapping.Paths{AggregateID: "aggregateId", Type: "type", Version: "version", Time: "time", Data: "data", MayLackData: true}
	position = contract.StreamPosition(1700000000, 7, "8265539F000000000A2B")
	id       = bson.ObjectID{0x65, 0x53, 0x9f, 0, 1, 2, 3, 4, 5, 6, 7, 8}
	at       = time.Date(2026, 11, 21, 18, 30, 0, 5e6, time.UTC)
)

// newEvents returns the mapper of one events collection.
func newEvents(paths mapping.Paths) *mapping.Events {
	return mapping.NewEvents(mapping.Options{Database: "shop", Collections: []string{"events"}, TraceParent: mapping.None}, paths, mapping.RefuseChanges)
}

// inserted is the change of an inserted document.
func inserted(t testing.TB, document bson.D) relay.Change {
	t.Helper()
	return changed(t, "insert", bson.E{Key: "fullDocument", Value: document})
}

func changed(t testing.TB, operation string, more ...bson.E) relay.Change {
	t.Helper()
	raw, err := bson.Marshal(append(bson.D{
		{Key: "_id", Value: bson.D{{Key: "_data", Value: "8265539F000000000A2B"}}},
		{Key: "operationType", Value: operation},
		{Key: "clusterTime", Value: bson.Timestamp{T: 1700000000, I: 7}},
		{Key: "ns", Value: bson.D{{Key: "db", Value: "shop"}, {Key: "coll", Value: "events"}}},
		{Key: "documentKey", Value: bson.D{{Key: "_id", Value: id}}},
	}, more...))
	if err != nil {
		t.Fatal(err)
	}
	return relay.Change{Raw: raw, Position: position}
}

func event() bson.D {
	return bson.D{
		{Key: "_id", Value: id},
		{Key: "aggregateId", Value: "order-000123"},
		{Key: "version", Value: int32(4)},
		{Key: "type", Value: "OrderPlaced"},
		{Key: "time", Value: at},
		{Key: "data", Value: bson.D{{Key: "total", Value: 12.5}}},
	}
}

// with returns the event with one field set, or without it where value is absent.
func with(name string, value any) bson.D {
	var document bson.D
	for _, e := range event() {
		if e.Key != name {
			document = append(document, e)
		}
	}
	if value != absent {
		document = append(document, bson.E{Key: name, Value: value})
	}
	return document
}

var absent = any(struct{ absent bool }{})

func TestMapping_AnInsertedEventBecomesAnEventOfTheContract(t *testing.T) {
	t.Parallel()
	got, carries, err := newEvents(standard).Map(inserted(t, event()))
	if err != nil || !carries {
		t.Fatalf("Map = %v, %v, want an event", carries, err)
	}
	want := contract.Event{
		Source:      "/shop/events",
		Type:        "OrderPlaced",
		AggregateID: "order-000123",
		Time:        at,
		Operation:   contract.Insert,
		Sequence:    contract.SequenceOf(contract.VersionOf(4), position),
		Position:    position,
		Version:     contract.VersionOf(4),
		ContentType: contract.ContentTypeJSON,
	}
	key, err := bson.Marshal(bson.D{{Key: "_id", Value: id}})
	if err != nil {
		t.Fatal(err)
	}
	want.ID = contract.Identity{
		Database: "shop", Collection: "events", DocumentKey: key,
		Operation: contract.Insert, Version: want.Version, Position: position,
	}.MessageID()
	if data := string(got.Data); data != `{"total":12.5}` {
		t.Errorf("data is %s", data)
	}
	if got.ID != want.ID || got.AggregateID != want.AggregateID || !got.Time.Equal(want.Time) || got.Sequence != want.Sequence ||
		got.Type != want.Type || got.Version != want.Version || got.Source != want.Source || got.Position != want.Position {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if err := got.Validate(); err != nil {
		t.Errorf("the event breaks the contract: %v", err)
	}
}

func TestMapping_AggregateIDsHaveOneTextForm(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		value any
		want  string
	}{
		"a string is itself":                    {"order-1", "order-1"},
		"a 32-bit integer is decimal":           {int32(-7), "-7"},
		"a 64-bit integer is decimal":           {int64(math.MaxInt64), "9223372036854775807"},
		"an ObjectId is 24 hex digits":          {id, "65539f000102030405060708"},
		"a UUID is grouped lower-case hex":      {bson.Binary{Subtype: 4, Data: []byte{0xAB, 0xCD, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}, "abcd0203-0405-0607-0809-0a0b0c0d0e0f"},
		"a string with a zero byte is itself":   {"a\x00b", "a\x00b"},
		"an integer and its text are one value": {"42", "42"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, err := newEvents(standard).Map(inserted(t, with("aggregateId", tt.value)))
			if err != nil || got.AggregateID != tt.want {
				t.Errorf("aggregate id is %q, %v, want %q", got.AggregateID, err, tt.want)
			}
		})
	}
}

func TestMapping_AChangeThatCannotBeMappedSaysWhichFieldIsWrong(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		document bson.D
		field    string
		problem  string
	}{
		"no aggregate id":                 {with("aggregateId", absent), "aggregateId", "no aggregate id"},
		"a null aggregate id":             {with("aggregateId", nil), "aggregateId", "no aggregate id"},
		"an empty aggregate id":           {with("aggregateId", ""), "aggregateId", "is empty"},
		"an aggregate id of another type": {with("aggregateId", 1.5), "aggregateId", "not a string, integer, ObjectId or UUID"},
		"an old UUID":                     {with("aggregateId", bson.Binary{Subtype: 3, Data: make([]byte, 16)}), "aggregateId", "subtype 3"},
		"a UUID of the wrong length":      {with("aggregateId", bson.Binary{Subtype: 4, Data: make([]byte, 15)}), "aggregateId", "not a string"},
		"no type":                         {with("type", absent), "type", "no type"},
		"a type that is no string":        {with("type", int32(1)), "type", "not a string"},
		"no version":                      {with("version", absent), "version", "FIELD_VERSION=-"},
		"a version that is no number":     {with("version", "4"), "version", "not a whole number"},
		"a broken version":                {with("version", 4.5), "version", "not a whole number"},
		"a version that is not a number":  {with("version", math.NaN()), "version", "not a whole number"},
		"a negative version":              {with("version", int64(-1)), "version", "below 0"},
		"a time that is no date":          {with("time", int32(1)), "time", "not a date"},
		"a time that is no RFC 3339":      {with("time", "yesterday"), "time", "not an RFC 3339 time"},
		"a time beyond RFC 3339":          {with("time", bson.DateTime(math.MaxInt64)), "time", "in the year"},
		"data that is no document":        {with("data", bson.A{}), "data", "not a document"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := newEvents(standard).Map(inserted(t, tt.document))
			unmappable, ok := errors.AsType[*mapping.Unmappable](err)
			if !ok || unmappable.Field != tt.field || !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("Map = %v, want field %q with %q", err, tt.field, tt.problem)
			}
		})
	}
}

func TestMapping_WhatMayBeMissingMay(t *testing.T) {
	t.Parallel()
	unnumbered := standard
	unnumbered.Version = mapping.None
	bare := mapping.Paths{AggregateID: "aggregateId", Type: "type", Version: mapping.None, Time: mapping.None, Data: mapping.None}
	for name, tt := range map[string]struct {
		paths    mapping.Paths
		document bson.D
		check    func(contract.Event) bool
	}{
		"time":                            {standard, with("time", absent), func(e contract.Event) bool { return e.Time.IsZero() }},
		"a time as text":                  {standard, with("time", "2026-11-21T18:30:00.005Z"), func(e contract.Event) bool { return e.Time.Equal(at) }},
		"data":                            {standard, with("data", absent), func(e contract.Event) bool { return string(e.Data) == "{}" }},
		"a whole double as version":       {standard, with("version", 4.0), func(e contract.Event) bool { return e.Version == contract.VersionOf(4) }},
		"version, where none is numbered": {unnumbered, with("version", absent), func(e contract.Event) bool { return e.Sequence == contract.Sequence(position) }},
		"every path but two": {bare, event(), func(e contract.Event) bool {
			return strings.HasPrefix(string(e.Data), `{"_id":{"$oid":`) && !e.Version.Known && e.Time.IsZero()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, carries, err := newEvents(tt.paths).Map(inserted(t, tt.document))
			if err != nil || !carries || !tt.check(got) {
				t.Errorf("Map = %+v, %v, %v", got, carries, err)
			}
		})
	}
}

func TestMapping_PathsReachIntoDocuments(t *testing.T) {
	t.Parallel()
	paths := mapping.Paths{AggregateID: "meta.order.id", Type: "meta.kind", Version: "meta.order.v", Time: "meta.at", Data: "body.inner"}
	got, _, err := newEvents(paths).Map(inserted(t, bson.D{
		{Key: "meta", Value: bson.D{
			{Key: "order", Value: bson.D{{Key: "id", Value: int32(9)}, {Key: "v", Value: int64(2)}}},
			{Key: "kind", Value: "Paid"},
			{Key: "at", Value: at},
		}},
		{Key: "body", Value: bson.D{{Key: "inner", Value: bson.D{{Key: "x", Value: "y"}}}}},
	}))
	if err != nil || got.AggregateID != "9" || got.Type != "Paid" || got.Version != contract.VersionOf(2) || string(got.Data) != `{"x":"y"}` {
		t.Errorf("Map = %+v, %v", got, err)
	}
	_, _, err = newEvents(paths).Map(inserted(t, bson.D{{Key: "meta", Value: bson.D{{Key: "order", Value: "flat"}}}}))
	if unmappable, ok := errors.AsType[*mapping.Unmappable](err); !ok || unmappable.Field != "meta.order.id" {
		t.Errorf("Map = %v, want the field meta.order.id named", err)
	}
}

func TestMapping_OtherOperationsArePassedOverOrRefusedByPolicy(t *testing.T) {
	t.Parallel()
	for policy, refused := range map[mapping.OtherOperations]map[string]bool{
		mapping.RefuseChanges: {"update": true, "replace": true},
		mapping.RefuseAll:     {"update": true, "replace": true, "delete": true},
		mapping.PassAll:       {},
	} {
		for _, operation := range []string{"update", "replace", "delete", "drop", "rename", "dropDatabase", "invalidate", "createIndexes"} {
			t.Run(string(policy)+" "+operation, func(t *testing.T) {
				t.Parallel()
				_, carries, err := mapping.NewEvents(plainOptions, standard, policy).Map(changed(t, operation))
				if carries || (err != nil) != refused[operation] {
					t.Errorf("Map = %v, %v, want no event, and an error: %v", carries, err, refused[operation])
				}
			})
		}
	}
}

func TestMapping_TheSameChangeHasTheSameIDWhoeverReadsIt(t *testing.T) {
	t.Parallel()
	one, _, err := newEvents(standard).Map(inserted(t, event()))
	if err != nil {
		t.Fatal(err)
	}
	later := inserted(t, event())
	later.Position = contract.StreamPosition(1800000000, 1, "82FF")
	two, _, err := newEvents(standard).Map(later)
	if err != nil || one.ID != two.ID || one.Sequence != two.Sequence {
		t.Errorf("ids %q and %q, sequences %q and %q, want them equal: they rest on the version", one.ID, two.ID, one.Sequence, two.Sequence)
	}
	next, _, err := newEvents(standard).Map(inserted(t, with("version", int32(5))))
	if err != nil || next.ID == one.ID || next.Sequence <= one.Sequence {
		t.Errorf("the next version has id %q and sequence %q, want another id and a higher sequence", next.ID, next.Sequence)
	}
}

// TestMapping_AShardKeyIsNoPartOfAnID: a live insert shows the shard key in the key
// of its document, and a copy of the document shows the _id alone.
func TestMapping_AShardKeyIsNoPartOfAnID(t *testing.T) {
	t.Parallel()
	document := bson.E{Key: "fullDocument", Value: event()}
	copied, _, err := newEvents(standard).Map(changed(t, "snapshot", document))
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]bson.D{
		"before the _id":         {{Key: "customer", Value: "c-1"}, {Key: "_id", Value: id}},
		"behind the _id":         {{Key: "_id", Value: id}, {Key: "customer", Value: "c-1"}},
		"with an _id of its own": {{Key: "customer", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "_id", Value: id}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live, _, err := newEvents(standard).Map(changed(t, "insert", document, bson.E{Key: "documentKey", Value: key}))
			if err != nil || live.ID != copied.ID || live.Sequence != copied.Sequence {
				t.Errorf("id %q, sequence %q (%v), want those of the copied event: %q, %q", live.ID, live.Sequence, err, copied.ID, copied.Sequence)
			}
		})
	}
}

// FuzzMap feeds the mapper any bytes as a change: it never panics, and an event
// that it gives has an aggregate id and a type.
func FuzzMap(f *testing.F) {
	f.Add(inserted(f, event()).Raw)
	f.Add(changed(f, "delete").Raw)
	f.Add([]byte{5, 0, 0, 0, 0})
	f.Add(changed(f, "update", order, edit, before).Raw)
	mappers := []relay.Mapper{newEvents(standard), documentsHiding(f, []string{"a.b"}, []string{"c"})}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, mapper := range mappers {
			got, carries, err := mapper.Map(relay.Change{Raw: raw, Position: position})
			if carries && (err != nil || got.AggregateID == "" || got.Data != nil && !json.Valid(got.Data)) {
				t.Fatalf("Map(%x) = %+v, %v", raw, got, err)
			}
		}
	})
}
