package readmodel_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
)

// Whatever a batch asks for, storing it at once gives what storing its writes
// one after another gives: the same documents, and the same write refused.
func TestCoalesce_ABatchEndsAsItsWritesOneByOne(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	run := 0
	rapid.Check(t, func(r *rapid.T) {
		run++
		writes := drawWrites(r)
		before := rapid.IntRange(0, len(writes)).Draw(r, "stored before")
		single, batch := fmt.Sprintf("single-%d", run), fmt.Sprintf("batch-%d", run)
		for _, collection := range []string{single, batch} {
			_, _ = oneByOne(t.Context(), s, in(collection, writes[:before]))
		}
		want, wantErr := oneByOne(t.Context(), s, in(single, writes))
		got, gotErr := atOnce(t.Context(), s, in(batch, writes))
		if got != want || (gotErr == nil) != (wantErr == nil) {
			r.Errorf("refused write: got %d (%v), want %d (%v)", got, gotErr, want, wantErr)
		}
		for _, id := range []string{"a", "b"} {
			got, err := s.Fields(t.Context(), batch, id)
			want, wantErr := s.Fields(t.Context(), single, id)
			if got != want || errors.Join(err, wantErr) != nil {
				r.Errorf("document %s:\n got %s\nwant %s (%v %v)", id, got, want, err, wantErr)
			}
		}
	})
}

// oneByOne stores writes in a call each, up to the first that is refused.
func oneByOne(ctx context.Context, s *subject, writes []projection.Write) (int, error) {
	for i := range writes {
		if _, err := s.Write(ctx, writes[i:i+1]); err != nil {
			return i, refusal(err)
		}
	}
	return len(writes), nil
}

// atOnce stores writes as the handler does: without the refused one and what
// follows it, until none is refused.
func atOnce(ctx context.Context, s *subject, writes []projection.Write) (int, error) {
	n := len(writes)
	var refused error
	for {
		_, err := s.Write(ctx, writes[:n])
		if err == nil {
			return n, refused
		}
		rejected, ok := errors.AsType[*delivery.RejectedError](err)
		if !ok {
			return n, err
		}
		n, refused = rejected.Index, err
	}
}

func refusal(err error) error {
	if _, ok := errors.AsType[*delivery.RejectedError](err); ok {
		return err
	}
	panic(err)
}

func in(collection string, writes []projection.Write) []projection.Write {
	moved := make([]projection.Write, len(writes))
	for i, w := range writes {
		w.Collection = collection
		moved[i] = w
	}
	return moved
}

// drawWrites draws events in any order, as they come again. Twins are drawn among updates
// alone and in order: behind what is later or changes nothing, one may be refused or be a
// repeat, by what else is in its batch.
func drawWrites(r *rapid.T) []projection.Write {
	writes := rapid.SliceOfN(rapid.Custom(drawWrite), 1, 12).Draw(r, "writes")
	twin := func(w projection.Write) bool { return strings.HasSuffix(w.Event.ID, "-again") }
	if slices.ContainsFunc(writes, twin) {
		writes = slices.DeleteFunc(writes, func(w projection.Write) bool { return w.Delete || w.Kept })
		slices.SortStableFunc(writes, func(a, b projection.Write) int { return cmp.Compare(a.Event.Sequence, b.Event.Sequence) })
	}
	return writes
}

func drawWrite(r *rapid.T) projection.Write {
	id := rapid.SampledFrom([]string{"a", "a", "a", "b"}).Draw(r, "document")
	w := projection.Write{Projection: "p", ID: id, Event: readmodeltest.Event(id, rapid.Int64Range(1, 30).Draw(r, "version"))}
	if rapid.IntRange(0, 9).Draw(r, "kind") == 0 {
		w.Delete = true
		return w
	}
	if rapid.IntRange(0, 7).Draw(r, "kept") == 0 {
		w.Kept = true
		return w
	}
	if rapid.IntRange(0, 29).Draw(r, "twin") == 0 {
		w.Event.ID += "-again"
	}
	paths := rapid.Permutation([]string{"n", "m", "list", rapid.SampledFrom([]string{"sub", "sub.x"}).Draw(r, "nested")}).Draw(r, "paths")
	for _, path := range paths[:rapid.IntRange(1, 3).Draw(r, "operators")] {
		operator, operand := drawOperator(r)
		w.Update = with(w.Update, operator, bson.E{Key: path, Value: operand})
	}
	if rapid.IntRange(0, 7).Draw(r, "depends") == 0 {
		return depending(w)
	}
	return w
}

// depending is a write that also stores how many fields it finds; -1 for no document.
func depending(w projection.Write) projection.Write {
	done := w
	w.Update, w.Complete = nil, func(document bson.Raw) (projection.Write, error) {
		made := done
		elements, err := document.Elements()
		found := len(elements)
		if document == nil {
			found, err = -1, nil
		}
		made.Update = joined(done.Update, bson.E{Key: "found", Value: found})
		return made, err
	}
	return w
}

