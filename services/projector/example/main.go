// Command example is a projector with a projection in Go: how many of an article are where.
package main

import (
	"errors"

	"changerelay/services/projector"
)

func main() { projector.Main(stock) }

var stock = projector.Projection{
	Name: "stock", Version: 1, Collection: "stock", Shared: true, Types: []string{"StockMoved"}, Decide: move,
	Revision: "1", // another one with every change of what move writes
}

// move takes articles from one place to another: one event, two documents.
func move(e *projector.Event) ([]projector.Write, error) {
	var moved struct {
		Article, From, To string
		Count             int64
	}
	if err := e.Unmarshal(&moved); err != nil {
		return nil, err
	}
	if moved.Article == "" || moved.Count < 1 {
		return nil, errors.New("it moves nothing")
	}
	return []projector.Write{
		projector.Update(moved.Article+"@"+moved.From, projector.Inc("count", -moved.Count)),
		projector.Update(moved.Article+"@"+moved.To, projector.Inc("count", moved.Count)),
	}, nil
}
