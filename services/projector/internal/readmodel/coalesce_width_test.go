package readmodel_test

import (
	"errors"
	"math"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
)

// incs are increments of one document in one batch.
func incs(aggregate string, amounts ...any) []projection.Write {
	writes := make([]projection.Write, len(amounts))
	for i, amount := range amounts {
		writes[i] = projection.Write{
			Projection: "p", Collection: "c", ID: aggregate, Event: readmodeltest.Event(aggregate, int64(i)+1),
			Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: amount}}}},
		}
	}
	return writes
}

// A sum that is coalesced has the width that the server gives it.
func TestCoalesce_OfLongsIsALong(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	for aggregate, tt := range map[string]struct {
		amounts []any
		want    bson.Type
	}{
		"longs":       {[]any{int64(1), int64(2)}, bson.TypeInt64},
		"int, long":   {[]any{int32(1), int64(2)}, bson.TypeInt64},
		"long, int":   {[]any{int64(1), int32(2)}, bson.TypeInt64},
		"ints":        {[]any{int32(1), int32(2)}, bson.TypeInt32},
		"widened":     {[]any{int32(math.MaxInt32), int32(1)}, bson.TypeInt64},
		"narrow long": {[]any{int64(math.MaxInt32) + 1, int32(-1)}, bson.TypeInt64},
	} {
		if _, err := s.Write(t.Context(), incs(aggregate, tt.amounts...)); err != nil {
			t.Fatal(err)
		}
		stored, err := s.db.Collection("c").FindOne(t.Context(), bson.D{{Key: "_id", Value: aggregate}}).Raw()
		if got := stored.Lookup("n"); err != nil || got.Type != tt.want {
			t.Errorf("%s: stored %s as %s (%v), want %s", aggregate, got, got.Type, err, tt.want)
		}
	}
}

// A sum that does not fit is not coalesced: the server refuses the right write.
func TestCoalesce_ThatOverflowsBlamesTheWriteThatDoes(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	for aggregate, amounts := range map[string][]any{"above": {int64(math.MaxInt64), int64(1)}, "below": {int64(math.MinInt64), int64(-1)}} {
		_, err := s.Write(t.Context(), incs(aggregate, amounts...))
		rejected, ok := errors.AsType[*delivery.RejectedError](err)
		if !ok || rejected.Index != 1 {
			t.Errorf("%s: got %v, want the second write refused", aggregate, err)
		}
		stored, err := s.db.Collection("c").FindOne(t.Context(), bson.D{{Key: "_id", Value: aggregate}}).Raw()
		if got := stored.Lookup("n"); err != nil || got.Int64() != amounts[0] {
			t.Errorf("%s: stored %s (%v), want %d", aggregate, got, err, amounts[0])
		}
	}
}

// A duplicate key beside a lower position is no repeat: somebody got in between.
func TestConfirm_ALowerPositionIsNoRepeat(t *testing.T) {
	t.Parallel()
	for name, keyed := range map[string]bool{"own": false, "keyed": true} {
		s := newSubject(t, nil)
		write := func(n int64) projection.Write {
			return projection.Write{Projection: "p", Collection: "c", ID: "a", Keyed: keyed, Event: readmodeltest.Event("a", n), Update: bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: n}}}}}
		}
		if _, err := s.Write(t.Context(), []projection.Write{write(1)}); err != nil {
			t.Fatal(err)
		}
		if outcome, err := s.Confirm(t.Context(), write(2)); err == nil || outcome != delivery.Unknown {
			t.Errorf("%s: a later write: got %v and %v, want it unknown", name, outcome, err)
		}
		if outcome, err := s.Confirm(t.Context(), write(1)); err != nil || outcome != delivery.Repeated {
			t.Errorf("%s: the same write: got %v and %v, want a repeat", name, outcome, err)
		}
	}
}