// joined is an update that also sets a field, with what is given left as it is.
func joined(update bson.D, field bson.E) bson.D {
	var whole bson.D
	for _, operator := range update {
		for _, e := range operator.Value.(bson.D) {
			whole = with(whole, operator.Key, e)
		}
	}
	return with(whole, "$set", field)
}

// with adds a field to an update's operator.
func with(update bson.D, operator string, field bson.E) bson.D {
	for i := range update {
		if update[i].Key == operator {
			update[i].Value = append(update[i].Value.(bson.D), field)
			return update
		}
	}
	return append(update, bson.E{Key: operator, Value: bson.D{field}})
}

func drawOperator(r *rapid.T) (operator string, operand any) {
	number := rapid.SampledFrom([]any{1, int32(7), int64(-3), int64(1 << 40), 2.5, 1<<31 - 1})
	scalar := rapid.OneOf(number, rapid.SampledFrom([]any{"x", true, nil, time.UnixMilli(5).UTC()}))
	each := bson.A{scalar.Draw(r, "element")}
	switch operator = rapid.SampledFrom([]string{"$set", "$set", "$inc", "$inc", "$min", "$max", "$push", "$push", "$addToSet", "$pullAll", "$unset", "$mul"}).Draw(r, "operator"); operator {
	case "$inc", "$mul":
		return operator, number.Draw(r, "number")
	case "$push":
		operand := bson.D{{Key: "$each", Value: each}}
		if last := rapid.IntRange(0, 3).Draw(r, "last"); last > 0 {
			operand = append(operand, bson.E{Key: "$slice", Value: -last})
		}
		return operator, operand
	case "$addToSet":
		return operator, bson.D{{Key: "$each", Value: each}}
	case "$pullAll":
		return operator, each
	case "$set":
		return operator, rapid.OneOf(scalar, rapid.Just[any](bson.A{1, "x"})).Draw(r, "value")
	default:
		return operator, scalar.Draw(r, "operand")
	}
}

// A repeat comes together with what is new.
func TestCoalesce_WhatMovesThePositionDoesSoBehindARepeat(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	kept := func(version int64) projection.Write {
		return projection.Write{Projection: "p", Collection: "c", ID: "a", Event: readmodeltest.Event("a", version), Kept: true}
	}
	for _, writes := range [][]projection.Write{{set("a", 1)}, {kept(1), kept(3)}} {
		if _, err := s.Write(t.Context(), writes); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Write(t.Context(), []projection.Write{set("a", 2)}); err != nil || got[0] != delivery.Repeated {
		t.Errorf("an event from before the position: got %v and %v, want it to be a repeat", got, err)
	}
}

// Sessions are short and hot ones are long; either way a document that gets
// many messages at once is written once.
func TestCoalesce_ABatchWritesADocumentOnce(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		update func(n int64) bson.D
		want   string
	}{
		{
			"of fields that are set",
			func(n int64) bson.D { return bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: n}}}} }, `{"n":50}`,
		},
		{
			"of sums",
			func(n int64) bson.D { return bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: n}}}} }, `{"n":1275}`,
		},
		{
			"of extremes",
			func(n int64) bson.D {
				return bson.D{
					{Key: "$min", Value: bson.D{{Key: "least", Value: n}}},
					{Key: "$max", Value: bson.D{{Key: "most", Value: n}}},
				}
			}, `{"least":1}{"most":50}`,
		},
		{
			"of a field that is unset before it is set",
			func(n int64) bson.D {
				if n == 1 {
					return bson.D{{Key: "$unset", Value: bson.D{{Key: "n", Value: ""}}}}
				}
				return bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: n}}}}
			}, `{"n":50}`,
		},
		{
			"of bounded lists",
			func(n int64) bson.D {
				return bson.D{{Key: "$push", Value: bson.D{{Key: "n", Value: bson.D{{Key: "$each", Value: bson.A{n}}, {Key: "$slice", Value: -2}}}}}}
			}, `{"n":[49,50]}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var r recorder
			s := newSubject(t, r.monitor())
			writes := make([]projection.Write, 50)
			for i := range writes {
				writes[i] = set("a", int64(i+1))
				writes[i].Update = tt.update(int64(i + 1))
			}
			if _, err := s.Write(t.Context(), writes); err != nil {
				t.Fatal(err)
			}
			statements := 0
			_, commands := r.take()
			for _, command := range commands {
				updates, _ := command.Lookup("updates").Array().Values()
				statements += len(updates)
			}
			if statements != 1 {
				t.Errorf("statements: got %d, want 1", statements)
			}
			if got, err := s.Fields(t.Context(), "c", "a"); err != nil || got != tt.want {
				t.Errorf("document: got %s and %v, want %s", got, err, tt.want)
			}
		})
	}
}
