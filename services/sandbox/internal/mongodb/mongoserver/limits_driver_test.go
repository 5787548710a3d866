package mongoserver_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/sandbox/internal/mongodb/engine"
)

// one is a document with one field.
func one(key string, v any) bson.D { return bson.D{{Key: key, Value: v}} }

func doubled(times int) bson.A {
	var stages bson.A
	for range times {
		stages = append(stages, bson.D{{Key: "$addFields", Value: bson.D{{Key: "s", Value: bson.D{{Key: "$concat", Value: bson.A{"$s", "$s"}}}}}}})
	}
	return append(stages, bson.D{{Key: "$project", Value: bson.D{{Key: "_id", Value: 1}}}})
}

func TestLimits_NoStageGivesADocumentThatIsTooLarge(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("c")
	for i := range 3 {
		_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}, {Key: "s", Value: strings.Repeat("x", 6<<20)}})
		must(t, err)
	}
	same := bson.D{{Key: "$sum", Value: 0}}
	many := bson.A{}
	for range 2000 {
		many = append(many, "$s")
	}
	for name, c := range map[string]struct {
		pipeline bson.A
		code     int
	}{
		"doubled":           {doubled(22), 10334},
		"pushed":            {bson.A{one("$group", bson.D{{Key: "_id", Value: nil}, {Key: "all", Value: one("$push", "$$ROOT")}})}, 10334},
		"facet":             {bson.A{one("$facet", one("a", bson.A{one("$match", bson.D{})}))}, 10334},
		"lookup":            {bson.A{one("$lookup", bson.D{{Key: "from", Value: "c"}, {Key: "pipeline", Value: bson.A{}}, {Key: "as", Value: "a"}})}, 4568},
		"one concatenation": {bson.A{one("$project", one("a", one("$concat", many)))}, 10334},
		"one array":         {bson.A{one("$project", one("a", one("$size", bson.A{many})))}, 10334},
		"one replacement": {bson.A{one("$project", one("a", one("$replaceAll", bson.D{
			{Key: "input", Value: "$s"}, {Key: "find", Value: "x"}, {Key: "replacement", Value: "$s"},
		})))}, 10334},
		"what fits is passed": {bson.A{one("$match", one("_id", 1)), one("$group", bson.D{{Key: "_id", Value: nil}, {Key: "n", Value: same}})}, 0},
	} {
		cursor, err := coll.Aggregate(t.Context(), c.pipeline)
		if err == nil {
			var all []bson.Raw
			err = cursor.All(t.Context(), &all)
		}
		if got := code(err); got != c.code {
			t.Errorf("%s: got %v, want code %d", name, err, c.code)
		}
	}
	if _, err := coll.Distinct(t.Context(), "s", bson.D{}).Raw(); err != nil {
		t.Errorf("distinct of one value: got %v", err)
	}
}

func TestLimits_ASortTakesNoMoreMemoryThanItMay(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("c")
	for i := range 12 {
		_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}, {Key: "s", Value: strings.Repeat("x", 10<<20)}})
		must(t, err)
	}
	order := bson.D{{Key: "n", Value: 1}}
	short := bson.D{{Key: "_id", Value: 1}}
	if _, err := coll.Find(t.Context(), bson.D{}, options.Find().SetSort(order).SetProjection(short)); code(err) != 292 {
		t.Errorf("got %v, want code 292", err)
	}
	if _, err := coll.Find(t.Context(), bson.D{}, options.Find().SetSort(order).SetProjection(short).SetAllowDiskUse(true)); err != nil {
		t.Errorf("with the disk: got %v", err)
	}
}

// longer evaluates to a text that is so many times as long as the field s.
func longer(times int) bson.D { return one("$concat", slices.Repeat(bson.A{"$s"}, times)) }

