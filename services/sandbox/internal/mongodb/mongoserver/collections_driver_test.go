package mongoserver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/sandbox/internal/mongodb/engine"
)

// ids are the _ids of what a find gives, in order.
func ids(t *testing.T, coll *mongo.Collection, filter any, o ...options.Lister[options.FindOptions]) []int32 {
	t.Helper()
	cursor, err := coll.Find(t.Context(), filter, o...)
	must(t, err)
	var docs []struct {
		ID int32 `bson:"_id"`
	}
	must(t, cursor.All(t.Context(), &docs))
	found := []int32{}
	for _, doc := range docs {
		found = append(found, doc.ID)
	}
	return found
}

func insertIDs(t *testing.T, coll *mongo.Collection, from, to int) {
	t.Helper()
	for n := from; n <= to; n++ {
		_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: n}, {Key: "n", Value: n}})
		must(t, err)
	}
}

// code is the code of a command's or a write's error, 0 for another.
func code(err error) int {
	var failure mongo.ServerError
	if !errors.As(err, &failure) {
		return 0
	}
	return slices.Max(append(failure.ErrorCodes(), 0))
}

func TestCollections_ACappedCollectionKeepsTheNewestDocuments(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	must(t, h.db.CreateCollection(t.Context(), "c", options.CreateCollection().SetCapped(true).SetSizeInBytes(4096).SetMaxDocuments(3)))
	coll := h.db.Collection("c")
	insertIDs(t, coll, 1, 5)
	if got := ids(t, coll, bson.D{}); !slices.Equal(got, []int32{3, 4, 5}) {
		t.Errorf("got %v, want the last three", got)
	}
	if _, err := coll.DeleteOne(t.Context(), bson.D{{Key: "_id", Value: 4}}); code(err) != 20 {
		t.Errorf("delete: got %v, want IllegalOperation", err)
	}
	if _, err := coll.UpdateByID(t.Context(), 4, bson.D{{Key: "$set", Value: bson.D{{Key: "s", Value: "longer"}}}}); code(err) != 10003 {
		t.Errorf("update that grows: got %v, want 10003", err)
	}
	_, err := coll.UpdateByID(t.Context(), 4, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: int32(40)}}}})
	must(t, err)
}

func TestCollections_ATailableCursorWaitsForWhatIsInsertedLater(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	must(t, h.db.CreateCollection(t.Context(), "c", options.CreateCollection().SetCapped(true).SetSizeInBytes(4096)))
	coll := h.db.Collection("c")
	insertIDs(t, coll, 1, 1)
	cursor, err := coll.Find(t.Context(), bson.D{},
		options.Find().SetCursorType(options.TailableAwait).SetMaxAwaitTime(time.Minute))
	must(t, err)
	defer cursor.Close(context.WithoutCancel(t.Context()))
	insertsFrom := make(chan int)
	failed := make(chan error, 1)
	go func() {
		for n := range insertsFrom {
			if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: n}}); err != nil {
				failed <- err
			}
		}
		close(failed)
	}()
	for want := 1; want <= 3; want++ {
		if !cursor.Next(t.Context()) {
			t.Fatalf("got %v, want document %d", cursor.Err(), want)
		}
		if got := cursor.Current.Lookup("_id").AsInt64(); got != int64(want) {
			t.Errorf("got document %d, want %d", got, want)
		}
		insertsFrom <- want + 1
	}
	close(insertsFrom)
	must(t, <-failed)
	if _, err := h.db.Collection("plain").InsertOne(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.db.Collection("plain").Find(t.Context(), bson.D{}, options.Find().SetCursorType(options.Tailable)); code(err) != 2 {
		t.Errorf("tail of a plain collection: got %v, want BadValue", err)
	}
}

func TestCollections_ATailThatFallsBehindIsLost(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	must(t, h.db.CreateCollection(t.Context(), "c", options.CreateCollection().SetCapped(true).SetSizeInBytes(4096).SetMaxDocuments(2)))
	coll := h.db.Collection("c")
	insertIDs(t, coll, 1, 1)
	cursor, err := coll.Find(t.Context(), bson.D{}, options.Find().SetCursorType(options.Tailable))
	must(t, err)
	defer cursor.Close(context.WithoutCancel(t.Context()))
	if !cursor.Next(t.Context()) {
		t.Fatalf("got %v, want the first document", cursor.Err())
	}
	insertIDs(t, coll, 2, 4)
	if cursor.TryNext(t.Context()) || code(cursor.Err()) != 136 {
		t.Errorf("got %v, want CappedPositionLost", cursor.Err())
	}
}

