package projector_test

import (
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector"
)

// stock keeps how many of an article are where: one event changes two documents.
var stock = projector.Projection{
	Name: "stock", Collection: "stock", Revision: "1", Types: []string{"StockMoved"}, Shared: true,
	Decide: func(e *projector.Event) ([]projector.Write, error) {
		var moved struct {
			Article, From, To string
			Count             int64
		}
		if err := e.Unmarshal(&moved); err != nil {
			return nil, err
		}
		return []projector.Write{
			projector.Update(moved.Article+"@"+moved.From, projector.Inc("count", -moved.Count)),
			projector.Update(moved.Article+"@"+moved.To, projector.Inc("count", moved.Count)),
		}, nil
	},
}

// A projector of one's own is its projections.
func ExampleMain() {
	main := func() { projector.Main(stock) }
	_ = main
}

// A projection is tried without any server.
func ExampleProjection_Try() {
	fmt.Println(stock.Try(`{"type": "StockMoved", "data": {"article": "tea", "from": "harbour", "to": "shop", "count": 3}}`))
	// Output:
	// tea@harbour: {"$inc":{"count":-3}}
	// tea@shop: {"$inc":{"count":3}}
	//  <nil>
}

// With State a projection goes on from what earlier events have made of the aggregate's
// document.
func ExampleProjection_state() {
	discounts := projector.Projection{
		Name: "discounts", Collection: "discounts", Revision: "1", Types: []string{"OrderPlaced"}, State: true,
		Decide: func(e *projector.Event) ([]projector.Write, error) {
			var order struct{ Total int64 }
			var document struct{ Level, Spent int64 }
			if err := errors.Join(e.Unmarshal(&order), e.UnmarshalState(&document)); err != nil {
				return nil, err
			}
			spent := document.Spent + order.Total
			level := document.Level
			for spent >= 100<<level {
				level++
			}
			return []projector.Write{projector.Update(e.AggregateID, projector.Set("spent", spent), projector.Set("level", level))}, nil
		},
	}
	fmt.Println(discounts.Try(`{"type": "OrderPlaced", "aggregateId": "ann", "data": {"total": 250}}
		{"type": "OrderPlaced", "aggregateId": "bob", "data": {"total": 250}, "state": {"spent": 190, "level": 1}}`))
	// Output:
	// ann: {"$set":{"spent":250,"level":2}}
	// bob: {"$set":{"spent":440,"level":3}}
	//  <nil>
}

// Values are encoded when the write is made; a map's keys are sorted.
func ExampleUpdate() {
	fmt.Println(projector.Update("order-1",
		projector.Set("customer", map[string]any{"name": "Ann", "id": 7}),
		projector.Max("latest", int64(3)),
		projector.PushLast("history", 20, bson.D{{Key: "type", Value: "OrderPlaced"}}),
		projector.Unset("draft")))
	fmt.Println(projector.Delete("order-2"))
	// Output:
	// order-1: {"$set":{"customer":{"id":7,"name":"Ann"}},"$max":{"latest":3},"$push":{"history":{"$each":[{"type":"OrderPlaced"}],"$slice":-20}},"$unset":{"draft":""}}
	// order-2: delete
}
