package changestream_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/testserver"
)

func TestSource_SeveralCollectionsAreOneStream(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		collections []string
		want        []int
	}{
		"a list":             {[]string{"a", "b"}, []int{1, 2, 4}},
		"the whole database": {nil, []int{1, 2, 3, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := testserver.Mongo(t).Database(testserver.Name(t))
			stream := open(t, changestream.Source{Database: database, Collections: tt.collections})
			for n, collection := range []string{"a", "b", "c", "a"} {
				insert(t, database.Collection(collection), n+1, n+1)
			}
			got := read(t, stream, len(tt.want))
			for i, change := range got {
				if n, _ := bson.Raw(change.Raw).Lookup("documentKey", "_id").AsInt64OK(); int(n) != tt.want[i] {
					t.Errorf("change %d is of document %d, want %d", i, n, tt.want[i])
				}
			}
		})
	}
}

func TestSource_TheServerFiltersDocumentsAndNotWhatHappensToTheCollection(t *testing.T) {
	t.Parallel()
	events := collection(t)
	source := changestream.Of(events)
	source.Filter = bson.D{{Key: "fullDocument._id", Value: bson.D{{Key: "$gt", Value: 7}}}}
	stream := open(t, source)
	insert(t, events, 1, 9)
	if err := events.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := read(t, stream, 4)
	wantNumbers(t, got[:2], 8, 9)
	if operation, _ := bson.Raw(got[2].Raw).Lookup("operationType").StringValueOK(); operation != "drop" {
		t.Errorf("the change after the filtered ones is %q, want drop", operation)
	}
}

func TestSource_AnUpdateShowsTheDocumentWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	events := collection(t)
	insert(t, events, 1, 1)
	for image, shown := range map[options.FullDocument]bool{"": false, options.UpdateLookup: true} {
		source := changestream.Of(events)
		source.FullDocument = image
		stream := open(t, source)
		if _, err := events.UpdateByID(t.Context(), 1, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}); err != nil {
			t.Fatal(err)
		}
		change := read(t, stream, 1)[0]
		if _, got := bson.Raw(change.Raw).Lookup("fullDocument").DocumentOK(); got != shown {
			t.Errorf("with %q the update shows the document: %v, want %v", image, got, shown)
		}
	}
}

// Each image fits into a change, and both together do not.
func TestSource_AChangeWithItsImagesThatIsTooLargeIsSplitAndPutTogether(t *testing.T) {
	t.Parallel()
	events := collection(t)
	keepImages(t, events)
	large := func(letter string) bson.D { return bson.D{{Key: "text", Value: strings.Repeat(letter, 9<<20)}} }
	if _, err := events.InsertOne(t.Context(), append(bson.D{{Key: "_id", Value: 1}}, large("a")...)); err != nil {
		t.Fatal(err)
	}
	source := changestream.Of(events)
	source.FullDocument, source.BeforeChange = options.Required, options.Required
	stream := open(t, source)
	if _, err := events.ReplaceOne(t.Context(), bson.D{{Key: "_id", Value: 1}}, large("b")); err != nil {
		t.Fatal(err)
	}
	insert(t, events, 2, 3)
	changes := read(t, stream, 3)
	for field, want := range map[string]string{"fullDocumentBeforeChange": "a", "fullDocument": "b"} {
		text, _ := bson.Raw(changes[0].Raw).Lookup(field, "text").StringValueOK()
		if len(text) != 9<<20 || text[:1] != want {
			t.Errorf("%s has %d bytes, want %d of %q", field, len(text), 9<<20, want)
		}
	}
	wantNumbers(t, changes, 1, 3)
	resumed := changestream.New(source, changestream.Start{Token: changes[0].Token}, zerolog.Nop())
	t.Cleanup(func() { resumed.Close(t.Context()) })
	wantNumbers(t, read(t, resumed, 2), 2, 3)
	mayGoOnAfter(t, source, changes[0].Token)
	if quiet, err := source.Quiet(t.Context(), changes[0].Token, checkpoint.Place{Position: changes[2].Position}.Time()); err != nil || quiet {
		t.Errorf("Quiet = %v, %v, want the changes behind a split one", quiet, err)
	}
}