func TestCollections_AViewShowsItsPipeline(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	insertIDs(t, h.db.Collection("c"), 1, 5)
	must(t, h.db.CreateView(t.Context(), "big", "c", mongo.Pipeline{{{Key: "$match", Value: bson.D{{Key: "n", Value: bson.D{{Key: "$gt", Value: 2}}}}}}}))
	must(t, h.db.CreateView(t.Context(), "odd", "big", mongo.Pipeline{{{Key: "$match", Value: bson.D{{Key: "n", Value: bson.D{{Key: "$mod", Value: bson.A{2, 1}}}}}}}}))
	odd := h.db.Collection("odd")
	if got := ids(t, odd, bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: -1}}).SetSkip(1)); !slices.Equal(got, []int32{3}) {
		t.Errorf("find: got %v, want [3]", got)
	}
	if n, err := odd.EstimatedDocumentCount(t.Context()); err != nil || n != 2 {
		t.Errorf("count: got %d, %v, want 2", n, err)
	}
	var values []int32
	must(t, odd.Distinct(t.Context(), "n", bson.D{}).Decode(&values))
	if !slices.Equal(values, []int32{3, 5}) {
		t.Errorf("distinct: got %v, want [3 5]", values)
	}
	if _, err := odd.InsertOne(t.Context(), bson.D{}); code(err) != 166 {
		t.Errorf("insert: got %v, want CommandNotSupportedOnView", err)
	}
	if _, err := odd.Watch(t.Context(), mongo.Pipeline{}); code(err) != 166 {
		t.Errorf("watch: got %v, want CommandNotSupportedOnView", err)
	}
}

func TestCollections_ACollationDecidesWhichTextIsTheSameAndComesFirst(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	folded := &options.Collation{Locale: "en", Strength: 2}
	must(t, h.db.CreateCollection(t.Context(), "folded", options.CreateCollection().SetCollation(folded)))
	for _, name := range []string{"plain", "folded"} {
		for n, s := range []string{"b", "A", "a", "é"} {
			_, err := h.db.Collection(name).InsertOne(t.Context(), bson.D{{Key: "_id", Value: int32(n)}, {Key: "s", Value: s}})
			must(t, err)
		}
		_, err := h.db.Collection(name).Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "s", Value: 1}}})
		must(t, err)
	}
	isA, bySize := bson.D{{Key: "s", Value: "A"}}, bson.D{{Key: "s", Value: 1}, {Key: "_id", Value: 1}}
	plain := h.db.Collection("plain")
	for _, c := range []struct {
		what      string
		got, want []int32
	}{
		{"without a collation", ids(t, plain, isA), []int32{1}},
		{"by the statement's", ids(t, plain, isA, options.Find().SetCollation(folded)), []int32{1, 2}},
		{"by the collection's", ids(t, h.db.Collection("folded"), isA), []int32{1, 2}},
		{"simple over the collection's", ids(t, h.db.Collection("folded"), isA, options.Find().SetCollation(&options.Collation{Locale: "simple"})), []int32{1}},
		{"in a list", ids(t, plain, bson.D{{Key: "s", Value: bson.D{{Key: "$in", Value: bson.A{"B", "É"}}}}}, options.Find().SetCollation(folded)), []int32{0, 3}},
		{"in the order of bytes", ids(t, plain, bson.D{}, options.Find().SetSort(bySize)), []int32{1, 2, 0, 3}},
		{"in the order of the language", ids(t, plain, bson.D{{Key: "s", Value: bson.D{{Key: "$gt", Value: "a"}}}}, options.Find().SetSort(bySize).SetCollation(folded)), []int32{0, 3}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", c.what, c.got, c.want)
		}
	}
}

