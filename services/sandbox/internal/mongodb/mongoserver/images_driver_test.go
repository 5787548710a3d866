package mongoserver_test

import (
	"context"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/sandbox/internal/mongodb/engine"
)

// withImages makes a collection that keeps pre- and post-images.
func withImages(t *testing.T, h *harness, name string) *mongo.Collection {
	t.Helper()
	must(t, h.db.CreateCollection(t.Context(), name,
		options.CreateCollection().SetChangeStreamPreAndPostImages(bson.D{{Key: "enabled", Value: true}})))
	return h.db.Collection(name)
}

func watch(t *testing.T, coll *mongo.Collection, pipeline any, o ...options.Lister[options.ChangeStreamOptions]) *mongo.ChangeStream {
	t.Helper()
	stream, err := coll.Watch(t.Context(), pipeline, o...)
	must(t, err)
	t.Cleanup(func() { _ = stream.Close(context.WithoutCancel(t.Context())) }) // it may have failed
	return stream
}

// change updates, replaces and deletes a document, in a transaction if the
// context has one.
func change(ctx context.Context, t *testing.T, coll *mongo.Collection) {
	t.Helper()
	_, err := coll.UpdateByID(ctx, 1, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 2}}}})
	must(t, err)
	_, err = coll.ReplaceOne(ctx, bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "n", Value: 3}})
	must(t, err)
	_, err = coll.DeleteOne(ctx, bson.D{{Key: "_id", Value: 1}})
	must(t, err)
}

func TestImages_ImagesShowADocumentBeforeAndAfterEachChange(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := withImages(t, h, "c")
	stream := watch(t, coll, mongo.Pipeline{}, options.ChangeStream().SetFullDocument(options.Required).SetFullDocumentBeforeChange(options.Required))
	insertIDs(t, coll, 1, 1)
	change(t.Context(), t, coll)
	insertIDs(t, coll, 1, 1)
	must(t, h.client.UseSession(t.Context(), func(ctx context.Context) error {
		_, err := mongo.SessionFromContext(ctx).WithTransaction(ctx, func(ctx context.Context) (any, error) {
			change(ctx, t, coll)
			return nil, nil
		})
		return err
	}))
	changed := []struct{ operation, before, after string }{
		{"insert", "", `{"_id":1,"n":1}`},
		{"update", `{"_id":1,"n":1}`, `{"_id":1,"n":2}`},
		{"replace", `{"_id":1,"n":2}`, `{"_id":1,"n":3}`},
		{"delete", `{"_id":1,"n":3}`, ""},
	}
	for i, want := range append(changed, changed...) {
		if !stream.Next(t.Context()) {
			t.Fatalf("event %d: got %v, want %s", i, stream.Err(), want.operation)
		}
		shown := func(field string) string {
			doc, ok := stream.Current.Lookup(field).DocumentOK()
			if !ok {
				return ""
			}
			text, err := bson.MarshalExtJSON(doc, false, false)
			must(t, err)
			return string(text)
		}
		operation := stream.Current.Lookup("operationType").StringValue()
		before, after := shown("fullDocumentBeforeChange"), shown("fullDocument")
		if operation != want.operation || before != want.before || after != want.after {
			t.Errorf("event %d: got %s from %s to %s, want %+v", i, operation, before, after, want)
		}
	}
}

func TestImages_AnImageThatWasNotKeptIsNullOrFailsTheStream(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("c")
	insertIDs(t, coll, 1, 1)
	lenient := watch(t, coll, mongo.Pipeline{}, options.ChangeStream().SetFullDocument(options.WhenAvailable).SetFullDocumentBeforeChange(options.WhenAvailable))
	post := watch(t, coll, mongo.Pipeline{}, options.ChangeStream().SetFullDocument(options.Required))
	pre := watch(t, coll, mongo.Pipeline{}, options.ChangeStream().SetFullDocumentBeforeChange(options.Required))
	_, err := coll.UpdateByID(t.Context(), 1, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 2}}}})
	must(t, err)
	if !lenient.Next(t.Context()) || lenient.Current.Lookup("fullDocument").Type != bson.TypeNull ||
		lenient.Current.Lookup("fullDocumentBeforeChange").Type != bson.TypeNull {
		t.Errorf("got %s, %v, want both as null", lenient.Current, lenient.Err())
	}
	for name, stream := range map[string]*mongo.ChangeStream{"post-image": post, "pre-image": pre} {
		if stream.Next(t.Context()) || code(stream.Err()) != 47 {
			t.Errorf("%s: got %v, want NoMatchingDocument", name, stream.Err())
		}
	}
	must(t, h.db.RunCommand(t.Context(), bson.D{
		{Key: "collMod", Value: "c"}, {Key: "changeStreamPreAndPostImages", Value: bson.D{{Key: "enabled", Value: true}}},
	}).Err())
	_, err = coll.UpdateByID(t.Context(), 1, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 3}}}})
	must(t, err)
	if !lenient.Next(t.Context()) || lenient.Current.Lookup("fullDocumentBeforeChange", "n").AsInt64() != 2 {
		t.Errorf("after collMod: got %s, %v, want the image", lenient.Current, lenient.Err())
	}
}

