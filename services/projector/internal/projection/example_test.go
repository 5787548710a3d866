package projection_test

import (
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
)

// lines keeps a document for each line of an order, which no declared
// projection can: one event makes several writes.
type lines struct{}

func (lines) Name() string { return "lines" }

func (lines) Collections() []string { return []string{"lines"} }

func (l lines) Decide(c *projection.Change) ([]projection.Write, error) {
	if c.Type != "OrderPlaced" {
		return nil, nil
	}
	var data struct {
		Lines []struct {
			Article string
			Count   int64
		}
	}
	if err := c.Data.Unmarshal(&data); err != nil {
		return nil, fmt.Errorf("read the lines: %w", err)
	}
	var writes []projection.Write
	for i, line := range data.Lines {
		writes = append(writes, projection.Write{
			Projection: l.Name(), Collection: "lines", ID: fmt.Sprintf("%s/%d", c.AggregateID, i), Event: &c.Event,
			Update: bson.D{{Key: "$set", Value: bson.D{{Key: "article", Value: line.Article}, {Key: "count", Value: line.Count}}}},
		})
	}
	return writes, nil
}

// A projection in Go decides from the change alone what is written. It guards
// nothing and stores nothing: that is done for it.
func ExampleProjection() {
	position := contract.StreamPosition(1700000000, 1, "82AB")
	change, err := projection.Read(contract.Event{
		ID: "order-1/1", Type: "OrderPlaced", AggregateID: "order-1", Operation: contract.Insert, Time: time.Unix(1700000000, 0),
		Position: position, Sequence: contract.SequenceOf(contract.VersionOf(1), position), Version: contract.VersionOf(1),
		ContentType: contract.ContentTypeJSON, Data: []byte(`{"lines":[{"article":"tea","count":2},{"article":"cup","count":1}]}`),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	writes, err := projection.Projections{lines{}}.Decide(change)
	for _, w := range writes {
		fmt.Println(w.Collection, w.ID, w.Update)
	}
	fmt.Println(err)
	// Output:
	// lines order-1/0 {"$set":{"article":"tea","count":{"$numberLong":"2"}}}
	// lines order-1/1 {"$set":{"article":"cup","count":{"$numberLong":"1"}}}
	// <nil>
}