func TestCollections_AUniqueIndexWithACollationTakesEachTextOnce(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("c")
	_, err := coll.Indexes().CreateOne(t.Context(), mongo.IndexModel{
		Keys:    bson.D{{Key: "s", Value: 1}},
		Options: options.Index().SetUnique(true).SetCollation(&options.Collation{Locale: "en", Strength: 2}),
	})
	must(t, err)
	_, err = coll.InsertOne(t.Context(), bson.D{{Key: "s", Value: "a"}})
	must(t, err)
	if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "s", Value: "A"}}); !mongo.IsDuplicateKeyError(err) {
		t.Errorf("got %v, want a duplicate key", err)
	}
	if n, err := coll.CountDocuments(t.Context(), bson.D{{Key: "s", Value: "a"}}); err != nil || n != 1 {
		t.Errorf("got %d, %v, want the document although the index holds it otherwise", n, err)
	}
}

func TestCollections_OutTakesThePlaceOfACollectionAndKeepsItsIndexes(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	insertIDs(t, h.db.Collection("c"), 1, 3)
	to := h.db.Collection("to")
	insertIDs(t, to, 7, 7)
	_, err := to.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "n", Value: 1}}, Options: options.Index().SetUnique(true)})
	must(t, err)
	run := func(stages ...bson.D) error {
		_, err := h.db.Collection("c").Aggregate(t.Context(), append(stages, bson.D{{Key: "$out", Value: "to"}}))
		return err
	}
	must(t, run())
	if got := ids(t, to, bson.D{}); !slices.Equal(got, []int32{1, 2, 3}) {
		t.Errorf("got %v, want what the pipeline made", got)
	}
	if err := run(bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 1}}}}); !mongo.IsDuplicateKeyError(err) {
		t.Errorf("got %v, want a duplicate key of the index", err)
	}
	names, err := h.db.ListCollectionNames(t.Context(), bson.D{})
	must(t, err)
	slices.Sort(names)
	if got := ids(t, to, bson.D{}); len(got) != 3 || !slices.Equal(names, []string{"c", "to"}) {
		t.Errorf("after a failure: got %v in %v, want the collection as it was and nothing else", got, names)
	}
}

func TestCollections_MergeDoesWhatItIsToldWithMatches(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	insertIDs(t, h.db.Collection("c"), 1, 2)
	bump := bson.A{bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: bson.D{{Key: "$add", Value: bson.A{"$n", "$$new.n"}}}}}}}}
	for i, c := range []struct {
		matched any
		missing string
		want    string
		code    int
	}{
		{"merge", "insert", `[{"_id":1,"n":1,"old":true},{"_id":2,"n":2}]`, 0},
		{"replace", "insert", `[{"_id":1,"n":1},{"_id":2,"n":2}]`, 0},
		{"keepExisting", "discard", `[{"_id":1,"n":10,"old":true}]`, 0},
		{bump, "discard", `[{"_id":1,"n":11,"old":true}]`, 0},
		{"fail", "insert", `[{"_id":1,"n":10,"old":true}]`, 11000},
		{"merge", "fail", `[{"_id":1,"n":1,"old":true}]`, 13113},
	} {
		to := h.db.Collection(fmt.Sprint("to", i))
		_, err := to.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 10}, {Key: "old", Value: true}})
		must(t, err)
		_, err = h.db.Collection("c").Aggregate(t.Context(), bson.A{bson.D{{Key: "$merge", Value: bson.D{
			{Key: "into", Value: to.Name()}, {Key: "whenMatched", Value: c.matched}, {Key: "whenNotMatched", Value: c.missing},
		}}}})
		if code(err) != c.code {
			t.Errorf("%v, %s: got %v, want code %d", c.matched, c.missing, err, c.code)
		}
		cursor, err := to.Find(t.Context(), bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
		must(t, err)
		var docs []bson.D
		must(t, cursor.All(t.Context(), &docs))
		got, err := bson.MarshalExtJSON(bson.D{{Key: "d", Value: docs}}, false, false)
		must(t, err)
		if want := `{"d":` + c.want + `}`; string(got) != want {
			t.Errorf("%v, %s: got %s, want %s", c.matched, c.missing, got, want)
		}
	}
}

