package modify_test

import (
	"testing"

	"changerelay/services/sandbox/internal/mongodb/query/modify"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

const readDocument = `{"_id":"order-000123","status":"placed","customer":"c-17","total":59.97,"events":3,
	"_relay":{"sequence":"00000000000000000016","position":"5f5e1001.0001","eventId":"e","eventType":"ItemAdded","term":3}}`

func BenchmarkUpdate(b *testing.B) {
	doc := querytest.Document(b, readDocument)
	for name, json := range map[string]string{
		"set one":    `{"$set":{"status":"shipped"}}`,
		"read model": `{"$set":{"status":"shipped","_relay":{"sequence":"00000000000000000017","position":"5f5e1001.0002","eventId":"f","eventType":"OrderShipped","term":3}},"$inc":{"events":1}}`,
	} {
		spec := querytest.Value(b, json)
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
				if _, err := modify.Compile(spec, modify.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkUpsert(b *testing.B) {
	f := querytest.Filter(b, `{"_id":"order-000123","_relay.sequence":{"$lt":"00000000000000000017"}}`)
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
	doc := querytest.Document(b, readDocument)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := u.Apply(doc, nil); err != nil {
			b.Fatal(err)
		}
	}
}