func TestImages_ALargeEventFailsTheStreamUnlessItIsSplit(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := withImages(t, h, "c")
	large := func(letter string) bson.D {
		return bson.D{{Key: "_id", Value: 1}, {Key: "s", Value: strings.Repeat(letter, 10<<20)}}
	}
	_, err := coll.InsertOne(t.Context(), large("a"))
	must(t, err)
	before := options.ChangeStream().SetFullDocumentBeforeChange(options.Required)
	split := mongo.Pipeline{{{Key: "$changeStreamSplitLargeEvent", Value: bson.D{}}}}
	whole, parts := watch(t, coll, mongo.Pipeline{}, before), watch(t, coll, split, before)
	_, err = coll.ReplaceOne(t.Context(), bson.D{{Key: "_id", Value: 1}}, large("b"))
	must(t, err)
	insertIDs(t, coll, 2, 2)
	if whole.Next(t.Context()) || code(whole.Err()) != 10334 {
		t.Errorf("got %v, want BSONObjectTooLarge", whole.Err())
	}
	fields := map[string]bool{}
	var tokens []bson.Raw
	for n := int64(1); n <= 2; n++ {
		if !parts.Next(t.Context()) {
			t.Fatalf("fragment %d: got %v", n, parts.Err())
		}
		if f := parts.Current.Lookup("splitEvent"); f.Document().Lookup("fragment").AsInt64() != n || f.Document().Lookup("of").AsInt64() != 2 {
			t.Errorf("got %s, want fragment %d of 2", f, n)
		}
		elements, err := parts.Current.Elements()
		must(t, err)
		for _, e := range elements {
			fields[e.Key()] = true
		}
		tokens = append(tokens, parts.ResumeToken())
	}
	if !fields["fullDocument"] || !fields["fullDocumentBeforeChange"] || !fields["operationType"] {
		t.Errorf("got the fields %v, want all of the event's", fields)
	}
	rest := watch(t, coll, split, options.ChangeStream().SetFullDocumentBeforeChange(options.Required).SetResumeAfter(tokens[0]))
	if !rest.Next(t.Context()) || rest.Current.Lookup("splitEvent", "fragment").AsInt64() != 2 {
		t.Errorf("resumed after the first: got %v, want the second", rest.Err())
	}
	rest = watch(t, coll, split, options.ChangeStream().SetFullDocumentBeforeChange(options.Required).SetResumeAfter(tokens[1]))
	if !rest.Next(t.Context()) || rest.Current.Lookup("documentKey", "_id").AsInt64() != 2 {
		t.Errorf("resumed after the last: got %v, want the next event", rest.Err())
	}
	if _, err := coll.Watch(t.Context(), mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(tokens[0])); code(err) != 280 {
		t.Errorf("resumed without the stage: got %v, want ChangeStreamFatalError", err)
	}
}

// TestImages_AStreamResumesAtAnEventOnlyAsItWasSplit: a document that is looked up makes
// an event larger or smaller than it was when the client had its token.
func TestImages_AStreamResumesAtAnEventOnlyAsItWasSplit(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := withImages(t, h, "c")
	text := func(letter string, size int) bson.D { return bson.D{{Key: "s", Value: strings.Repeat(letter, size)}} }
	_, err := coll.InsertOne(t.Context(), append(bson.D{{Key: "_id", Value: 1}}, text("a", 10<<20)...))
	must(t, err)
	split := mongo.Pipeline{{{Key: "$changeStreamSplitLargeEvent", Value: bson.D{}}}}
	lookups := func() *options.ChangeStreamOptionsBuilder {
		return options.ChangeStream().SetFullDocument(options.UpdateLookup).SetFullDocumentBeforeChange(options.Required)
	}
	stream := watch(t, coll, split, lookups())
	set := func(fields bson.D) {
		t.Helper()
		_, err := coll.UpdateByID(t.Context(), 1, bson.D{{Key: "$set", Value: fields}})
		must(t, err)
	}
	next := func() bson.Raw {
		t.Helper()
		if !stream.Next(t.Context()) {
			t.Fatalf("the next event: got %v", stream.Err())
		}
		token := stream.Current.Lookup("_id").Document()
		return append(bson.Raw(nil), token...)
	}
	set(bson.D{{Key: "n", Value: 1}})
	next()
	large := next() // the last fragment
	set(text("b", 1))
	small := next()
	refused := func(token bson.Raw, want string) {
		t.Helper()
		if _, err := coll.Watch(t.Context(), split, lookups().SetStartAfter(token)); code(err) != 280 || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want ChangeStreamFatalError: %s", err, want)
		}
	}
	refused(large, "not large enough to be split")
	set(text("c", 10<<20))
	refused(small, "the resume token was not found")
	if rest := watch(t, coll, split, lookups().SetStartAfter(large)); !rest.Next(t.Context()) || rest.Current.Lookup("splitEvent", "fragment").AsInt64() != 1 {
		t.Errorf("got %s, %v, want the next event", rest.Current.Lookup("splitEvent"), rest.Err())
	}
	set(text("d", 10<<20))
	for range 4 { // those of the last change but one, and all but the last
		next()
	}
	third := next()
	set(text("e", 1))
	refused(third, "produced a different split")
}