func TestCollections_MinAndMaxBoundTheKeysOfTheHintedIndex(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("c")
	insertIDs(t, coll, 1, 6)
	bounds := options.Find().SetMin(bson.D{{Key: "_id", Value: 2}}).SetMax(bson.D{{Key: "_id", Value: 5}})
	if _, err := coll.Find(t.Context(), bson.D{}, bounds); code(err) != 51173 {
		t.Errorf("without a hint: got %v, want 51173", err)
	}
	if got := ids(t, coll, bson.D{}, bounds.SetHint("_id_")); !slices.Equal(got, []int32{2, 3, 4}) {
		t.Errorf("got %v, want 2 to 4", got)
	}
}

func TestRefusals_HaveTheServersCodes(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	must(t, h.db.RunCommand(t.Context(), one("create", "c")).Err())
	must(t, h.db.RunCommand(t.Context(), bson.D{{Key: "create", Value: "v"}, {Key: "viewOn", Value: "c"}}).Err())
	cursor := bson.E{Key: "cursor", Value: bson.D{}}
	for name, c := range map[string]struct {
		command bson.D
		code    int
	}{
		"an index that is no document": {bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{5}}}, 14},
		"an operator in an index":      {bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: one("a.$b", 1)}, {Key: "name", Value: "x"}}}}}, 67},
		"a name with a null byte":      {bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: one("a", 1)}, {Key: "name", Value: "x\x00y"}}}}}, 67},
		"a key with a null byte":       {bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{one("$collStats", bson.D{}), one("$project", one("a", one("$arrayToObject", bson.A{bson.A{bson.A{"x\x00y", 1}}})))}}, cursor}, 4940400},
		"a cursor that cannot be":      {bson.D{{Key: "getMore", Value: int64(0)}, {Key: "collection", Value: "c"}}, 2},
		"a cursor of no collection":    {bson.D{{Key: "getMore", Value: int64(5)}, {Key: "collection", Value: ""}}, 73},
		"cursors that are not named":   {bson.D{{Key: "killCursors", Value: "c"}}, 9},
		"cursors of a number":          {bson.D{{Key: "killCursors", Value: 5}, {Key: "cursors", Value: bson.A{int64(5)}}}, 9},
		"statistics with options":      {bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{one("$indexStats", one("a", 1))}}, cursor}, 28803},
		"a hint that is none":          {bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{}}, cursor, {Key: "hint", Value: 5}}, 9},
		"an option of no cursor":       {bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{}}, {Key: "cursor", Value: one("x", 1)}}, 2},
		"a plan with a concern":        {bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{}}, {Key: "explain", Value: true}, {Key: "writeConcern", Value: one("w", 1)}}, 9},
		"merged into a number":         {bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{one("$merge", one("into", 5))}}, cursor}, 51178},
		"merged on a number":           {bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{one("$merge", bson.D{{Key: "into", Value: "m"}, {Key: "on", Value: 5}})}}, cursor}, 51186},
		"merged on several numbers":    {bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{one("$merge", bson.D{{Key: "into", Value: "m"}, {Key: "on", Value: bson.A{5}}})}}, cursor}, 51134},
		"merged by a number":           {bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{one("$merge", bson.D{{Key: "into", Value: "m"}, {Key: "whenMatched", Value: 5}})}}, cursor}, 51191},
		"an update by no stage":        {bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "u", Value: bson.A{one("$nope", 1)}}}}}}, 40324},
		"an update by another stage":   {bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "u", Value: bson.A{one("$match", bson.D{})}}}}}}, 72},
		"indexes of a view":            {bson.D{{Key: "listIndexes", Value: "v"}}, 166},
		"an index of a view dropped":   {bson.D{{Key: "dropIndexes", Value: "v"}, {Key: "index", Value: "*"}}, 166},
		"statistics of a view":         {bson.D{{Key: "collStats", Value: "v"}}, 166},
		"values by a null byte":        {bson.D{{Key: "distinct", Value: "c"}, {Key: "key", Value: "a\x00b"}}, 31032},
		"two ways to validate":         {bson.D{{Key: "validate", Value: "c"}, {Key: "full", Value: true}, {Key: "background", Value: true}}, 115},
		"the name of the _id index":    {bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: one("a", 1)}, {Key: "name", Value: "_id_"}}}}}, 2},
		"a pipeline without a view":    {bson.D{{Key: "create", Value: "w"}, {Key: "pipeline", Value: bson.A{}}}, 72},
		"a view on nothing":            {bson.D{{Key: "create", Value: "w"}, {Key: "viewOn", Value: ""}}, 2},
		"a view that stores":           {bson.D{{Key: "create", Value: "w"}, {Key: "viewOn", Value: "c"}, {Key: "pipeline", Value: bson.A{one("$out", "x")}}}, 167},
		"a view on itself":             {bson.D{{Key: "collMod", Value: "v"}, {Key: "viewOn", Value: "v"}, {Key: "pipeline", Value: bson.A{}}}, 5},
		"a validator of a view":        {bson.D{{Key: "collMod", Value: "v"}, {Key: "validator", Value: bson.D{}}}, 72},
		"a level that is no text":      {bson.D{{Key: "collMod", Value: "c"}, {Key: "validationLevel", Value: 5}}, 13111},
		"a validator that is none":     {bson.D{{Key: "collMod", Value: "c"}, {Key: "validator", Value: 5}}, 10065},
		"no index to modify":           {bson.D{{Key: "collMod", Value: "c"}, {Key: "index", Value: bson.D{}}}, 72},
		"results into a view":          {bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{one("$out", "v")}}, cursor}, 166},
		"results merged into a view":   {bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{one("$merge", one("into", "v"))}}, cursor}, 166},
		"array filters of a removal":   {bson.D{{Key: "findAndModify", Value: "c"}, {Key: "remove", Value: true}, {Key: "arrayFilters", Value: bson.A{one("x", 1)}}}, 9},
		"a concern of a read":          {bson.D{{Key: "find", Value: "c"}, {Key: "writeConcern", Value: one("w", 1)}}, 72},
		"a concern of a write":         {bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{}}}, {Key: "readConcern", Value: one("level", "majority")}}, 72},
		"two ways to the disk":         {bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{}}}, {Key: "writeConcern", Value: bson.D{{Key: "j", Value: true}, {Key: "fsync", Value: true}}}}, 9},
		"a time that is to come":       {bson.D{{Key: "find", Value: "c"}, {Key: "readConcern", Value: one("afterClusterTime", bson.Timestamp{T: 1 << 31})}}, 72},
		"a fraction of a millisecond":  {bson.D{{Key: "find", Value: "c"}, {Key: "maxTimeMS", Value: 1.5}}, 2},
	} {
		if got := code(h.db.RunCommand(t.Context(), c.command).Err()); got != c.code {
			t.Errorf("%s: got code %d, want %d", name, got, c.code)
		}
	}
}

