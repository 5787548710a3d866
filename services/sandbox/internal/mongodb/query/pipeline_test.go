package query_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query"
	"changerelay/services/sandbox/internal/mongodb/query/match"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

// database serves $lookup in tests.
type database map[string][]bson.Raw

func (d database) collection(_ context.Context, name string, f *match.Filter) iter.Seq2[bson.Raw, error] {
	return func(yield func(bson.Raw, error) bool) {
		for _, doc := range d[name] {
			ok, err := f.Match(doc)
			if (ok || err != nil) && !yield(doc, err) {
				return
			}
		}
	}
}

func stream(docs []bson.Raw) iter.Seq2[bson.Raw, error] {
	return func(yield func(bson.Raw, error) bool) {
		for _, doc := range docs {
			if !yield(doc, nil) {
				return
			}
		}
	}
}

func compilePipeline(t testing.TB, json string) (*query.Pipeline, error) {
	t.Helper()
	db := database{"items": querytest.Documents(t, `[{"_id":"a","price":10,"tags":["x","y"]},{"_id":"b","price":20,"tags":[]},{"_id":"n","item":null}]`)}
	return query.CompilePipeline(querytest.Documents(t, json), query.PipelineEnv{Env: querytest.Env(), Collection: db.collection})
}

func pipeline(t testing.TB, json string) *query.Pipeline {
	t.Helper()
	p, err := compilePipeline(t, json)
	if err != nil {
		t.Fatalf("pipeline %s: %v", json, err)
	}
	return p
}

// results collects what a pipeline gives, and the error that ends it.
func results(ctx context.Context, p *query.Pipeline, docs []bson.Raw) ([]bson.Raw, error) {
	var got []bson.Raw
	for doc, err := range p.Run(ctx, stream(docs)) {
		if err != nil {
			return got, err
		}
		got = append(got, doc)
	}
	return got, nil
}

const orders = `[
	{"_id":1,"k":"a","n":1,"t":["x","y"],"item":"a"},
	{"_id":2,"k":"b","n":5,"t":[],"item":"b"},
	{"_id":3,"k":"a","n":3,"o":{"p":7}},
	{"_id":4,"k":"c","t":"z","item":["a","b"]}]`

