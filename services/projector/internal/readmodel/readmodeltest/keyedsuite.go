package readmodeltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// keyedCount is count for a document that aggregates share.
func keyedCount(document, aggregate string, n int64) projection.Write {
	w := count("c", aggregate, n)
	w.ID, w.Keyed = document, true
	return w
}

func keyedCounts(aggregate string, versions ...int64) []projection.Write {
	writes := make([]projection.Write, len(versions))
	for i, n := range versions {
		writes[i] = keyedCount("total", aggregate, n)
	}
	return writes
}

// keyedSuite is about documents that many aggregates change.
func keyedSuite(t *testing.T, fresh func(t *testing.T) ReadModel) {
	removal := keyedCount("total", "a", 4)
	removal.Update, removal.Delete = nil, true
	several := keyedCounts("a", 1, 2, 3)
	several = append(several, several[2])
	several[3].ID = "other"
	// The elements of one event, of which two have one document.
	elements := keyedCounts("a", 1, 1, 1, 2, 2)
	elements[1].ID = "other"
	elements[1].Event, elements[2].Event, elements[4].Event = elements[0].Event, elements[0].Event, elements[3].Event
	removed := keyedCounts("a", 1, 1, 2)
	removed[1].Event, removed[1].Update, removed[1].Delete = removed[0].Event, nil, true
	type call struct {
		writes []projection.Write
		want   []delivery.Outcome
	}
	tests := []struct {
		name  string
		calls []call
		want  string
	}{
		{
			"each aggregate has a position of its own",
			[]call{{keyedCounts("a", 1, 2, 3), []delivery.Outcome{applied, applied, applied}}, {keyedCounts("b", 1, 2), []delivery.Outcome{applied, applied}}},
			`{"events":5}{"last":2}{"seen":[3,1,2]}`,
		},
		{
			"what comes again changes nothing",
			[]call{
				{keyedCounts("a", 1, 2), []delivery.Outcome{applied, applied}},
				{keyedCounts("b", 9), []delivery.Outcome{applied}},
				{keyedCounts("a", 1, 2, 3), []delivery.Outcome{repeated, repeated, applied}},
				{keyedCounts("a", 1, 2, 1, 4, 4, 3), []delivery.Outcome{repeated, repeated, repeated, applied, repeated, repeated}},
			},
			`{"events":5}{"last":4}{"seen":[9,3,4]}`,
		},
		{
			"an event may change several documents",
			[]call{
				{several, []delivery.Outcome{applied, applied, applied, applied}},
				{several[2:], []delivery.Outcome{repeated, repeated}},
			},
			`{"events":3}{"last":3}{"seen":[1,2,3]}`,
		},
		{
			"an event may change a document more than once",
			[]call{
				{elements[:3], []delivery.Outcome{applied, applied, applied}},
				{elements, []delivery.Outcome{repeated, repeated, repeated, applied, applied}},
				{elements[3:], []delivery.Outcome{repeated, repeated}},
			},
			`{"events":4}{"last":2}{"seen":[1,2,2]}`,
		},
		{
			"an event may change a document more than once in a batch",
			[]call{{elements, slices.Repeat([]delivery.Outcome{applied}, 5)}, {elements, slices.Repeat([]delivery.Outcome{repeated}, 5)}},
			`{"events":4}{"last":2}{"seen":[1,2,2]}`,
		},
		{
			"an event may change and delete a document",
			[]call{{removed, slices.Repeat([]delivery.Outcome{applied}, 3)}, {removed, slices.Repeat([]delivery.Outcome{repeated}, 3)}},
			`{"events":1}{"last":2}{"seen":[2]}`,
		},
		{
			"another aggregate begins a deleted document anew",
			[]call{
				{append(keyedCounts("a", 1, 2), removal), []delivery.Outcome{applied, applied, applied}},
				{keyedCounts("a", 2), []delivery.Outcome{repeated}},
				{keyedCounts("b", 1), []delivery.Outcome{applied}},
			},
			`{"events":1}{"last":1}{"seen":[1]}`,
		},
		{
			"a delete leaves nothing but that it was",
			[]call{{append(keyedCounts("a", 1, 2), removal), []delivery.Outcome{applied, applied, applied}}},
			"deleted",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := fresh(t)
			for i, c := range tt.calls {
				if got, err := m.Write(t.Context(), c.writes); err != nil || !slices.Equal(got, c.want) {
					t.Fatalf("call %d: got %v and %v, want %v", i, got, err, c.want)
				}
			}
			if got, err := m.Fields(t.Context(), "c", "total"); err != nil || got != tt.want {
				t.Errorf("document: got %s and %v, want %s", got, err, tt.want)
			}
		})
	}
	t.Run("what is refused", func(t *testing.T) { t.Parallel(); keyedRejections(t, fresh) })
	t.Run("many aggregates at once", func(t *testing.T) { t.Parallel(); keyedTogether(t, fresh) })
}