// An index of another collation is another index; one of the same key and
// collation is not, whatever its name is.
func TestIndexes_AreToldApartByKeyAndCollation(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	create := func(name, locale string, unique bool) error {
		index := bson.D{{Key: "key", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "name", Value: name}, {Key: "unique", Value: unique}}
		if locale != "" {
			index = append(index, bson.E{Key: "collation", Value: bson.D{{Key: "locale", Value: locale}}})
		}
		return h.db.RunCommand(t.Context(), bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{index}}}).Err()
	}
	must(t, create("plain", "", false))
	must(t, create("english", "en", false))
	must(t, create("english", "en", false))
	expectCode(t, "the same key by another name", create("other", "", false), 85, "Index already exists with a different name: plain")
	expectCode(t, "another name and options", create("other", "en", true), 85, "with a different name and options. Requested index: { v: 2, unique: true, key: { a: 1 }")
	expectCode(t, "other options", create("plain", "", true), 85, "with the same name but different options")
	expectCode(t, "a name with another collation", create("plain", "fr", false), 86, "has the same name as the requested index")
}

// Clients look for the databases that every member has, such as admin.
func TestListDatabases_NamesTheServersOwn(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	_, err := h.db.Client().Database("between").Collection("c").InsertOne(t.Context(), bson.D{})
	must(t, err)
	names, err := h.db.Client().ListDatabaseNames(t.Context(), bson.D{})
	must(t, err)
	if got, want := strings.Join(names, " "), "admin between config local"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
