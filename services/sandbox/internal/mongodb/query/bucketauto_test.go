package query_test

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

func TestBucketAuto_MakesBucketsOfEqualSize(t *testing.T) {
	t.Parallel()
	docs := querytest.Documents(t, `[{"n":5},{"n":1},{"n":3},{"n":2},{"n":4}]`)
	ties := querytest.Documents(t, `[{"n":1},{"n":1},{"n":1},{"n":2},{"n":3}]`)
	none := querytest.Documents(t, `[{"n":2},{},{"n":null}]`)
	for name, c := range map[string]struct {
		docs []bson.Raw
		spec string
		want string
	}{
		"a rest in the last":    {docs, `"buckets":2`, `{"_id":{"min":1,"max":4},"count":3} {"_id":{"min":4,"max":5},"count":2}`},
		"more in the last":      {docs, `"buckets":4`, `{"_id":{"min":1,"max":2},"count":1} {"_id":{"min":2,"max":3},"count":1} {"_id":{"min":3,"max":4},"count":1} {"_id":{"min":4,"max":5},"count":2}`},
		"more than documents":   {none, `"buckets":9`, `{"_id":{"min":null,"max":2},"count":2} {"_id":{"min":2,"max":2},"count":1}`},
		"equal values together": {ties, `"buckets":3`, `{"_id":{"min":1,"max":2},"count":3} {"_id":{"min":2,"max":3},"count":2}`},
		"output":                {docs, `"buckets":1,"output":{"sum":{"$sum":"$n"}}`, `{"_id":{"min":1,"max":5},"sum":15}`},
		"no documents":          {docs[:0], `"buckets":1`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pipeline(t, `[{"$bucketAuto":{"groupBy":"$n",`+c.spec+`}}]`)
			got, err := results(t.Context(), p, c.docs)
			if err != nil || querytest.Relaxed(got...) != c.want {
				t.Errorf("got %s and %v, want %s", querytest.Relaxed(got...), err, c.want)
			}
		})
	}
}

func TestBucketAuto_IsRefused(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]mongoerr.Code{
		`1`:                                40240,
		`{}`:                               40246,
		`{"groupBy":"n"}`:                  40239,
		`{"groupBy":1}`:                    40239,
		`{"groupBy":"$n"}`:                 40246,
		`{"buckets":"2"}`:                  40241,
		`{"buckets":1.5}`:                  40242,
		`{"buckets":0}`:                    40243,
		`{"output":1}`:                     40244,
		`{"x":1}`:                          40245,
		`{"granularity":1}`:                40261,
		`{"granularity":"R5"}`:             mongoerr.NotImplemented,
		`{"groupBy":{"$n":1},"buckets":1}`: 168,
	} {
		_, err := compilePipeline(t, `[{"$bucketAuto":`+spec+`}]`)
		t.Run(spec, func(t *testing.T) { querytest.CheckCode(t, err, want) })
	}
}

// Every document is in one bucket, the buckets follow each other, and equal
// values are together.
func TestBucketAuto_CoversAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		values := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 40).Draw(rt, "values")
		buckets := rapid.IntRange(1, 12).Draw(rt, "buckets")
		var parts []string
		for _, v := range values {
			parts = append(parts, fmt.Sprintf(`{"n":%d}`, v))
		}
		docs := querytest.Documents(t, "["+strings.Join(parts, ",")+"]")
		p := pipeline(t, fmt.Sprintf(`[{"$bucketAuto":{"groupBy":"$n","buckets":%d,"output":{"all":{"$push":"$n"}}}}]`, buckets))
		got, err := results(t.Context(), p, docs)
		if err != nil || len(got) > buckets {
			rt.Fatalf("got %d buckets and %v, want at most %d", len(got), err, buckets)
		}
		seen := 0
		for i, doc := range got {
			low, _ := bsonkit.Lookup(doc, "_id.min")
			high, _ := bsonkit.Lookup(doc, "_id.max")
			all, _ := bsonkit.Get(doc, "all")
			last := i == len(got)-1
			for _, v := range bsonkit.Values(all) {
				seen++
				above := bsonkit.Compare(v, high)
				if bsonkit.Compare(v, low) < 0 || above > 0 || above == 0 && !last {
					rt.Fatalf("got %v in the bucket from %v to %v", v, low, high)
				}
			}
		}
		if seen != len(values) {
			rt.Fatalf("got %d documents in buckets, want %d", seen, len(values))
		}
	})
}
