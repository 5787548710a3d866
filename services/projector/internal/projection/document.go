package projection

import (
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
)

// Edit is what an update changed in a document, where the message does not show
// the whole document. Paths have dots between levels.
type Edit struct {
	Changed bson.D
	Removed []string
	// Cut are arrays that were cut short.
	Cut []string
}

// documentChange is the data of a message whose schema is contract.DocumentChange.
type documentChange struct {
	Document  bson.RawValue `bson:"document"`
	Changed   bson.D        `bson:"changed"`
	Removed   []string      `bson:"removed"`
	Truncated []struct {
		Field string `bson:"field"`
	} `bson:"truncated"`
}

// unwrap takes the document out of a document change, so that a projection sees
// the same data whatever the operation: the document after it.
func (c *Change) unwrap() error {
	if c.DataSchema == "" || c.Data.IsZero() {
		return nil
	}
	whole, ok := c.Data.DocumentOK()
	if !ok {
		return errors.New("a document change that is no object")
	}
	var change documentChange
	if err := bson.Unmarshal(whole, &change); err != nil {
		return fmt.Errorf("a document change: %w", err)
	}
	c.Data = change.Document
	if c.Operation == contract.Update && c.Data.IsZero() {
		c.Edit = &Edit{Changed: change.Changed, Removed: change.Removed}
		for _, array := range change.Truncated {
			c.Edit.Cut = append(c.Edit.Cut, array.Field)
		}
	}
	return nil
}

// update returns the edit as update operators on the document at a path.
func (e *Edit) update(at string) (bson.D, error) {
	if len(e.Cut) > 0 {
		return nil, fmt.Errorf("the update cuts array %q, and does not show the document: let the publisher look documents up (FULL_DOCUMENT)", e.Cut[0])
	}
	var set, unset bson.D
	for _, field := range e.Changed {
		set = append(set, bson.E{Key: at + "." + field.Key, Value: field.Value})
	}
	for _, path := range e.Removed {
		unset = append(unset, bson.E{Key: at + "." + path, Value: ""})
	}
	var update bson.D
	if set != nil {
		update = append(update, bson.E{Key: "$set", Value: set})
	}
	if unset != nil {
		update = append(update, bson.E{Key: "$unset", Value: unset})
	}
	return update, nil
}
