package witness

import (
	"reflect"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/expect"
	"changerelay/services/e2e/internal/check/readmodel"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/plain"
	"changerelay/services/e2e/internal/harness/source"
)

// lives is a record of one order that is placed and erased, twice, and placed a
// third time.
func lives(t *testing.T, p Projection) *record {
	t.Helper()
	r := newRecord(p)
	for i, what := range []string{orders.Placed, orders.Erased, orders.Placed, orders.Cancelled, orders.Erased, orders.Placed} {
		e := orders.Event{Aggregate: "o", Version: int64(i + 1), Type: what, Data: orders.Data{}}
		raw, err := bson.Marshal(bson.D{
			{Key: "_id", Value: e.ID()}, {Key: "aggregateId", Value: e.Aggregate}, {Key: "version", Value: e.Version}, {Key: "type", Value: e.Type},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.add(cluster.DefaultNames(), source.Stored{Event: e, Document: raw}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestRecord_CountsWhatNothingErases(t *testing.T) {
	t.Parallel()
	claims := readmodel.Model{
		Positions: map[string]validate.Position{"o": {ID: "i", Version: 6}},
		Documents: map[string]map[string]any{"o": {"events": int64(1)}},
	}
	tests := []struct {
		name           string
		projection     Projection
		shadow         int64
		missing, extra int
	}{
		{name: "all are applied", projection: Shadowed, shadow: 6},
		{name: "one was lost before an erasure", projection: Shadowed, shadow: 5, missing: 1},
		{name: "one was applied twice before an erasure", projection: Shadowed, shadow: 7, extra: 1},
		{name: "a document that forgot what it counted", projection: Orders, missing: 5},
		{name: "without anything that counts, the position is all there is", projection: Latest},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := lives(t, tt.projection)
			missing, extra := validate.Counted(r.events, r.counts(claims, map[string]validate.Tally{"o": {Events: tt.shadow}}))
			if missing.Count != tt.missing || extra.Count != tt.extra {
				t.Errorf("got %d missing and %d extra, want %d and %d", missing.Count, extra.Count, tt.missing, tt.extra)
			}
		})
	}
}

func TestRecord_ADocumentBeginsAnewOnceItIsErased(t *testing.T) {
	t.Parallel()
	got := lives(t, Orders).documents()["o"]
	want := map[string]any{"status": "placed", "customer": nil, "channel": nil, "rounds": int64(1), "events": int64(1), "history": []any{orders.Placed}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("document:\ngot  %v\nwant %v", got, want)
	}
}

// What messages do not show, no read model has, and the witness expects neither.
func TestRecord_ExpectsNothingOfWhatIsHidden(t *testing.T) {
	t.Parallel()
	p := Orders
	p.Hidden = expect.Hidden{Dropped: []string{"data.channel"}, Masked: []string{"data.customer"}}
	recorded := func(p Projection, data bson.D) *record {
		r, e := newRecord(p), orders.Event{Aggregate: "o", Version: 1, Type: orders.Placed}
		raw, err := bson.Marshal(bson.D{
			{Key: "_id", Value: e.ID()}, {Key: "aggregateId", Value: e.Aggregate}, {Key: "version", Value: e.Version}, {Key: "type", Value: e.Type}, {Key: "data", Value: data},
		})
		if err != nil {
			t.Fatal(err)
		}
		fields, err := plain.Document(raw)
		if err != nil {
			t.Fatal(err)
		}
		e.Data = fields["data"]
		if err := r.add(cluster.DefaultNames(), source.Stored{Event: e, Document: raw}); err != nil {
			t.Fatal(err)
		}
		return r
	}
	got := recorded(p, bson.D{{Key: "customer", Value: "c"}, {Key: "channel", Value: "web"}})
	want := recorded(Orders, bson.D{{Key: "customer", Value: "***"}})
	if !reflect.DeepEqual(got.owed, want.owed) || !reflect.DeepEqual(got.last, want.last) || !reflect.DeepEqual(got.documents(), want.documents()) {
		t.Errorf("got %v, %v and %v, want %v, %v and %v", got.owed, got.last, got.documents(), want.owed, want.last, want.documents())
	}
}

// A dead letter leaves the document where it is, until a later event is applied; what is
// skipped takes the document along.
func TestRecord_ADeadLetterLeavesItsDocumentWhereItIs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		onError, prices string // one letter for each event: of a price that is a number, or is none
		want            int64  // version
	}{
		{"skip", "nnx", 3}, {"deadletter", "nnn", 3}, {"deadletter", "nnx", 2}, {"deadletter", "nxx", 1}, {"deadletter", "nxn", 3}, {"deadletter", "xx", 0},
	} {
		p := Shadowed
		p.OnError = tt.onError
		r := newRecord(p)
		for i, price := range tt.prices {
			e := orders.Event{Aggregate: "o", Version: int64(i + 1), Type: orders.Added, Data: orders.Data{"price": int64(1)}}
			if price == 'x' {
				e.Data = orders.Data{"price": "dear"}
			}
			raw, err := bson.Marshal(bson.D{
				{Key: "_id", Value: e.ID()}, {Key: "aggregateId", Value: e.Aggregate}, {Key: "version", Value: e.Version}, {Key: "type", Value: e.Type},
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.add(cluster.DefaultNames(), source.Stored{Event: e, Document: raw}); err != nil {
				t.Fatal(err)
			}
		}
		if got := r.places()["o"].Version; got != tt.want {
			t.Errorf("%s, %s: the document is to be at version %d, want %d", tt.onError, tt.prices, got, tt.want)
		}
		if got := r.positions()["o"].Version; got != int64(len(tt.prices)) {
			t.Errorf("%s, %s: other documents are to be at version %d, want %d", tt.onError, tt.prices, got, len(tt.prices))
		}
	}
}
