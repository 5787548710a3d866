package mapping_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/mapping"
	"changerelay/services/publisher/internal/relay"
)

var plainOptions = mapping.Options{Database: "shop", Collections: []string{"events"}, TraceParent: mapping.None}

// documentsHiding returns a mapper of documents that hides fields.
func documentsHiding(t testing.TB, drop, mask []string) *mapping.Documents {
	t.Helper()
	hidden, err := mapping.NewHidden(drop, mask)
	if err != nil {
		t.Fatal(err)
	}
	o := plainOptions
	o.Hidden = hidden
	return mapping.NewDocuments(o, "_id", false)
}

var (
	order  = bson.E{Key: "fullDocument", Value: bson.D{{Key: "_id", Value: id}, {Key: "status", Value: "paid"}, {Key: "card", Value: bson.D{{Key: "number", Value: "4111"}, {Key: "holder", Value: "Ann"}}}}}
	before = bson.E{Key: "fullDocumentBeforeChange", Value: bson.D{{Key: "_id", Value: id}, {Key: "status", Value: "open"}}}
	edit   = bson.E{Key: "updateDescription", Value: bson.D{
		{Key: "updatedFields", Value: bson.D{{Key: "status", Value: "paid"}, {Key: "lines.0.card.number", Value: "4111"}}},
		{Key: "removedFields", Value: bson.A{"due", "card.number"}},
		{Key: "truncatedArrays", Value: bson.A{bson.D{{Key: "field", Value: "lines"}, {Key: "newSize", Value: int32(2)}}}},
	}}
)

func TestDocuments_EachOperationOnADocumentBecomesAnEvent(t *testing.T) {
	t.Parallel()
	const whole = `{"_id":{"$oid":"65539f000102030405060708"},"status":"paid","card":{"number":"4111","holder":"Ann"}}`
	const earlier = `"before":{"_id":{"$oid":"65539f000102030405060708"},"status":"open"}`
	for name, tt := range map[string]struct {
		operation string
		parts     []bson.E
		data      string
	}{
		"an insert":                  {"insert", []bson.E{order}, `{"document":` + whole + `}`},
		"a replacement":              {"replace", []bson.E{order, before}, `{"document":` + whole + `,` + earlier + `}`},
		"an update":                  {"update", []bson.E{order, edit}, `{"document":` + whole + `,"changed":{"status":"paid","lines.0.card.number":"4111"},"removed":["due","card.number"],"truncated":[{"field":"lines","newSize":2}]}`},
		"an update without document": {"update", []bson.E{{Key: "fullDocument", Value: nil}, edit}, `{"changed":{"status":"paid","lines.0.card.number":"4111"},"removed":["due","card.number"],"truncated":[{"field":"lines","newSize":2}]}`},
		"a deletion":                 {"delete", nil, ""},
		"a deletion with pre-image":  {"delete", []bson.E{before}, `{` + earlier + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, carries, err := documentsHiding(t, nil, nil).Map(changed(t, tt.operation, tt.parts...))
			if err != nil || !carries {
				t.Fatalf("Map = %v, %v, want an event", carries, err)
			}
			if string(got.Data) != tt.data {
				t.Errorf("data is\n%s, want\n%s", got.Data, tt.data)
			}
			if got.Operation != contract.Operation(tt.operation) || got.Type != "events."+tt.operation ||
				got.AggregateID != "65539f000102030405060708" || got.Sequence != contract.Sequence(position) || got.Version.Known ||
				!got.Time.Equal(time.Unix(1700000000, 0)) || (got.DataSchema == contract.DocumentChange) != (tt.data != "") {
				t.Errorf("event is %+v", got)
			}
			if err := got.Validate(); err != nil {
				t.Errorf("the event breaks the contract: %v", err)
			}
		})
	}
}

func TestDocuments_WhatIsNoChangeOfADocumentCarriesNoEvent(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"drop", "rename", "dropDatabase", "invalidate", "create", "createIndexes", "modify"} {
		if _, carries, err := documentsHiding(t, nil, nil).Map(changed(t, operation)); carries || err != nil {
			t.Errorf("Map of %s = %v, %v, want no event", operation, carries, err)
		}
	}
}

func TestDocuments_TwoChangesOfADocumentAtOneClusterTimeHaveTwoIDs(t *testing.T) {
	t.Parallel()
	one := changed(t, "update", order, edit)
	two := one
	two.Position = contract.StreamPosition(1700000000, 7, "8265539F000000000A2C")
	first, _, err := documentsHiding(t, nil, nil).Map(one)
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := documentsHiding(t, nil, nil).Map(two)
	if err != nil || first.ID == second.ID || second.Sequence <= first.Sequence {
		t.Errorf("ids %q and %q, sequences %q and %q (%v), want them apart and rising", first.ID, second.ID, first.Sequence, second.Sequence, err)
	}
}

func TestDocuments_AnAggregateOfDocumentsIsFoundWhereverTheChangeShowsIt(t *testing.T) {
	t.Parallel()
	customer := bson.D{{Key: "_id", Value: id}, {Key: "customer", Value: "c-1"}}
	mapper := mapping.NewDocuments(plainOptions, "customer", false)
	for name, part := range map[string]bson.E{
		"in the document":  {Key: "fullDocument", Value: customer},
		"in the pre-image": {Key: "fullDocumentBeforeChange", Value: customer},
		"in the shard key": {Key: "documentKey", Value: customer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, err := mapper.Map(changed(t, "delete", part))
			if err != nil || got.AggregateID != "c-1" {
				t.Errorf("aggregate id is %q, %v, want c-1", got.AggregateID, err)
			}
		})
	}
	if _, _, err := mapper.Map(changed(t, "delete")); err == nil || !strings.Contains(err.Error(), "FULL_DOCUMENT_BEFORE_CHANGE") {
		t.Errorf("Map = %v, want it to say how a deletion would show the id", err)
	}
}

