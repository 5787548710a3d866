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

// The examples of
// https://www.mongodb.com/docs/manual/reference/operator/aggregation/bucketAuto/#granularity
func TestBucketAuto_EndsAtPreferredNumbers(t *testing.T) {
	t.Parallel()
	var things []bson.Raw
	for i := range 100 {
		things = append(things, querytest.Document(t, fmt.Sprintf(`{"n":%d}`, i)))
	}
	small := querytest.Documents(t, `[{"n":0.0015},{"n":0.8},{"n":7},{"n":{"$numberLong":"8"}}]`)
	zeros := querytest.Documents(t, `[{"n":0},{"n":0},{"n":25},{"n":63}]`)
	for name, c := range map[string]struct {
		docs []bson.Raw
		spec string
		want string
	}{
		"R20":            {things, `"buckets":5,"granularity":"R20"`, "0 20 20, 20 40 20, 40 63 23, 63 90 27, 90 100 10"},
		"E24":            {things, `"buckets":5,"granularity":"E24"`, "0 20 20, 20 43 23, 43 68 25, 68 91 23, 91 100 9"},
		"1-2-5":          {things, `"buckets":5,"granularity":"1-2-5"`, "0 20 20, 20 50 30, 50 100 50"},
		"powers of two":  {things, `"buckets":5,"granularity":"POWERSOF2"`, "0 32 32, 32 64 32, 64 128 36"},
		"E192":           {things, `"buckets":2,"granularity":"E192"`, "0 49.300000000000004 50, 49.300000000000004 100 50"},
		"below one":      {small, `"buckets":4,"granularity":"E6"`, "0.001 0.0022 1, 0.0022 1 1, 1 10 2"},
		"halves":         {small, `"buckets":4,"granularity":"POWERSOF2"`, "0.0009765625 0.001953125 1, 0.001953125 1 1, 1 8 1, 8 16 1"},
		"zeros, a power": {zeros, `"buckets":2,"granularity":"R5"`, "0 16 2, 16 100 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			docs, err := results(t.Context(), pipeline(t, `[{"$bucketAuto":{"groupBy":"$n",`+c.spec+`}}]`), c.docs)
			var got []string
			for _, doc := range docs {
				count, _ := doc.Lookup("count").AsInt64OK()
				got = append(got, fmt.Sprint(bsonkit.Float(doc.Lookup("_id", "min")), bsonkit.Float(doc.Lookup("_id", "max")), count))
			}
			if err != nil || strings.Join(got, ", ") != c.want {
				t.Errorf("got %s and %v, want %s", strings.Join(got, ", "), err, c.want)
			}
		})
	}
	for value, want := range map[string]mongoerr.Code{
		`"a"`: 40258, `null`: 40258, `{"$numberDouble":"NaN"}`: 40259, `-1`: 40260, `{"$numberDecimal":"1"}`: mongoerr.NotImplemented,
	} {
		p := pipeline(t, `[{"$bucketAuto":{"groupBy":"$n","buckets":2,"granularity":"R5"}}]`)
		if _, err := results(t.Context(), p, querytest.Documents(t, `[{"n":`+value+`}]`)); !mongoerr.Is(err, want) {
			t.Errorf("%s: got %v, want code %d", value, err, want)
		}
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
		`{"granularity":"R6"}`:             40257,
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
