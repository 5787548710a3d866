package projection

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
)

// Latest keeps the data of each aggregate's last event in field data, and
// removes the document when the source document is deleted.
type Latest struct {
	// Collection is where the documents are kept.
	Collection string
}

var _ Projection = Latest{}

// Name implements Projection.
func (Latest) Name() string { return "latest" }

// Collections implements Projection.
func (l Latest) Collections() []string { return []string{l.Collection} }

// Decide implements Projection.
func (l Latest) Decide(c *Change) ([]Write, error) {
	w := Write{Projection: l.Name(), Collection: l.Collection, ID: c.AggregateID, Event: &c.Event}
	switch {
	case c.Operation == contract.Delete:
		w.Delete, w.Whole = true, true
	case c.Edit != nil:
		var err error
		if w.Update, err = c.Edit.update("data"); err != nil {
			return nil, err
		}
	case c.Data.IsZero():
		w.Whole = true
		w.Update = bson.D{{Key: "$set", Value: bson.D{{Key: "data", Value: nil}}}}
	default:
		w.Whole = true
		w.Update = bson.D{{Key: "$set", Value: bson.D{{Key: "data", Value: c.Data}}}}
	}
	return []Write{w}, nil
}
