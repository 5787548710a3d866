package bsonkit_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

func BenchmarkAppendKey(b *testing.B) {
	for name, json := range map[string]string{
		"object id": `{"$oid":"000000000000000000000001"}`,
		"string":    `"order-000123"`,
		"int":       `123456`,
		"double":    `1.5`,
		"document":  `{"a":"order-000123","v":17}`,
	} {
		v := value(b, json)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var buf [128]byte
			for b.Loop() {
				bsonkit.AppendKey(buf[:0], v)
			}
		})
	}
}

func BenchmarkValidate(b *testing.B) {
	doc := document(b, `{"_id":{"$oid":"000000000000000000000001"},"aggregateId":"order-000123","version":17,"type":"ItemAdded",
		"time":{"$date":{"$numberLong":"1600000000000"}},"data":{"sku":"A-1","quantity":2,"price":19.99,"tags":["a","b"]}}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if err := bsonkit.Validate(doc, bsonkit.MaxDepth); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIndexValues(b *testing.B) {
	doc := document(b, `{"_id":1,"a":{"b":"order-000123"},"v":17}`)
	path := bsonkit.ParsePath("a.b")
	b.ReportAllocs()
	var buf [4]bson.RawValue
	for b.Loop() {
		bsonkit.AppendIndexValues(buf[:0], doc, path)
	}
}