// document_source_lookup_change_pre_image.cpp at the time of 4.4.
func TestImages_Before6ACollectionKeepsThoseBeforeAChange(t *testing.T) {
	t.Parallel()
	h := startVersion(t, "4.4")
	ask(t, h.db, []answer{
		{`{"create": "c", "recordPreImages": true}`, `{"ok": 1.0}`},
		{`{"listCollections": 1}`, `{"cursor.firstBatch.0.options": {"recordPreImages": true}}`},
		{`{"create": "plain"}`, `{"ok": 1.0}`},
		{`{"insert": "plain", "documents": [{"_id": 1, "n": 1}]}`, `{"n": 1}`},
		{`{"create": "v", "viewOn": "c"}`, `{"ok": 1.0}`},
		{`{"collMod": "v", "recordPreImages": true}`, `{"code": 72}`},
		{`{"aggregate": "c", "pipeline": [{"$changeStream": {"fullDocument": "whenAvailable"}}], "cursor": {}}`, `{"code": 40575}`},
	})
	coll, plain := h.db.Collection("c"), h.db.Collection("plain")
	stream := watch(t, coll, mongo.Pipeline{}, options.ChangeStream().SetFullDocument(options.UpdateLookup).SetFullDocumentBeforeChange(options.Required))
	insertIDs(t, coll, 1, 1)
	change(t.Context(), t, coll)
	for i, want := range []string{
		"_id operationType clusterTime fullDocument ns documentKey",
		"_id operationType clusterTime fullDocument fullDocumentBeforeChange ns documentKey updateDescription",
		"_id operationType clusterTime fullDocument fullDocumentBeforeChange ns documentKey",
		"_id operationType clusterTime fullDocumentBeforeChange ns documentKey",
	} {
		if !stream.Next(t.Context()) {
			t.Fatalf("event %d: got %v", i, stream.Err())
		}
		if got := names(t, without(stream.Current, "txnNumber", "lsid")); got != want {
			t.Errorf("event %d: got %s, want %s", i, got, want)
		}
		if n := stream.Current.Lookup("fullDocumentBeforeChange", "n"); i > 0 && n.AsInt64() != int64(i) {
			t.Errorf("event %d: got %s before the change, want n: %d", i, n, i)
		}
	}
	lenient := watch(t, plain, mongo.Pipeline{}, options.ChangeStream().SetFullDocumentBeforeChange(options.WhenAvailable))
	strict := watch(t, plain, mongo.Pipeline{}, options.ChangeStream().SetFullDocumentBeforeChange(options.Required))
	update := func(n int) {
		_, err := plain.UpdateByID(t.Context(), 1, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: n}}}})
		must(t, err)
	}
	update(2)
	const bare = "_id operationType clusterTime ns documentKey updateDescription"
	if !lenient.Next(t.Context()) || names(t, without(lenient.Current, "txnNumber", "lsid")) != bare {
		t.Errorf("got %s, %v, want no image", lenient.Current, lenient.Err())
	}
	if strict.Next(t.Context()) || code(strict.Err()) != 51770 {
		t.Errorf("got %v, want the stream to fail with 51770", strict.Err())
	}
	ask(t, h.db, []answer{
		{`{"collMod": "plain", "recordPreImages": "yes"}`, `{"ok": 1.0}`},
		{`{"listCollections": 1, "filter": {"name": "plain"}}`, `{"cursor.firstBatch.0.options": {"recordPreImages": true}}`},
	})
	update(3)
	if !lenient.Next(t.Context()) || lenient.Current.Lookup("fullDocumentBeforeChange", "n").AsInt64() != 2 {
		t.Errorf("got %s, %v, want the image", lenient.Current, lenient.Err())
	}
}
