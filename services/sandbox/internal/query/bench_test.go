package query_test

import (
	"testing"

	"changerelay/services/sandbox/internal/query"
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
		f := filter(b, c.filter)
		doc := document(b, c.doc)
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
	spec := document(b, `{"_id":"order-000123","_relay.sequence":{"$lt":"00000000000000000017"}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := query.CompileFilter(spec, query.Env{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	doc := document(b, readDocument)
	for name, json := range map[string]string{
		"set one":    `{"$set":{"status":"shipped"}}`,
		"read model": `{"$set":{"status":"shipped","_relay":{"sequence":"00000000000000000017","position":"5f5e1001.0002","eventId":"f","eventType":"OrderShipped","term":3}},"$inc":{"events":1}}`,
	} {
		spec := value(b, json)
		b.Run("apply "+name, func(b *testing.B) {
			u := update(b, json)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := u.Apply(doc, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("compile "+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := query.CompileUpdate(spec, query.UpdateOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkUpsert(b *testing.B) {
	f := filter(b, `{"_id":"order-000123","_relay.sequence":{"$lt":"00000000000000000017"}}`)
	u := update(b, `{"$set":{"status":"shipped","_relay":{"sequence":"00000000000000000017"}},"$inc":{"events":1}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := u.Upsert(f); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPipelineUpdate(b *testing.B) {
	u := update(b, `[{"$replaceWith":{"$cond":[{"$lt":["$_relay.sequence","00000000000000000017"]},{"$mergeObjects":["$$ROOT",{"status":"shipped","_relay":{"sequence":"00000000000000000017"}}]},"$$ROOT"]}}]`)
	doc := document(b, readDocument)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := u.Apply(doc, nil); err != nil {
			b.Fatal(err)
		}
	}
}