func TestLimits_TheVariablesOfALetAreTogetherNoLargerThanAValueMayBe(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	_, err := h.db.Collection("c").InsertOne(t.Context(), one("s", strings.Repeat("x", 1<<20)))
	must(t, err)
	of := func(text string, n int) bson.D {
		variables := bson.D{}
		for i := range n {
			variables = append(variables, bson.E{Key: fmt.Sprintf("v%d", i), Value: one("$concat", slices.Repeat(bson.A{text}, 8))})
		}
		return variables
	}
	for _, c := range []struct{ variables, code int }{{3, 0}, {10, 10334}} {
		variables := of("$s", c.variables)
		for name, stage := range map[string]bson.D{
			"$let": one("$project", one("a", one("$let", bson.D{{Key: "vars", Value: variables}, {Key: "in", Value: 1}}))),
			"$lookup": one("$lookup", bson.D{
				{Key: "from", Value: "none"}, {Key: "let", Value: variables}, {Key: "pipeline", Value: bson.A{}}, {Key: "as", Value: "a"},
			}),
			"$merge": one("$merge", bson.D{
				{Key: "into", Value: "merged"},
				{Key: "let", Value: append(bson.D{{Key: "new", Value: "$$ROOT"}}, variables...)},
				{Key: "whenMatched", Value: bson.A{one("$set", one("a", 1))}},
			}),
		} {
			if _, err := h.db.Collection("c").Aggregate(t.Context(), bson.A{stage}); code(err) != c.code {
				t.Errorf("%s of %d variables: got %v, want code %d", name, c.variables, err, c.code)
			}
		}
		err := h.db.RunCommand(t.Context(), bson.D{
			{Key: "find", Value: "c"},
			{Key: "projection", Value: one("_id", 1)},
			{Key: "let", Value: append(bson.D{{Key: "s", Value: strings.Repeat("x", 1<<20)}}, of("$$s", c.variables)...)},
		}).Err()
		if code(err) != c.code {
			t.Errorf("a command of %d variables: got %v, want code %d", c.variables, err, c.code)
		}
	}
}

// It is not parallel: it counts what all allocate.
func TestLimits_TheStatementsOfACommandShareItsVariables(t *testing.T) {
	h := start(t, engine.Config{})
	const size, statements = 1 << 20, 300
	for name, constants := range map[string]bson.D{"alone": {}, "behind constants": one("y", 1)} {
		var updates bson.A
		for i := range statements {
			updates = append(updates, bson.D{
				{Key: "q", Value: one("_id", i)},
				{Key: "u", Value: bson.A{one("$set", one("n", 1))}},
				{Key: "c", Value: constants},
				{Key: "upsert", Value: true},
			})
		}
		command := bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: updates}, {Key: "let", Value: one("x", strings.Repeat("x", size))}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		must(t, h.db.RunCommand(t.Context(), command).Err())
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(size*statements/4); got > most {
			t.Errorf("variables %s: got %d bytes allocated for %d statements, want at most %d", name, got, statements, most)
		}
	}
}

func TestLimits_TheRegularExpressionsOfACommandAreBounded(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("c")
	const n = 1500
	docs := make([]any, n)
	for i := range docs {
		docs[i] = one("_id", i)
	}
	_, err := coll.InsertMany(t.Context(), docs)
	must(t, err)
	large := bson.Regex{Pattern: "x{1000}"}
	var stages bson.A
	for range n / 100 {
		stages = append(stages, one("$match", one("a", one("$in", slices.Repeat(bson.A{large}, 100)))))
	}
	if _, err := coll.Aggregate(t.Context(), stages); code(err) != 146 {
		t.Errorf("many stages: got %v, want code 146", err)
	}
	// The pipeline of a $lookup is compiled for each document.
	joined := one("$lookup", bson.D{
		{Key: "from", Value: "none"},
		{Key: "let", Value: one("i", "$_id")},
		{Key: "as", Value: "a"},
		{Key: "pipeline", Value: bson.A{one("$match", one("a", large))}},
	})
	cursor, err := coll.Aggregate(t.Context(), bson.A{joined, one("$count", "n")})
	must(t, err)
	var counted []struct{ N int }
	must(t, cursor.All(t.Context(), &counted))
	if len(counted) != 1 || counted[0].N != n {
		t.Errorf("got %v documents of a $lookup, want %d", counted, n)
	}
}