// TestSource_AChangeThatIsSplitOtherwiseIsReadAgain: whether a change is split rests on the
// document that is looked up for it, and a server takes its token only as it was split.
func TestSource_AChangeThatIsSplitOtherwiseIsReadAgain(t *testing.T) {
	t.Parallel()
	events := collection(t)
	keepImages(t, events)
	text := func(size int) bson.D { return bson.D{{Key: "text", Value: strings.Repeat("a", size)}} }
	if _, err := events.InsertOne(t.Context(), append(bson.D{{Key: "_id", Value: 1}}, text(9<<20)...)); err != nil {
		t.Fatal(err)
	}
	source := changestream.Of(events)
	source.FullDocument, source.BeforeChange = options.UpdateLookup, options.Required
	stream := open(t, source)
	update := func(fields bson.D) relay.Change {
		t.Helper()
		if _, err := events.UpdateByID(t.Context(), 1, bson.D{{Key: "$set", Value: fields}}); err != nil {
			t.Fatal(err)
		}
		return read(t, stream, 1)[0]
	}
	again := func(from relay.Change, want ...relay.Change) {
		t.Helper()
		mayGoOnAfter(t, source, from.Token)
		resumed := changestream.New(source, changestream.Start{Token: from.Token}, zerolog.Nop())
		defer resumed.Close(t.Context())
		for i, got := range read(t, resumed, len(want)) {
			if got.Position != want[i].Position {
				t.Errorf("change %d is at %s, want %s", i, got.Position, want[i].Position)
			}
		}
	}
	split := update(bson.D{{Key: "n", Value: 1}})
	shrunk := update(text(1))
	again(split, split, shrunk)
	grown := update(text(9 << 20))
	again(shrunk, shrunk, grown)
	again(split, shrunk, grown)
	mayGoOnAfter(t, source, wholeToken(t, split.Position))
}

// mayGoOnAfter checks that a stream can be opened after a token.
func mayGoOnAfter(t *testing.T, source changestream.Source, token bson.Raw) {
	t.Helper()
	if err := source.CheckAfter(t.Context(), token, func(time.Duration) {}); err != nil {
		t.Errorf("CheckAfter = %v, want nil", err)
	}
}

// wholeToken is the token that is in a position.
func wholeToken(t *testing.T, position contract.Position) bson.Raw {
	t.Helper()
	_, data, _ := strings.Cut(string(position), ".")
	token, err := bson.Marshal(bson.D{{Key: "_data", Value: data}})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestSource_AServerThatCannotSplitChangesIsReadAllTheSame(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t) // fail points are the whole server's
	client := testserver.Connect(t, servers.MongoURI)
	events := client.Database("shop").Collection("events")
	start := now(t, events)
	insert(t, events, 1, 3)
	fail(t, client, "aggregate", 40324) // an unknown stage
	stream := from(t, events, start)
	wantNumbers(t, read(t, stream, 3), 1, 3)
	if state := stream.State(); state.Reopened != 0 {
		t.Errorf("state is %+v, want the stream opened without an interruption", state)
	}
}

func keepImages(t *testing.T, events *mongo.Collection) {
	t.Helper()
	images := options.CreateCollection().SetChangeStreamPreAndPostImages(bson.D{{Key: "enabled", Value: true}})
	if err := events.Database().CreateCollection(t.Context(), events.Name(), images); err != nil {
		t.Fatal(err)
	}
}

func TestSource_AStreamThatTheServerDoesNotTakeIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	events := collection(t)
	source := changestream.Of(events)
	if err := source.Check(t.Context()); err != nil {
		t.Errorf("Check = %v, want nil", err)
	}
	source.Filter = bson.D{{Key: "fullDocument.n", Value: bson.D{{Key: "$above", Value: 1}}}}
	halt, ok := errors.AsType[*changestream.HaltError](source.Check(t.Context()))
	if !ok || halt.Reason != changestream.Refused {
		t.Errorf("Check of a broken filter = %v, want a refusal", halt)
	}
}

// open returns the stream of a source from now on.
func open(t *testing.T, source changestream.Source) relay.Source {
	t.Helper()
	stream := changestream.New(source, now(t, anyCollection(source)), zerolog.Nop())
	t.Cleanup(func() { stream.Close(t.Context()) })
	return stream
}

func anyCollection(source changestream.Source) *mongo.Collection {
	return source.Database.Collection("any")
}

func TestFingerprint_StaysWhatItWas(t *testing.T) {
	t.Parallel()
	events := collection(t)
	database := events.Database().Client().Database("shop")
	got, err := changestream.Source{Database: database, Collections: []string{"b", "a"}}.Fingerprint()
	if err != nil || got != "029e21cc61181132" {
		t.Errorf("Fingerprint = %s, %v: checkpoints that were saved under another are refused", got, err)
	}
}