func TestDocuments_DocumentsOfSeveralCollectionsDoNotShareAnAggregate(t *testing.T) {
	t.Parallel()
	got, _, err := mapping.NewDocuments(plainOptions, "_id", true).Map(changed(t, "insert", order))
	if err != nil || got.AggregateID != "events/65539f000102030405060708" {
		t.Errorf("aggregate id is %q, %v, want it to begin with the collection", got.AggregateID, err)
	}
}

func TestDocuments_HiddenFieldsDoNotLeaveTheSource(t *testing.T) {
	t.Parallel()
	lines := bson.E{Key: "fullDocument", Value: bson.D{{Key: "_id", Value: 1}, {Key: "card", Value: bson.D{{Key: "number", Value: "4111"}}}, {Key: "lines", Value: bson.A{
		bson.D{{Key: "card", Value: bson.D{{Key: "number", Value: "4111"}, {Key: "holder", Value: "Ann"}}}}, int32(2),
	}}}}
	for name, tt := range map[string]struct {
		drop, mask []string
		want       string
	}{
		"dropped":           {[]string{"card", "lines.card.number"}, nil, `{"document":{"_id":1,"lines":[{"card":{"holder":"Ann"}},2]},"changed":{"status":"paid"},"removed":["due"],"truncated":[{"field":"lines","newSize":2}]}`},
		"masked":            {nil, []string{"card.number", "lines.card.number"}, `{"document":{"_id":1,"card":{"number":"***"},"lines":[{"card":{"number":"***","holder":"Ann"}},2]},"changed":{"status":"paid","lines.0.card.number":"***"},"removed":["due","card.number"],"truncated":[{"field":"lines","newSize":2}]}`},
		"dropped as a tree": {[]string{"lines", "due"}, []string{"card"}, `{"document":{"_id":1,"card":"***"},"changed":{"status":"paid"},"removed":["card.number"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, err := documentsHiding(t, tt.drop, tt.mask).Map(changed(t, "update", lines, edit))
			if err != nil || string(got.Data) != tt.want {
				t.Errorf("data is\n%s (%v), want\n%s", got.Data, err, tt.want)
			}
		})
	}
}

func TestDocuments_HiddenFieldsOfAnEventAreNamedFromItsDocument(t *testing.T) {
	t.Parallel()
	hidden, err := mapping.NewHidden([]string{"data.total"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := plainOptions
	o.Hidden = hidden
	got, _, err := mapping.NewEvents(o, standard, mapping.RefuseChanges).Map(inserted(t, event()))
	if err != nil || string(got.Data) != `{}` {
		t.Errorf("data is %s, %v, want it without the total", got.Data, err)
	}
}

func TestDocuments_PathsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ drop, mask []string }{
		"an empty path":          {[]string{""}, nil},
		"an empty name":          {[]string{"a..b"}, nil},
		"one path twice":         {[]string{"a"}, []string{"a"}},
		"a path within another":  {[]string{"a"}, []string{"a.b"}},
		"a path around another":  {[]string{"a.b"}, []string{"a"}},
		"one path masked twice ": {nil, []string{"a", "a"}},
	} {
		if _, err := mapping.NewHidden(tt.drop, tt.mask); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestDocuments_TheTraceContextOfADocumentIsPassedOn(t *testing.T) {
	t.Parallel()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	o := plainOptions
	o.TraceParent = "meta.trace"
	got, _, err := mapping.NewEvents(o, standard, mapping.RefuseChanges).
		Map(inserted(t, with("meta", bson.D{{Key: "trace", Value: parent}})))
	if err != nil || got.TraceParent != parent {
		t.Errorf("trace parent is %q, %v, want that of the document", got.TraceParent, err)
	}
}

func TestDocuments_AnAggregateThatIsNotOurPartCarriesNothing(t *testing.T) {
	t.Parallel()
	o := plainOptions
	o.Keep = func(id string) bool { return id == "another" }
	for name, mapper := range map[string]relay.Mapper{
		"events":    mapping.NewEvents(o, standard, mapping.RefuseChanges),
		"documents": mapping.NewDocuments(o, "_id", false),
	} {
		if _, carries, err := mapper.Map(inserted(t, event())); carries || err != nil {
			t.Errorf("%s: Map = %v, %v, want nothing", name, carries, err)
		}
	}
}

// Consumers find an aggregate by this text, so a value that changes its form
// loses its history.
func TestDocuments_GoldenAggregateIDs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/aggregate_ids.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Type  string          `json:"type"`
		Value json.RawMessage `json:"value"`
		Text  string          `json:"text"`
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		t.Run(v.Type, func(t *testing.T) {
			t.Parallel()
			var document bson.D
			if err := bson.UnmarshalExtJSON([]byte(`{"aggregateId":`+string(v.Value)+`}`), false, &document); err != nil {
				t.Fatal(err)
			}
			got, _, err := newEvents(standard).Map(inserted(t, with("aggregateId", document[0].Value)))
			if err != nil || got.AggregateID != v.Text {
				t.Errorf("aggregate id is %q, %v, want %q", got.AggregateID, err, v.Text)
			}
		})
	}
}

// BenchmarkMap maps an event; what it allocates is the event's strings and data.
func BenchmarkMap(b *testing.B) {
	for name, mapper := range map[string]relay.Mapper{
		"events": newEvents(standard), "documents": documentsHiding(b, nil, nil), "documents with hidden fields": documentsHiding(b, []string{"data.x"}, []string{"type"}),
	} {
		b.Run(name, func(b *testing.B) {
			change := inserted(b, event())
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := mapper.Map(change); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