func TestLimits_AGroupCountsWhatItsAccumulatorsHold(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("c")
	for i := range 12 {
		_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}, {Key: "s", Value: strings.Repeat("x", 1<<20)}})
		must(t, err)
	}
	computed := one("$addFields", one("x", longer(10)))
	script := one("$accumulator", bson.D{
		{Key: "init", Value: "function() { return 'x'.repeat(10 << 20) }"},
		{Key: "accumulateArgs", Value: bson.A{}},
		{Key: "accumulate", Value: "function(state) { return state }"},
		{Key: "merge", Value: "function(a, b) { return a }"},
		{Key: "lang", Value: "js"},
	})
	buckets := one("$bucketAuto", bson.D{{Key: "groupBy", Value: longer(10)}, {Key: "buckets", Value: 1}})
	short := one("$project", one("_id", 1))
	grouped := func(by, accumulator any) bson.A {
		return bson.A{computed, one("$group", bson.D{{Key: "_id", Value: by}, {Key: "x", Value: accumulator}}), short}
	}
	for name, c := range map[string]struct {
		pipeline bson.A
		code     int
	}{
		"$first":       {grouped("$_id", one("$first", "$x")), 16945},
		"$last":        {grouped("$_id", one("$last", "$x")), 16945},
		"$min":         {grouped("$_id", one("$min", "$x")), 16945},
		"$max":         {grouped("$_id", one("$max", "$x")), 16945},
		"replaced":     {grouped(nil, one("$last", "$x")), 0},
		"$bucketAuto":  {bson.A{buckets, short}, 292},
		"a script":     {grouped("$_id", script), 16945},
		"small values": {grouped("$_id", one("$first", "$_id")), 0},
	} {
		cursor, err := coll.Aggregate(t.Context(), c.pipeline)
		if err == nil {
			err = cursor.Close(t.Context())
		}
		if code(err) != c.code {
			t.Errorf("%s: got %v, want code %d", name, err, c.code)
		}
	}
}

// endless evaluates for longer than any test waits.
func endless() bson.D {
	thousands := bson.D{{Key: "$range", Value: bson.A{0, 100_000}}}
	reduce := func(in any) bson.D {
		return one("$reduce", bson.D{{Key: "input", Value: thousands}, {Key: "initialValue", Value: 0}, {Key: "in", Value: in}})
	}
	return reduce(one("$add", bson.A{reduce(one("$add", bson.A{"$$this", "$$value", "$_id"})), "$$this"}))
}

func TestMaxTime_EndsWhateverRuns(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	_, err := h.db.Collection("c").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
	must(t, err)
	slow := bson.D{{Key: "$expr", Value: bson.D{{Key: "$eq", Value: bson.A{endless(), 1}}}}}
	project := bson.A{bson.D{{Key: "$project", Value: bson.D{{Key: "a", Value: endless()}}}}}
	for name, command := range map[string]bson.D{
		"find":          {{Key: "find", Value: "c"}, {Key: "filter", Value: slow}},
		"count":         {{Key: "count", Value: "c"}, {Key: "query", Value: slow}},
		"distinct":      {{Key: "distinct", Value: "c"}, {Key: "key", Value: "a"}, {Key: "query", Value: slow}},
		"aggregate":     {{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: project}, {Key: "cursor", Value: bson.D{}}},
		"update":        {{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: slow}, {Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}}}}}},
		"delete":        {{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: slow}, {Key: "limit", Value: 1}}}}},
		"findAndModify": {{Key: "findAndModify", Value: "c"}, {Key: "query", Value: slow}, {Key: "remove", Value: true}},
	} {
		began := time.Now()
		err := h.db.RunCommand(t.Context(), append(command, bson.E{Key: "maxTimeMS", Value: 50})).Err()
		if got := code(err); got != 50 {
			t.Errorf("%s: got %v after %s, want code 50", name, err, time.Since(began))
		}
	}
}

// Comparing each element's path with those before it would take minutes.
func TestUpdate_ChangesAllElementsOfALongArray(t *testing.T) {
	t.Parallel()
	coll := start(t, engine.Config{}).db.Collection("c")
	elements := make(bson.A, 100_000)
	for i := range elements {
		elements[i] = bson.D{{Key: "x", Value: i}, {Key: "y", Value: 0}}
	}
	_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: elements}})
	must(t, err)
	result, err := coll.UpdateOne(t.Context(), one("_id", 1), one("$inc", bson.D{{Key: "a.$[].x", Value: 1}, {Key: "a.$[].y", Value: 1}}))
	must(t, err)
	if result.ModifiedCount != 1 {
		t.Errorf("modified %d documents, want 1", result.ModifiedCount)
	}
	n, err := coll.CountDocuments(t.Context(), bson.D{{Key: "a.99999.x", Value: 100_000}, {Key: "a.y", Value: bson.D{{Key: "$ne", Value: 0}}}})
	must(t, err)
	if n != 1 {
		t.Error("not every element was changed")
	}
}

