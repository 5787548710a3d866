package readmodeltest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// kept is the nth event of aggregate a, which leaves its document as it is.
func kept(n int64) projection.Write {
	w := count("c", "a", n)
	w.Update, w.Kept = nil, true
	return w
}

// told are writes of aggregate a that set field told to the names of the fields that
// they find, and keep a document with more than three events.
func told(versions ...int64) []projection.Write {
	writes := make([]projection.Write, len(versions))
	for i, n := range versions {
		done := count("c", "a", n)
		writes[i] = done
		writes[i].Update, writes[i].Complete = nil, func(document bson.Raw) (projection.Write, error) {
			made := done
			if events, _ := document.Lookup("events").AsInt64OK(); events > 3 {
				made.Update, made.Kept = nil, true
				return made, nil
			}
			elements, err := document.Elements()
			if err != nil && document != nil {
				return made, err
			}
			var names []string
			if document == nil {
				names = []string{"none"}
			}
			for _, e := range elements {
				names = append(names, e.Key())
			}
			slices.Sort(names)
			made.Update = slices.Clone(done.Update)
			made.Update[0].Value = bson.D{{Key: "told", Value: strings.Join(names, " ")}}
			return made, nil
		}
	}
	return writes
}

// dependingSuite is about writes that leave a document as it is, and those that depend
// on what it is.
func dependingSuite(t *testing.T, fresh func(t *testing.T) ReadModel) {
	type call struct {
		writes []projection.Write
		want   []delivery.Outcome
	}
	tests := []struct {
		name  string
		calls []call
		want  string // of aggregate a in collection c
	}{
		{
			"what keeps a document makes none",
			[]call{{[]projection.Write{kept(1), kept(2)}, []delivery.Outcome{applied, applied}}},
			"",
		},
		{
			"what keeps a document moves its position, so that what comes late is refused",
			[]call{{counts(1), []delivery.Outcome{applied}}, {[]projection.Write{kept(3)}, []delivery.Outcome{applied}}, {counts(2), []delivery.Outcome{repeated}}},
			`{"events":1}{"last":1}{"seen":[1]}`,
		},
		{
			"what keeps a document stands between what changes it",
			[]call{
				{[]projection.Write{kept(1), count("c", "a", 2), kept(3), count("c", "a", 4), kept(5)}, slices.Repeat([]delivery.Outcome{applied}, 5)},
				{counts(4, 5, 6), []delivery.Outcome{repeated, repeated, applied}},
			},
			`{"events":3}{"last":6}{"seen":[2,4,6]}`,
		},
		{
			"what keeps a document brings back none that is deleted",
			[]call{{append(counts(1, 2), removal(), kept(4)), slices.Repeat([]delivery.Outcome{applied}, 4)}, {[]projection.Write{kept(5)}, []delivery.Outcome{applied}}},
			"deleted",
		},
		{
			"a write sees what those before it have made",
			[]call{{append(counts(1), told(2)...), []delivery.Outcome{applied, applied}}},
			`{"events":2}{"last":1}{"seen":[1,2]}{"told":"events last seen"}`,
		},
		{
			"a write sees no document where there is none",
			[]call{{told(1), []delivery.Outcome{applied}}},
			`{"events":1}{"seen":[1]}{"told":"none"}`,
		},
		{
			"a write sees no document where it is deleted",
			[]call{{append(counts(1, 2), removal()), []delivery.Outcome{applied, applied, applied}}, {told(4), []delivery.Outcome{applied}}},
			`{"events":1}{"seen":[4]}{"told":"none"}`,
		},
		{
			"a write decides by what it sees that nothing changes",
			[]call{
				{slices.Concat(counts(1, 2, 3), told(4, 5, 6)), slices.Repeat([]delivery.Outcome{applied}, 6)},
				{counts(5, 7), []delivery.Outcome{repeated, applied}},
			},
			`{"events":5}{"last":7}{"seen":[3,4,7]}{"told":"events last seen"}`,
		},
		{
			"a write that comes again is no other by what it has made",
			[]call{
				{told(1, 2), []delivery.Outcome{applied, applied}},
				{told(1, 2, 3), []delivery.Outcome{repeated, repeated, applied}},
				{told(1), []delivery.Outcome{repeated}},
			},
			`{"events":3}{"seen":[1,2,3]}{"told":"events seen told"}`,
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
			if got, err := m.Fields(t.Context(), "c", "a"); err != nil || got != tt.want {
				t.Errorf("document: got %s and %v, want %s", got, err, tt.want)
			}
		})
	}
	t.Run("what cannot be made is refused, and nothing after it stored", func(t *testing.T) { t.Parallel(); dependingRejections(t, fresh) })
}

func dependingRejections(t *testing.T, fresh func(t *testing.T) ReadModel) {
	m := fresh(t)
	writes := append(counts(1, 2), told(3)...)
	asked := 0
	writes[2].Complete = func(bson.Raw) (projection.Write, error) {
		asked++
		return projection.Write{}, fmt.Errorf("it takes too much")
	}
	writes = append(writes, count("c", "a", 4))
	_, err := m.Write(t.Context(), writes)
	if rejected, ok := errors.AsType[*delivery.RejectedError](err); !ok || rejected.Index != 2 || rejected.Reason != "it takes too much" {
		t.Fatalf("got %#v, want write 2 rejected for what it says", err)
	}
	// What stands before it goes again, as the handler does it.
	if _, err := m.Write(t.Context(), writes[:2]); err != nil {
		t.Fatalf("without it: %v", err)
	}
	if got, err := m.Fields(t.Context(), "c", "a"); err != nil || got != `{"events":2}{"last":2}{"seen":[1,2]}` {
		t.Errorf("document: got %s and %v, want the two events before it alone", got, err)
	}
	// One that is applied is a repeat, whatever would be made of it now.
	if _, err := m.Write(t.Context(), counts(3)); err != nil {
		t.Fatal(err)
	}
	asked = 0
	if got, err := m.Write(t.Context(), writes[2:3]); err != nil || got[0] != repeated || asked > 0 {
		t.Errorf("when it is applied: got %v and %v, asked %d times; want a repeat, and nothing asked", got, err, asked)
	}
}
