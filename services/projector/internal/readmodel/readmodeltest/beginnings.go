package readmodeltest

import (
	"errors"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// beginningsSuite is about events from before the first that was applied of an
// aggregate: they are no repeats.
func beginningsSuite(t *testing.T, fresh func(t *testing.T) ReadModel) {
	resent := func(w projection.Write) projection.Write {
		w.Event = new(*w.Event)
		w.Event.Resend = contract.Resend{ID: "again"}
		return w
	}
	keyed := func(n int64) projection.Write {
		w := count("c", "a", n)
		w.Keyed = true
		return w
	}
	whole := count("c", "a", 4)
	whole.Whole = true
	unnumbered := func(n int64) projection.Write {
		w := count("c", "a", n)
		w.Event = new(*w.Event)
		w.Event.Version, w.Event.Sequence = contract.Version{}, contract.Sequence(w.Event.Position)
		return w
	}
	deciding := func(n int64) projection.Write {
		w := count("c", "a", n)
		done := w
		w.Update, w.Complete = nil, func(document bson.Raw) (projection.Write, error) {
			made := done
			if n < 4 && document == nil {
				made.Update, made.Kept = nil, true
			}
			return made, nil
		}
		return w
	}
	removed := count("c", "a", 4)
	removed.Update, removed.Delete = nil, true
	tests := []struct {
		name   string
		before []projection.Write
		then   projection.Write
		want   delivery.Outcome // Unknown is a rejection
	}{
		{"a live one", counts(5, 6), count("c", "a", 4), delivery.Unknown},
		{"a live one among coalesced ones", counts(5, 6, 7), count("c", "a", 6), repeated},
		{"the first itself", counts(5, 6), count("c", "a", 5), repeated},
		{"a resent one", counts(5, 6), resent(count("c", "a", 4)), repeated},
		{"of a shared document", []projection.Write{keyed(5), keyed(6)}, keyed(4), delivery.Unknown},
		{"of a shared document, resent", []projection.Write{keyed(5), keyed(6)}, resent(keyed(4)), repeated},
		{"the first of a shared document", []projection.Write{keyed(5), keyed(6)}, keyed(5), repeated},
		{"one of which later ones leave nothing", counts(5, 6), whole, repeated},
		{"events without versions", []projection.Write{unnumbered(5)}, unnumbered(4), repeated},
		{"one that made no document when it came", []projection.Write{deciding(3), deciding(4)}, deciding(3), repeated},
		{"one that would have made one", []projection.Write{deciding(5)}, deciding(4), delivery.Unknown},
		{"a deletion of what is not there", counts(5), removed, repeated},
		{"behind a deletion", append(counts(2), removal()), count("c", "a", 1), repeated},
		{"of what is begun anew after a deletion", append(append(counts(2), removal()), counts(4)...), count("c", "a", 1), repeated},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := fresh(t)
			for i := range tt.before {
				if _, err := m.Write(t.Context(), tt.before[i:i+1]); err != nil {
					t.Fatal(err)
				}
			}
			shown, _ := m.Fields(t.Context(), "c", "a")
			got, err := m.Write(t.Context(), []projection.Write{tt.then})
			_, rejected := errors.AsType[*delivery.RejectedError](err)
			if rejected != (tt.want == delivery.Unknown) || !rejected && (err != nil || !slices.Equal(got, []delivery.Outcome{tt.want})) {
				t.Errorf("got %v and %v, want %v", got, err, tt.want)
			}
			if after, err := m.Fields(t.Context(), "c", "a"); err != nil || after != shown {
				t.Errorf("document: got %s and %v, want it as it was, %s", after, err, shown)
			}
		})
	}
}
