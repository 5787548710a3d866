package projector

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/projection"
)

// Write is one change of one document. Update and Delete make it.
type Write struct {
	id      any
	delete  bool
	changes []Change
}

// Update changes the document with an _id, and makes it where there is none. Without
// changes it leaves the document as it is.
//
// The _id is the event's AggregateID. Of a projection that is Shared it is any text, whole
// number or bson.ObjectID; several writes of one event may be of one document, and are
// made in their order.
func Update(id any, changes ...Change) Write { return Write{id: id, changes: changes} }

// Delete removes the document with an _id, chosen as for Update.
func Delete(id any) Write { return Write{id: id, delete: true} }

// Change is what happens to one field of a document.
//
// A field is a path with dots between levels. What an event says belongs into values,
// never into a path, where a dot or a $ of it would mean something. Fields of one Write
// are changed once, and neither _id nor _relay is. A value is whatever BSON can hold; a
// map is stored with its keys sorted.
type Change struct{ operand projection.Operand }

// Set sets a field.
func Set(field string, value any) Change { return one("set", field, value) }

// Unset removes a field.
func Unset(field string) Change { return one("unset", field, nil) }

// Inc adds a number to a field; one that is not there counts as 0.
func Inc(field string, number any) Change { return one("inc", field, number) }

// Min keeps the lower of the field and a value.
func Min(field string, value any) Change { return one("min", field, value) }

// Max keeps the higher of the field and a value.
func Max(field string, value any) Change { return one("max", field, value) }

// Push appends values to an array.
func Push(field string, values ...any) Change { return many("push", field, values) }

// PushLast appends values to an array, and keeps its last n elements, 1 or more.
func PushLast(field string, n int, values ...any) Change {
	c := many("push", field, values)
	c.operand.Last = n
	if n < 1 {
		c.operand.Last = -1 // which is refused, as 0 would not be
	}
	return c
}

// AddToSet appends those of the values to an array that are not in it.
func AddToSet(field string, values ...any) Change { return many("addToSet", field, values) }

// Pull removes every element of an array that equals one of the values.
func Pull(field string, values ...any) Change { return many("pull", field, values) }

func one(operator, field string, value any) Change {
	return Change{projection.Operand{Operator: operator, Path: field, Value: value}}
}

func many(operator, field string, values []any) Change {
	return Change{projection.Operand{Operator: operator, Path: field, Values: values}}
}

// encoded are writes as they are stored.
func encoded(writes []Write) ([]projection.Write, error) {
	all := make([]projection.Write, 0, len(writes))
	for i := range writes {
		w := &writes[i]
		made := projection.Write{ID: w.id, Delete: w.delete}
		operands := make([]projection.Operand, len(w.changes))
		for j := range w.changes {
			operands[j] = w.changes[j].operand
		}
		var err error
		if made.Update, err = projection.Update(operands); err != nil {
			return nil, fmt.Errorf("document %v: %w", w.id, err)
		}
		if w.delete || len(made.Update) > 0 {
			all = append(all, made)
		}
	}
	return all, nil
}

// String is the write as a person reads it: the _id, and the update in Extended JSON.
func (w Write) String() string {
	made, err := encoded([]Write{w})
	switch {
	case err != nil:
		return err.Error()
	case len(made) == 0:
		return fmt.Sprintf("%v: nothing", w.id)
	}
	return shown(&made[0])
}

func shown(w *projection.Write) string {
	if w.Delete {
		return fmt.Sprintf("%v: delete", w.ID)
	}
	text, err := bson.MarshalExtJSON(w.Update, false, false)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%v: %s", w.ID, text)
}
