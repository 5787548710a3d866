package projection_test

import (
	"os"
	"testing"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
)

func BenchmarkDecide(b *testing.B) {
	content, err := os.ReadFile("../../../e2e/orders.yaml")
	if err != nil {
		b.Fatal(err)
	}
	orders, err := projection.Parse("orders.yaml", content)
	if err != nil {
		b.Fatal(err)
	}
	sums, err := projection.Parse("x.yaml", []byte("projections:\n- name: p\n  collection: c\n  on: {ItemAdded: {set: {total: 'sum(map(data.lines, #.price * #.count))', n: 'len(filter(data.lines, #.count > 1))'}}}\n"))
	if err != nil {
		b.Fatal(err)
	}
	for name, ps := range map[string]projection.Projections{"orders": orders, "lines": sums} {
		b.Run(name, func(b *testing.B) {
			c := benchChange(b)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ps.Decide(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchChange(b *testing.B) *projection.Change {
	b.Helper()
	position := contract.StreamPosition(1700000000, 1, "82AB")
	c, err := projection.Read(contract.Event{
		ID: "id-1", Type: "ItemAdded", AggregateID: "order-1", Operation: contract.Insert, Time: time.Unix(1, 0),
		Position: position, Version: contract.VersionOf(7), Sequence: contract.SequenceOf(contract.VersionOf(7), position),
		ContentType: contract.ContentTypeJSON,
		Data:        []byte(`{"sku":"a-1","price":1200,"customer":"c","channel":"web","lines":[{"price":1,"count":2},{"price":3,"count":1},{"price":5,"count":4},{"price":1,"count":2},{"price":3,"count":1},{"price":5,"count":4},{"price":1,"count":2},{"price":3,"count":1},{"price":5,"count":4},{"price":7,"count":4}]}`),
	})
	if err != nil {
		b.Fatal(err)
	}
	return c
}