func TestPipeline_Stages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, pipeline, want string }{
		{"no stages", `[]`, querytest.Relaxed(querytest.Documents(t, orders)...)},
		{"match, sort and project", `[{"$match":{"k":"a"}},{"$sort":{"n":-1}},{"$project":{"n":1}}]`, `{"_id":3,"n":3} {"_id":1,"n":1}`},
		{"project expressions", `[{"$limit":3},{"$project":{"_id":0,"k":1,"twice":{"$multiply":["$n",2]},"p":"$o.p"}}]`, `{"k":"a","twice":2} {"k":"b","twice":10} {"k":"a","twice":6,"p":7}`},
		{"project may slice by expression only", `[{"$limit":1},{"$project":{"_id":0,"t":{"$slice":["$t",1]}}}]`, `{"t":["x"]}`},
		{"skip and limit", `[{"$sort":{"_id":-1}},{"$skip":1},{"$limit":2},{"$project":{"_id":1}}]`, `{"_id":3} {"_id":2}`},
		{"sort with a limit", `[{"$sort":{"n":-1}},{"$limit":2},{"$project":{"n":1}}]`, `{"_id":2,"n":5} {"_id":3,"n":3}`},
		{"count", `[{"$match":{"n":{"$exists":true}}},{"$count":"total"}]`, `{"total":3}`},
		{"count of nothing", `[{"$match":{"k":"zz"}},{"$count":"total"}]`, ``},
		{"add fields in place and behind", `[{"$match":{"_id":3}},{"$addFields":{"n":"x","o.q":1,"m":{"$add":["$n","$o.p"]},"z":{"y":{"x":"$k"}}}}]`, `{"_id":3,"k":"a","n":"x","o":{"p":7,"q":1},"m":10,"z":{"y":{"x":"a"}}}`},
		{"add fields to a scalar and to elements", `[{"$match":{"_id":1}},{"$set":{"k.x":1,"t.x":2}},{"$project":{"k":1,"t":1,"_id":0}}]`, `{"k":{"x":1},"t":[{"x":2},{"x":2}]}`},
		{"remove by $$REMOVE", `[{"$match":{"_id":3}},{"$set":{"k":"$$REMOVE","o.p":"$$REMOVE"}}]`, `{"_id":3,"n":3,"o":{}}`},
		{"unset", `[{"$match":{"_id":3}},{"$unset":["k","o.p"]}]`, `{"_id":3,"n":3,"o":{}}`},
		{"replace the root", `[{"$match":{"_id":3}},{"$replaceRoot":{"newRoot":{"$mergeObjects":["$o",{"id":"$_id"}]}}}]`, `{"p":7,"id":3}`},
		{"replace with", `[{"$match":{"_id":3}},{"$replaceWith":"$o"}]`, `{"p":7}`},
		{"unwind", `[{"$unwind":"$t"},{"$project":{"t":1}}]`, `{"_id":1,"t":"x"} {"_id":1,"t":"y"} {"_id":4,"t":"z"}`},
		{"unwind and keep", `[{"$unwind":{"path":"$t","preserveNullAndEmptyArrays":true,"includeArrayIndex":"i"}},{"$project":{"t":1,"i":1}}]`, `{"_id":1,"t":"x","i":0} {"_id":1,"t":"y","i":1} {"_id":2,"i":null} {"_id":3,"i":null} {"_id":4,"t":"z","i":null}`},
		{"unwind a nested field", `[{"$match":{"_id":1}},{"$project":{"d.t":"$t"}},{"$unwind":"$d.t"}]`, `{"_id":1,"d":{"t":"x"}} {"_id":1,"d":{"t":"y"}}`},
		{
			"group", `[{"$group":{"_id":"$k","sum":{"$sum":"$n"},"avg":{"$avg":"$n"},"min":{"$min":"$n"},"max":{"$max":"$n"},"first":{"$first":"$_id"},"last":{"$last":"$_id"},"all":{"$push":"$n"},"count":{"$sum":1}}}]`,
			`{"_id":"a","sum":4,"avg":2.0,"min":1,"max":3,"first":1,"last":3,"all":[1,3],"count":2} {"_id":"b","sum":5,"avg":5.0,"min":5,"max":5,"first":2,"last":2,"all":[5],"count":1} {"_id":"c","sum":0,"avg":null,"min":null,"max":null,"first":4,"last":4,"all":[],"count":1}`,
		},
		{"group all", `[{"$group":{"_id":null,"set":{"$addToSet":"$k"},"o":{"$mergeObjects":"$o"}}}]`, `{"_id":null,"set":["a","b","c"],"o":{"p":7}}`},
		{"group by equal numbers and missing fields", `[{"$project":{"g":{"$cond":[{"$lt":["$_id",3]},{"$toDouble":1},"$nosuch"]}}},{"$group":{"_id":"$g","n":{"$sum":1}}}]`, `{"_id":1.0,"n":2} {"_id":null,"n":2}`},
		{"group by a document", `[{"$group":{"_id":{"k":"$k","big":{"$gt":["$n",2]}},"n":{"$sum":1}}}]`, `{"_id":{"k":"a","big":false},"n":1} {"_id":{"k":"b","big":true},"n":1} {"_id":{"k":"a","big":true},"n":1} {"_id":{"k":"c","big":false},"n":1}`},
		{"group deviations", `[{"$group":{"_id":null,"pop":{"$stdDevPop":"$n"},"samp":{"$stdDevSamp":"$n"}}},{"$project":{"_id":0,"pop":{"$round":["$pop",4]},"samp":1}}]`, `{"samp":2.0,"pop":1.633}`},
		{"sort by count", `[{"$sortByCount":"$k"}]`, `{"_id":"a","count":2} {"_id":"b","count":1} {"_id":"c","count":1}`},
		{"bucket", `[{"$bucket":{"groupBy":"$n","boundaries":[0,3,6],"default":"none","output":{"ids":{"$push":"$_id"}}}}]`, `{"_id":0,"ids":[1]} {"_id":3,"ids":[2,3]} {"_id":"none","ids":[4]}`},
		{"bucket counts", `[{"$match":{"n":{"$exists":true}}},{"$bucket":{"groupBy":"$n","boundaries":[0,3,6]}}]`, `{"_id":0,"count":1} {"_id":3,"count":2}`},
		{"lookup by fields", `[{"$lookup":{"from":"items","localField":"item","foreignField":"_id","as":"it"}},{"$project":{"it._id":1}}]`, `{"_id":1,"it":[{"_id":"a"}]} {"_id":2,"it":[{"_id":"b"}]} {"_id":3,"it":[]} {"_id":4,"it":[{"_id":"a"},{"_id":"b"}]}`},
		{"lookup of a missing field finds null and missing", `[{"$match":{"_id":3}},{"$lookup":{"from":"items","localField":"item","foreignField":"item","as":"it"}},{"$project":{"it._id":1}}]`, `{"_id":3,"it":[{"_id":"a"},{"_id":"b"},{"_id":"n"}]}`},
		{"lookup by pipeline", `[{"$limit":3},{"$lookup":{"from":"items","let":{"i":"$item"},"pipeline":[{"$match":{"$expr":{"$eq":["$_id","$$i"]}}},{"$project":{"price":1,"_id":0}}],"as":"it"}},{"$project":{"it":1}}]`, `{"_id":1,"it":[{"price":10}]} {"_id":2,"it":[{"price":20}]} {"_id":3,"it":[]}`},
		{"lookup within a lookup sees both variables", `[{"$match":{"_id":1}},{"$lookup":{"from":"items","let":{"i":"$item"},"pipeline":[{"$match":{"_id":"b"}},{"$lookup":{"from":"items","let":{"p":"$price"},"pipeline":[{"$match":{"$expr":{"$and":[{"$eq":["$_id","$$i"]},{"$lt":["$price","$$p"]}]}}}],"as":"in"}},{"$project":{"in._id":1}}],"as":"it"}},{"$project":{"it":1}}]`, `{"_id":1,"it":[{"_id":"b","in":[{"_id":"a"}]}]}`},
		{"lookup in a collection that is not there", `[{"$limit":1},{"$lookup":{"from":"none","localField":"item","foreignField":"_id","as":"it.x"}},{"$project":{"it":1}}]`, `{"_id":1,"it":{"x":[]}}`},
		{"facet", `[{"$facet":{"n":[{"$count":"c"}],"a":[{"$match":{"k":"a"}},{"$project":{"_id":1}}]}}]`, `{"n":[{"c":4}],"a":[{"_id":1},{"_id":3}]}`},
		{"redact", `[{"$match":{"_id":3}},{"$redact":{"$cond":[{"$eq":["$p",7]},"$$PRUNE","$$DESCEND"]}}]`, `{"_id":3,"k":"a","n":3}`},
		{"redact whole documents", `[{"$redact":{"$cond":[{"$eq":["$k","c"]},"$$KEEP","$$PRUNE"]}},{"$project":{"_id":1}}]`, `{"_id":4}`},
		{"sample of all", `[{"$sample":{"size":9}},{"$sort":{"_id":1}},{"$project":{"_id":1}}]`, `{"_id":1} {"_id":2} {"_id":3} {"_id":4}`},
		{"sample of some", `[{"$sample":{"size":2}},{"$count":"n"}]`, `{"n":2}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := results(t.Context(), pipeline(t, c.pipeline), querytest.Documents(t, orders))
			if err != nil {
				t.Fatalf("run: %v", err)
			}
			if text := querytest.Relaxed(got...); text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
}

func TestPipeline_PipelinesAreRefused(t *testing.T) {
	t.Parallel()
	for json, code := range map[string]mongoerr.Code{
		`[{"$nosuch":{}}]`:                   40324,
		`[{"$listSessions":{}}]`:             40324,
		`[{"$set":{"a":{"$meta":"x"}}}]`:     168,
		`[{"$out":"c"}]`:                     40324,
		`[{"$match":{},"$limit":1}]`:         40323,
		`[{}]`:                               40323,
		`[{"$match":1}]`:                     15959,
		`[{"$match":{"$nosuch":1}}]`:         mongoerr.BadValue,
		`[{"$project":{"a":{"$nosuch":1}}}]`: 31325,
		`[{"$project":{}}]`:                  51272,
		`[{"$project":1}]`:                   15969,
		`[{"$project":{"a":"$$nosuch"}}]`:    17276,
		`[{"$project":{"a.$":1}}]`:           31324,
		`[{"$addFields":1}]`:                 40272,
		`[{"$addFields":{}}]`:                40177,
		`[{"$addFields":{"a":{}}}]`:          40180,
		`[{"$unset":1}]`:                     31002,
		`[{"$unset":[]}]`:                    31119,
		`[{"$unset":[1]}]`:                   31120,
		`[{"$replaceRoot":1}]`:               40229,
		`[{"$replaceRoot":{}}]`:              40414,
		`[{"$replaceRoot":{"x":1}}]`:         40415,
		`[{"$sort":1}]`:                      15973,
		`[{"$sort":{}}]`:                     15976,
		`[{"$sort":{"a":5}}]`:                15975,
		`[{"$limit":0}]`:                     15958,
		`[{"$limit":"x"}]`:                   15957,
		`[{"$skip":-1}]`:                     15956,
		`[{"$skip":"x"}]`:                    15972,
		`[{"$facet":{"a.b":[]}}]`:            16412,
		`[{"$facet":{"a":[{"$out":"x"}]}}]`:  40600,
		`[{"$lookup":{"from":"c","as":"x","pipeline":[{"$merge":"x"}]}}]`: 51047,
		`[{"$unionWith":{"coll":"c","pipeline":[{"$out":"x"}]}}]`:         31441,
		`[{"$bucket":{"groupBy":"a","boundaries":[0,1]}}]`:                40202,
		`[{"$count":1}]`:                    40156,
		`[{"$count":""}]`:                   40157,
		`[{"$count":"$a"}]`:                 40158,
		`[{"$count":"a.b"}]`:                40160,
		`[{"$unwind":1}]`:                   15981,
		`[{"$unwind":""}]`:                  28812,
		`[{"$unwind":{"path":1}}]`:          28808,
		`[{"$unwind":"a"}]`:                 28818,
		`[{"$unwind":{"path":"$a","x":1}}]`: 28811,
		`[{"$unwind":{"path":"$a","includeArrayIndex":"$b"}}]`:       28822,
		`[{"$unwind":{"path":"$a","preserveNullAndEmptyArrays":1}}]`: 28809,
		`[{"$group":1}]`:                                                              15947,
		`[{"$group":{}}]`:                                                             15955,
		`[{"$group":{"_id":1,"a":1}}]`:                                                40234,
		`[{"$group":{"_id":1,"a":{"$nosuch":1}}}]`:                                    15952,
		`[{"$group":{"_id":1,"a":{"$sum":1,"$avg":1}}}]`:                              40238,
		`[{"$group":{"_id":1,"a":{"$sum":[1]}}}]`:                                     40237,
		`[{"$group":{"_id":1,"a.b":{"$sum":1}}}]`:                                     40235,
		`[{"$sortByCount":"k"}]`:                                                      40148,
		`[{"$bucket":{}}]`:                                                            40198,
		`[{"$bucket":{"groupBy":"$n","boundaries":[1]}}]`:                             40192,
		`[{"$bucket":{"groupBy":"$n","boundaries":[2,1]}}]`:                           40194,
		`[{"$bucket":{"groupBy":"$n","boundaries":[1,"x"]}}]`:                         40193,
		`[{"$bucket":{"groupBy":"$n","boundaries":[1,"$x"]}}]`:                        40191,
		`[{"$bucket":{"groupBy":"$n","boundaries":[1,3],"default":2}}]`:               40199,
		`[{"$lookup":1}]`:                                                             mongoerr.FailedToParse,
		`[{"$lookup":{"from":"c"}}]`:                                                  mongoerr.FailedToParse,
		`[{"$lookup":{"from":"c","as":"x"}}]`:                                         mongoerr.FailedToParse,
		`[{"$lookup":{"from":"c","as":"x","localField":1}}]`:                          mongoerr.FailedToParse,
		`[{"$lookup":{"from":"c","as":"x","pipeline":[],"localField":"a"}}]`:          mongoerr.FailedToParse,
		`[{"$lookup":{"from":"c","as":"x","pipeline":[{"$nosuch":1}]}}]`:              40324,
		`[{"$lookup":{"from":"c","as":"x","pipeline":[{"$match":{"$expr":"$$v"}}]}}]`: 17276,
		`[{"$lookup":{"from":"c","as":"x","let":{"V":1},"pipeline":[]}}]`:             16867,
		`[{"$facet":{}}]`:                                                             40169,
		`[{"$facet":{"a":1}}]`:                                                        40170,
		`[{"$facet":{"a":[{"$facet":{"b":[]}}]}}]`:                                    40600,
		`[{"$sample":{"size":-1}}]`:                                                   28747,
		`[{"$sample":{}}]`:                                                            28749,
	} {
		t.Run(json, func(t *testing.T) {
			t.Parallel()
			_, err := compilePipeline(t, json)
			querytest.CheckCode(t, err, code)
		})
	}
}

func TestPipeline_PipelinesThatFailOnADocument(t *testing.T) {
	t.Parallel()
	for json, code := range map[string]mongoerr.Code{
		`[{"$project":{"a":{"$add":["$k",1]}}}]`:                                                        16554,
		`[{"$replaceRoot":{"newRoot":"$k"}}]`:                                                           40228,
		`[{"$group":{"_id":{"$divide":[1,"$zero"]}}},{"$limit":1}]`:                                     0,
		`[{"$group":{"_id":{"$divide":["$n","$k"]}}}]`:                                                  16609,
		`[{"$group":{"_id":1,"a":{"$mergeObjects":"$k"}}}]`:                                             40400,
		`[{"$redact":"$k"}]`:                                                                            17053,
		`[{"$bucket":{"groupBy":"$n","boundaries":[0,2]}}]`:                                             40066,
		`[{"$sort":{"_id":1}},{"$project":{"a":{"$add":["$k",1]}}},{"$count":"n"}]`:                     16554,
		`[{"$facet":{"f":[{"$match":{"$expr":{"$add":["$k",1]}}}]}}]`:                                   16554,
		`[{"$lookup":{"from":"items","pipeline":[{"$match":{"$expr":{"$add":["$_id",1]}}}],"as":"x"}}]`: 16554,
	} {
		t.Run(json, func(t *testing.T) {
			t.Parallel()
			_, err := results(t.Context(), pipeline(t, json), querytest.Documents(t, orders))
			querytest.CheckCode(t, err, code)
		})
	}
}

func TestPipeline_AnErrorOfTheInputEndsEveryStage(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, json := range []string{
		`[]`, `[{"$match":{}}]`, `[{"$sort":{"a":1}}]`, `[{"$skip":5}]`, `[{"$limit":5}]`, `[{"$count":"n"}]`, `[{"$unwind":"$a"}]`,
		`[{"$group":{"_id":1}}]`, `[{"$sortByCount":"$a"}]`, `[{"$sample":{"size":3}}]`, `[{"$facet":{"a":[]}}]`,
		`[{"$bucket":{"groupBy":"$n","boundaries":[0,2],"default":9}}]`, `[{"$lookup":{"from":"items","pipeline":[],"as":"x"}}]`,
	} {
		t.Run(json, func(t *testing.T) {
			t.Parallel()
			in := func(yield func(bson.Raw, error) bool) {
				if yield(querytest.Document(t, `{"a":1}`), nil) {
					yield(nil, broken)
				}
			}
			var last error
			after := false
			for _, err := range pipeline(t, json).Run(t.Context(), in) {
				after = after || last != nil
				last = err
			}
			if !errors.Is(last, broken) || after {
				t.Errorf("last error: got %v, more after it %v, want %v", last, after, broken)
			}
		})
	}
}

func TestPipeline_RunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := results(ctx, pipeline(t, `[{"$match":{}}]`), querytest.Documents(t, orders)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestPipeline_RunReadsNoMoreThanItNeeds(t *testing.T) {
	t.Parallel()
	for _, json := range []string{`[{"$limit":2}]`, `[{"$match":{}},{"$limit":2}]`, `[{"$unwind":"$a"},{"$limit":2}]`} {
		read := 0
		in := func(yield func(bson.Raw, error) bool) {
			for {
				read++
				if !yield(querytest.Document(t, `{"a":1}`), nil) {
					return
				}
			}
		}
		n := 0
		for range pipeline(t, json).Run(t.Context(), in) {
			n++
		}
		if n != 2 || read != 2 {
			t.Errorf("%s: gave %d of %d read, want 2 of 2", json, n, read)
		}
	}
}

func TestPipeline_LeadingStages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, pipeline string
		filtered       bool
		rest           []string
		sorted         bool
		limit          int64
	}{
		{"none", `[{"$project":{"a":1}}]`, false, []string{"$project"}, false, 0},
		{"matches", `[{"$match":{"k":"a"}},{"$match":{"n":1}},{"$count":"c"}]`, true, []string{"$count"}, false, 0},
		{"match, sort and limit", `[{"$match":{"k":"a"}},{"$sort":{"n":1}},{"$limit":3}]`, true, []string{"$sort", "$limit"}, true, 3},
		{"sort", `[{"$sort":{"n":1}},{"$skip":1},{"$limit":3}]`, false, []string{"$sort", "$skip", "$limit"}, true, 0},
		{"a match behind", `[{"$project":{"k":1}},{"$match":{"k":"a"}}]`, false, []string{"$project", "$match"}, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := pipeline(t, c.pipeline)
			f, rest := p.LeadingMatch()
			if (f != nil) != c.filtered || !slices.Equal(rest.Stages(), c.rest) {
				t.Errorf("match: got %v and %v, want %v and %v", f != nil, rest.Stages(), c.filtered, c.rest)
			}
			s, limit := rest.LeadingSort()
			if (s != nil) != c.sorted || limit != c.limit {
				t.Errorf("sort: got %v, %d, want %v, %d", s != nil, limit, c.sorted, c.limit)
			}
			// Done by hand, the leading match changes nothing.
			docs := querytest.Documents(t, orders)
			all, err := results(t.Context(), p, docs)
			if err != nil {
				t.Fatal(err)
			}
			docs = slices.DeleteFunc(docs, func(doc bson.Raw) bool { ok, _ := f.Match(doc); return !ok })
			split, err := results(t.Context(), rest, docs)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := querytest.Relaxed(all...), querytest.Relaxed(split...); a != b {
				t.Errorf("split in two: got %s, want %s", b, a)
			}
		})
	}
}

func TestPipeline_LeadingMatchesAreOneFilter(t *testing.T) {
	t.Parallel()
	f, _ := pipeline(t, `[{"$match":{"k":"a"}},{"$match":{"n":1}}]`).LeadingMatch()
	for path, want := range map[string]string{"k": `"a"`, "n": `{"$numberInt":"1"}`} {
		if v, ok := f.Equal(path); !ok || v.String() != want {
			t.Errorf("%s: got %v, %v, want %s", path, v, ok, want)
		}
	}
}

func TestPipeline_ChangeStreamPipelinesWorkDocumentByDocument(t *testing.T) {
	t.Parallel()
	p := pipeline(t, `[{"$match":{"n":{"$gt":1}}},{"$set":{"m":"$n"}},{"$unset":"n"},{"$project":{"m":1}},{"$redact":"$$KEEP"},{"$replaceWith":{"x":"$m"}}]`)
	if err := p.Streams(); err != nil {
		t.Fatalf("Streams: %v", err)
	}
	got, ok, err := p.Each(querytest.Document(t, `{"_id":1,"n":2}`))
	if err != nil || !ok || querytest.Relaxed(got) != `{"x":2}` {
		t.Errorf("got %s, %v, %v", got, ok, err)
	}
	if _, ok, err := p.Each(querytest.Document(t, `{"_id":1,"n":1}`)); ok || err != nil {
		t.Errorf("a document that does not match: got %v, %v, want false", ok, err)
	}
	group := pipeline(t, `[{"$match":{}},{"$group":{"_id":1}}]`)
	if err := group.Streams(); !mongoerr.Is(err, mongoerr.IllegalOperation) || !strings.Contains(err.Error(), "$group") {
		t.Errorf("a stage that gathers: got %v, want an IllegalOperation that names $group", err)
	}
	if _, _, err := group.Each(querytest.Document(t, `{}`)); !mongoerr.Is(err, mongoerr.IllegalOperation) {
		t.Errorf("Each of it: got %v, want IllegalOperation", err)
	}
}

func TestPipeline_SortWithALimitIsTheStartOfTheSort(t *testing.T) {
	t.Parallel()
	var docs []bson.Raw
	for i := range 1000 {
		b, err := bson.Marshal(bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i * 7919 % 500}})
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, b)
	}
	all, err := results(t.Context(), pipeline(t, `[{"$sort":{"n":1}}]`), docs)
	if err != nil {
		t.Fatal(err)
	}
	top, err := results(t.Context(), pipeline(t, `[{"$sort":{"n":1}},{"$limit":10}]`), docs)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := querytest.Relaxed(top...), querytest.Relaxed(all[:10]...); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestGroup_ByADocumentOfOneFieldTakesAMissingOneForNull(t *testing.T) {
	t.Parallel()
	docs := querytest.Documents(t, `[{"a":1},{},{"a":null}]`)
	for group, want := range map[string]string{
		`{"$group":{"_id":{"k":"$a"},"n":{"$sum":1}}}`:          `{"_id":{"k":1},"n":1} {"_id":{"k":null},"n":2}`,
		`{"$group":{"_id":{"k":"$a","l":"$b"},"n":{"$sum":1}}}`: `{"_id":{"k":1},"n":1} {"_id":{},"n":1} {"_id":{"k":null},"n":1}`,
	} {
		got, err := results(t.Context(), pipeline(t, "["+group+"]"), docs)
		if err != nil || querytest.Relaxed(got...) != want {
			t.Errorf("%s: got %s and %v, want %s", group, querytest.Relaxed(got...), err, want)
		}
	}
}
