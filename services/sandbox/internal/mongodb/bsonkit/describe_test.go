package bsonkit_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

func TestDescribe_WritesValuesAsTheServerDoes(t *testing.T) {
	t.Parallel()
	for json, want := range map[string]string{
		`{"_id":{"$numberInt":"1"}}`:                                                   `{ _id: 1 }`,
		`{"a":{"$numberDouble":"1"},"b":{"$numberDouble":"2.5"}}`:                      `{ a: 1.0, b: 2.5 }`,
		`{"a":"x","b":null,"c":true}`:                                                  `{ a: "x", b: null, c: true }`,
		`{"a":[{"$numberInt":"1"},{"b":{}}],"c":[]}`:                                   `{ a: [ 1, { b: {} } ], c: [] }`,
		`{"_id":{"$oid":"5f5f5f5f5f5f5f5f5f5f5f5f"}}`:                                  `{ _id: ObjectId('5f5f5f5f5f5f5f5f5f5f5f5f') }`,
		`{"d":{"$date":{"$numberLong":"5"}}}`:                                          `{ d: new Date(5) }`,
		`{"t":{"$timestamp":{"t":1,"i":2}}}`:                                           `{ t: Timestamp(1, 2) }`,
		`{"b":{"$binary":{"base64":"AP8=","subType":"00"}}}`:                           `{ b: BinData(0, 00FF) }`,
		`{"r":{"$regularExpression":{"pattern":"a","options":"i"}},"m":{"$minKey":1}}`: `{ r: /a/i, m: MinKey }`,
		`{}`: `{}`,
	} {
		var d bson.D
		if err := bson.UnmarshalExtJSON([]byte(json), true, &d); err != nil {
			t.Fatal(err)
		}
		if got := bsonkit.DescribeFields(d); got != want {
			t.Errorf("%s: got %s, want %s", json, got, want)
		}
	}
	if got := bsonkit.DescribeFields(bson.D{{Key: "a", Value: strings.Repeat("x", 1000)}}); len(got) > 200 {
		t.Errorf("got %d bytes of a long text", len(got))
	}
}