func TestKillOp_EndsACommandThatCurrentOpLists(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	_, err := h.db.Collection("c").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
	must(t, err)
	done := make(chan error, 1)
	go func() {
		done <- h.db.RunCommand(t.Context(), bson.D{
			{Key: "aggregate", Value: "c"},
			{Key: "cursor", Value: bson.D{}},
			{Key: "pipeline", Value: bson.A{bson.D{{Key: "$project", Value: bson.D{{Key: "a", Value: endless()}}}}}},
		}).Err()
	}()
	admin := h.client.Database("admin")
	var listed struct {
		Inprog []struct{ Opid int32 }
	}
	for len(listed.Inprog) == 0 {
		must(t, admin.RunCommand(t.Context(), bson.D{{Key: "currentOp", Value: 1}, {Key: "ns", Value: "test.c"}}).Decode(&listed))
	}
	must(t, admin.RunCommand(t.Context(), bson.D{{Key: "killOp", Value: 1}, {Key: "op", Value: listed.Inprog[0].Opid}}).Err())
	if err := <-done; code(err) != 11601 {
		t.Errorf("got %v, want code 11601", err)
	}
}

func TestWork_EndsWhenItsClientHasLeft(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	_, err := h.db.Collection("c").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
	must(t, err)
	body, err := bson.Marshal(bson.D{
		{Key: "aggregate", Value: "c"},
		{Key: "cursor", Value: bson.D{}},
		{Key: "$db", Value: "test"},
		{Key: "pipeline", Value: bson.A{bson.D{{Key: "$project", Value: bson.D{{Key: "a", Value: endless()}}}}}},
	})
	must(t, err)
	leaving := dialRaw(t, h.server.Addr().String())
	_, err = leaving.Write(opMsg(body))
	must(t, err)
	running := func() int {
		var listed struct{ Inprog []bson.Raw }
		must(t, h.client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "currentOp", Value: 1}, {Key: "ns", Value: "test.c"}}).Decode(&listed))
		return len(listed.Inprog)
	}
	for running() == 0 {
		must(t, t.Context().Err())
	}
	must(t, leaving.Close())
	for running() > 0 {
		must(t, t.Context().Err())
	}
}

func dialRaw(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	must(t, err)
	return conn
}

// opMsg frames a command.
func opMsg(body bson.Raw) []byte {
	message := binary.LittleEndian.AppendUint32(nil, uint32(16+4+1+len(body)))
	message = append(message, 1, 0, 0, 0, 0, 0, 0, 0)
	message = binary.LittleEndian.AppendUint32(message, 2013)
	return append(append(message, 0, 0, 0, 0, 0), body...)
}

func TestSlice_TakesNoMoreElementsThanThereAre(t *testing.T) {
	t.Parallel()
	const most = `{"$numberLong": "9223372036854775807"}`
	const least = `{"$numberLong": "-9223372036854775808"}`
	ask(t, start(t, engine.Config{}).db, []answer{
		{`{"insert": "c", "documents": [{"_id": 1, "a": [1, 2, 3]}]}`, `{"n": 1}`},
		{`{"find": "c", "projection": {"a": {"$slice": [1, ` + most + `]}}}`, `{"cursor.firstBatch.0.a": [2, 3]}`},
		{`{"find": "c", "projection": {"a": {"$slice": [` + most + `, ` + most + `]}}}`, `{"cursor.firstBatch.0.a": []}`},
		{`{"find": "c", "projection": {"a": {"$slice": [` + least + `, ` + most + `]}}}`, `{"cursor.firstBatch.0.a": [1, 2, 3]}`},
		{`{"find": "c", "projection": {"a": {"$slice": ` + least + `}}}`, `{"cursor.firstBatch.0.a": [1, 2, 3]}`},
		{`{"findAndModify": "c", "fields": {"a": {"$slice": [1, ` + most + `]}}, "update": {"$set": {"b": 1}}}`, `{"value.a": [2, 3]}`},
	})
}
