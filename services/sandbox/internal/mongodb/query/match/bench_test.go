package match_test

import (
	"testing"

	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/match"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

const event = `{"_id":{"$oid":"000000000000000000000001"},"aggregateId":"order-000123","version":17,"type":"ItemAdded",
	"time":{"$date":{"$numberLong":"1600000000000"}},"data":{"sku":"A-1","quantity":2,"price":19.99,"tags":["a","b"]}}`

const readDocument = `{"_id":"order-000123","status":"placed","customer":"c-17","total":59.97,"events":3,
	"_relay":{"sequence":"00000000000000000016","position":"5f5e1001.0001","eventId":"e","eventType":"ItemAdded","term":3}}`

func BenchmarkMatch(b *testing.B) {
	for name, c := range map[string]struct{ filter, doc string }{
		"id":               {`{"_id":"order-000123"}`, readDocument},
		"guarded position": {`{"_id":"order-000123","_relay.sequence":{"$lt":"00000000000000000017"}}`, readDocument},
		"in an array":      {`{"data.tags":"b"}`, event},
	} {
		f := querytest.Filter(b, c.filter)
		doc := querytest.Document(b, c.doc)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if ok, err := f.Match(doc); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}

func BenchmarkCompileFilter(b *testing.B) {
	spec := querytest.Document(b, `{"_id":"order-000123","_relay.sequence":{"$lt":"00000000000000000017"}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := match.Compile(spec, expression.Env{}); err != nil {
			b.Fatal(err)
		}
	}
}