func keyedRejections(t *testing.T, fresh func(t *testing.T) ReadModel) {
	wrongType := keyedCount("total", "a", 3)
	wrongType.Update = bson.D{{Key: "$inc", Value: bson.D{{Key: "seen", Value: 1}}}}
	twin := keyedCount("total", "a", 2)
	twin.Event = new(*twin.Event)
	twin.Event.ID = "a-2-again"
	tests := []struct {
		name   string
		writes []projection.Write
		index  int
		want   string
	}{
		{"a write that does not fit the document", append(keyedCounts("a", 1, 2), wrongType, keyedCount("total", "a", 4)), 2, `{"events":2}{"last":2}{"seen":[1,2]}`},
		{"another event with the version of one that is applied", append(keyedCounts("a", 1, 2), twin), 2, `{"events":2}{"last":2}{"seen":[1,2]}`},
		{"a document that is not of the projector", []projection.Write{keyedCount("total", "a", 1), keyedCount("mine", "a", 2)}, 1, `{"events":1}{"last":1}{"seen":[1]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := fresh(t)
			if err := m.PutForeign(t.Context(), "c", "mine"); err != nil {
				t.Fatal(err)
			}
			_, err := m.Write(t.Context(), tt.writes)
			rejected, ok := errors.AsType[*delivery.RejectedError](err)
			if !ok || rejected.Index != tt.index || rejected.Reason == "" {
				t.Fatalf("got %#v, want write %d rejected with a reason", err, tt.index)
			}
			// What stands before it goes again, as the handler does it.
			if _, err := m.Write(t.Context(), tt.writes[:tt.index]); err != nil {
				t.Fatalf("without it: %v", err)
			}
			if got, err := m.Fields(t.Context(), "c", "total"); err != nil || got != tt.want {
				t.Errorf("document: got %s and %v, want %s", got, err, tt.want)
			}
		})
	}
}

// keyedTogether has sessions side by side change one document.
func keyedTogether(t *testing.T, fresh func(t *testing.T) ReadModel) {
	m := fresh(t)
	const aggregates, events = 6, 5
	done := make(chan error, aggregates)
	for a := range aggregates {
		go func() { done <- writeEach(t.Context(), m, fmt.Sprintf("a-%d", a), events) }()
	}
	for range aggregates {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	text, err := m.Fields(t.Context(), "c", "total")
	var fields struct {
		Events int `bson:"events"`
	}
	if err == nil {
		err = bson.UnmarshalExtJSON([]byte(text[:len(`{"events":30}`)]), false, &fields)
	}
	if err != nil || fields.Events != aggregates*events {
		t.Errorf("document: got %s and %v, want %d events", text, err, aggregates*events)
	}
}

func writeEach(ctx context.Context, m ReadModel, aggregate string, events int64) error {
	for n := range events {
		for {
			_, err := m.Write(ctx, keyedCounts(aggregate, n+1))
			if err == nil {
				break
			}
			if _, rejected := errors.AsType[*delivery.RejectedError](err); rejected || ctx.Err() != nil {
				return err
			}
		}
	}
	return nil
}
