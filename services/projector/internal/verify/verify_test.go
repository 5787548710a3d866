package verify_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/verify"
)

// adds is a projection that adds up what its events say.
type adds struct{}

func (adds) Name() string          { return "sums" }
func (adds) Collections() []string { return []string{"sums"} }
func (adds) Decide(c *projection.Change) ([]projection.Write, error) {
	n, is := c.Data.Document().Lookup("n").AsInt64OK()
	if !is {
		return nil, errors.New("n is missing")
	}
	return []projection.Write{{Projection: "sums", Collection: "sums", ID: c.AggregateID, Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "sum", Value: n}}}}, Event: &c.Event}}, nil
}

// world is a source of events and a read database, both of one aggregate after another.
type world struct {
	t      *testing.T
	events map[string][]contract.Event
	// sums are read documents, by their aggregates, and made those that are recomputed.
	sums, made map[string]sum
	halted     map[string]contract.Sequence
	discarded  map[string]bool
	skipped    map[verify.Skipper][]string
	source     string // of documents, where they say it
	// asked and replacing are called, with how often it was before, when the source is
	// asked, before it answers, and when a document is to be replaced.
	asked, replacing   func(n int)
	nAsked, nReplacing int
	reported           []string
}

type sum struct {
	sum, at int64
	deleted bool
}

func newWorld(t *testing.T) *world {
	return &world{t: t, events: map[string][]contract.Event{}, sums: map[string]sum{}, made: map[string]sum{}, halted: map[string]contract.Sequence{}, asked: func(int) {}, replacing: func(int) {}}
}

func eventOf(aggregate string, n int64, versioned bool, data string) contract.Event {
	e := contract.Event{
		ID: fmt.Sprintf("%s-%d", aggregate, n), Source: "/shop/events", Type: "Added", AggregateID: aggregate, Operation: contract.Insert,
		Position: contract.SnapshotPosition(uint32(n), 1, 1), ContentType: contract.ContentTypeJSON, Data: []byte(data),
	}
	if versioned {
		e.Version = contract.VersionOf(n)
	}
	e.Sequence = contract.SequenceOf(e.Version, e.Position)
	return e
}

// happens has the source have the next event of an aggregate, which adds its number.
func (w *world) happens(aggregate string) {
	n := int64(len(w.events[aggregate]) + 1)
	w.events[aggregate] = append(w.events[aggregate], eventOf(aggregate, n, true, fmt.Sprintf(`{"n":%d}`, n)))
}

// applied has a projector apply an event of an aggregate, unless it is a repeat.
func (w *world) applied(aggregate string, n int64) {
	if at := w.sums[aggregate]; at.at < n {
		w.sums[aggregate] = sum{sum: at.sum + n, at: n}
	}
}

// Messages implements verify.Source.
func (w *world) Messages(_ context.Context, s verify.Selection, each func(contract.Message) error) (int64, error) {
	w.asked(w.nAsked)
	w.nAsked++
	var ids []string
	for id := range w.events {
		if len(s.Aggregates) == 0 || slices.Contains(s.Aggregates, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		for _, e := range w.events[id] {
			m, err := contract.Encode(e, contract.EncodeOptions{})
			if err == nil {
				err = each(m)
			}
			if err != nil {
				return 0, err
			}
		}
	}
	return 0, nil
}

func document(s sum) verify.Document {
	raw, _ := bson.Marshal(bson.D{{Key: "sum", Value: s.sum}})
	return verify.Document{Raw: raw, Sequence: contract.SequenceOf(contract.VersionOf(s.at), ""), Deleted: s.deleted}
}

// Read implements verify.Documents, as all below do.
func (w *world) Read(_ context.Context, _ string, aggregates []string) (map[string]verify.Document, error) {
	read := those(w.sums, aggregates)
	for id, d := range read {
		if w.source != "" {
			d.Raw, _ = bson.Marshal(bson.D{{Key: "sum", Value: w.sums[id].sum}, {Key: "_relay", Value: bson.D{{Key: "source", Value: w.source}}}})
			read[id] = d
		}
	}
	return read, nil
}

func those(of map[string]sum, ids []string) map[string]verify.Document {
	all := map[string]verify.Document{}
	for _, id := range ids {
		if s, there := of[id]; there {
			all[id] = document(s)
		}
	}
	return all
}

func (w *world) IDs(_ context.Context, _ string, _ int, each func(bson.RawValue) error) error {
	for id := range w.sums {
		_, value, err := bson.MarshalValue(id)
		if err == nil {
			err = each(bson.RawValue{Type: bson.TypeString, Value: value})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *world) HaltedAt(context.Context, []string) (map[string]contract.Sequence, error) {
	return w.halted, nil
}

func (w *world) DiscardedOf(context.Context, []string) (map[string]bool, error) {
	return w.discarded, nil
}

func (w *world) SkippedOf(context.Context, []string) (map[verify.Skipper][]string, error) {
	return w.skipped, nil
}

func (w *world) Recomputing(write *projection.Write, id string) { write.ID = id }

func (w *world) Write(_ context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	outcomes := make([]delivery.Outcome, len(writes))
	for i := range writes {
		id, n := writes[i].ID.(string), writes[i].Update[0].Value.(bson.D)[0].Value.(int64)
		if n == 13 {
			return outcomes, &delivery.RejectedError{Index: i, Reason: "13 is refused"}
		}
		w.made[id] = sum{sum: w.made[id].sum + n, at: writes[i].Event.Version.Number}
		outcomes[i] = delivery.Applied
	}
	return outcomes, nil
}

func (w *world) Recomputed(_ context.Context, ids []string) (map[string]verify.Document, error) {
	made := those(w.made, ids)
	for _, id := range ids {
		delete(w.made, id)
	}
	return made, nil
}

func (w *world) Replace(_ context.Context, _, aggregate string, read, made *verify.Document) (bool, error) {
	w.replacing(w.nReplacing)
	w.nReplacing++
	now, there := w.sums[aggregate]
	if there != (read.Raw != nil) || there && document(now).Sequence != read.Sequence {
		return false, nil
	}
	delete(w.sums, aggregate)
	if made.Raw != nil {
		n, _ := bson.Raw(made.Raw).Lookup("sum").AsInt64OK()
		version := int64(0)
		if _, err := fmt.Sscan(strings.TrimLeft(string(made.Sequence), "0"), &version); err != nil {
			w.t.Errorf("the position %q: %v", made.Sequence, err)
		}
		w.sums[aggregate] = sum{sum: n, at: version}
	}
	return true, nil
}

func (w *world) run(config verify.Config) *verify.Run {
	config.Run, config.Targets = "run", []verify.Target{{Projection: adds{}, Name: "sums", Collection: "sums"}}
	return verify.New(config, w, w, func(v verify.Verdict) error {
		w.reported = append(w.reported, fmt.Sprintf("%s %s", v.Aggregate, v.Difference))
		return nil
	})
}

func (w *world) wantReported(want ...string) {
	w.t.Helper()
	slices.Sort(w.reported)
	if !slices.Equal(w.reported, want) {
		w.t.Errorf("reported: got %q, want %q", w.reported, want)
	}
	w.reported = nil
}

var everything = verify.Selection{All: true}

// A document that moves on while the source is asked is compared where it was.
func TestVerify_ADocumentMayMoveOnAtAnyMoment(t *testing.T) {
	t.Parallel()
	for name, selection := range map[string]verify.Selection{"all": everything, "one": {Aggregates: []string{"a"}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for n := range int64(3) {
				w.happens("a")
				w.applied("a", n+1)
			}
			// Events come while it is asked, of which it has not all.
			stale := slices.Clone(w.events["a"])
			w.asked = func(n int) {
				if n > 5 {
					return
				}
				w.events["a"] = slices.Clone(stale)
				next := int64(len(stale) + 1)
				w.applied("a", next)
				stale = append(stale, eventOf("a", next, true, fmt.Sprintf(`{"n":%d}`, next)))
			}
			if _, err := w.run(verify.Config{}).Verify(t.Context(), selection); err != nil {
				t.Fatal(err)
			}
			w.wantReported()
		})
	}
}

// What may be right a moment later is looked at again, for as long as it may take, and
// everything else is not.
func TestVerify_ReportsWhatStaysWrong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, id := range []string{"behind", "comes", "lost", "right", "wrong"} {
			w.happens(id)
			w.happens(id)
			w.applied(id, 1)
			w.applied(id, 2)
		}
		w.happens("behind")
		w.happens("comes")
		delete(w.sums, "lost")
		w.sums["wrong"] = sum{sum: 7, at: 2}
		w.sums["extra"] = sum{sum: 7, at: 2}
		began := time.Now()
		w.asked = func(int) {
			if time.Since(began) >= 5*time.Second {
				w.applied("comes", 3)
			}
		}
		summary, err := w.run(verify.Config{Wait: 20 * time.Second}).Verify(t.Context(), everything)
		if err != nil || summary.Count() != 4 || summary.Aggregates != 6 {
			t.Errorf("got %+v and %v, want 4 differences of 6 aggregates", summary, err)
		}
		w.wantReported("behind behind", "extra extra", "lost lost", "wrong altered")
		if took := time.Since(began); took < 20*time.Second || took > 25*time.Second {
			t.Errorf("it took %s, want the time that a document may take", took)
		}
		summary, err = w.run(verify.Config{Most: 2}).Verify(t.Context(), everything)
		if err != nil || !summary.Stopped || summary.Count() != 2 {
			t.Errorf("bounded: got %+v and %v, want it stopped after 2", summary, err)
		}
	})
}

// Of a lost collection every document differs. As many as are looked for are found, and the
// rest of the source is not read for it.
func TestVerify_TakesUpNoMoreThanMayBeReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for n := range 1000 {
			w.happens(fmt.Sprintf("%04d", n))
		}
		summary, err := w.run(verify.Config{Wait: 20 * time.Second, Most: 200}).Verify(t.Context(), everything)
		if err != nil || !summary.Stopped || summary.Count() != 200 || summary.Aggregates > 400 {
			t.Errorf("got %+v and %v, want it stopped after 200 of some 300 aggregates", summary, err)
		}
		// Those that are only late hold it up, and do not end it.
		w = newWorld(t)
		for n := range 1000 {
			w.happens(fmt.Sprintf("%04d", n))
		}
		began := time.Now()
		w.asked = func(int) {
			if time.Since(began) < 5*time.Second {
				return
			}
			for id := range w.events {
				w.applied(id, 1)
			}
		}
		summary, err = w.run(verify.Config{Wait: 20 * time.Second, Most: 200}).Verify(t.Context(), everything)
		if err != nil || summary.Stopped || summary.Count() != 0 || summary.Documents != 1000 {
			t.Errorf("late: got %+v and %v, want 1000 documents compared, and no difference", summary, err)
		}
	})
}

// An event that cannot be projected ends what is recomputed of its aggregate, and of no
// other; behind the document's position it is no fault of the document.
func TestVerify_AnEventThatCannotBeProjected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"before", "behind", "right", "thirteen"} {
		w.happens(id)
		w.happens(id)
		w.applied(id, 1)
	}
	w.events["before"][0].Data = []byte(`{}`)
	w.events["behind"][1].Data = []byte(`{}`)
	w.applied("right", 2)
	w.events["thirteen"][0].Data = []byte(`{"n":13}`)
	if _, err := w.run(verify.Config{}).Verify(t.Context(), everything); err != nil {
		t.Fatal(err)
	}
	w.wantReported("before failed", "behind behind", "thirteen failed")
	if err := w.run(verify.Config{}).Mend(t.Context(), []string{"before"}); err == nil {
		t.Error("mended what cannot be recomputed")
	}
}

// States are placed where they were read: they are looked at until they agree with the
// document, and nobody can say of one that changes with every look.
func TestVerify_OfStatesWaitsUntilBothAgree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for i, id := range []string{"agrees", "busy", "wrong"} {
			w.events[id] = []contract.Event{eventOf(id, int64(100+i), false, `{"n":5}`)}
			w.sums[id] = sum{sum: 1, at: 1}
		}
		w.asked = func(n int) {
			w.sums["busy"] = sum{sum: 1, at: int64(n + 2)}
			if n == 3 {
				w.sums["agrees"] = sum{sum: 5, at: 2}
			}
		}
		if _, err := w.run(verify.Config{Wait: 10 * time.Second}).Verify(t.Context(), everything); err != nil {
			t.Fatal(err)
		}
		w.wantReported("busy unsettled", "wrong altered")
	})
}

// A document that moves on before it is replaced is looked at again, and events that were
// taken for repeats before are in it in the end.
func TestMend_LosesNothingThatComesMeanwhile(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]sum{"altered": {sum: 99, at: 3}, "raised": {sum: 99, at: 50}, "lowered": {sum: 5, at: 1}, "lost": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for range 3 {
				w.happens("a")
			}
			if wrong.at > 0 {
				w.sums["a"] = wrong
			}
			next := func(int) {
				if n := int64(len(w.events["a"]) + 1); n <= 6 {
					w.happens("a")
					w.applied("a", n)
				}
			}
			w.replacing = next
			if err := w.run(verify.Config{}).Mend(t.Context(), []string{"a"}); err != nil {
				t.Fatal(err)
			}
			w.applied("a", 7)
			n := int64(len(w.events["a"]))
			if got, want := w.sums["a"], (sum{sum: n*(n+1)/2 + 7, at: 7}); got != want {
				t.Errorf("with the next event: got %+v, want %+v", got, want)
			}
			if len(w.reported) == 0 {
				t.Error("nothing is said to be replaced")
			}
		})
	}
}

// What the source does not have all of is not replaced by the rest, unless that is wanted.
func TestMend_OfWhatIsLeftOfAnAggregate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 3 {
		w.happens("begun")
	}
	w.events["begun"] = w.events["begun"][1:]
	w.sums["begun"], w.sums["gone"] = sum{sum: 6, at: 3}, sum{sum: 6, at: 3}
	for _, id := range []string{"begun", "gone"} {
		if err := w.run(verify.Config{}).Mend(t.Context(), []string{id}); !errors.Is(err, verify.ErrPartly) {
			t.Errorf("%s: got %v, want it left", id, err)
		}
	}
	if got, want := fmt.Sprint(w.sums), "map[begun:{6 3 false} gone:{6 3 false}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err := w.run(verify.Config{Partly: true}).Mend(t.Context(), []string{"begun", "gone"}); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(w.sums), "map[begun:{5 3 false}]"; got != want {
		t.Errorf("where it is wanted: got %s, want %s", got, want)
	}
}

// An aggregate that is halted is left to its redrive, unless that is wanted: then it is
// mended up to the event at which it is halted.
func TestMend_StopsWhereAnAggregateIsHalted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 5 {
		w.happens("a")
	}
	w.halted["a"] = w.events["a"][2].Sequence
	if err := w.run(verify.Config{}).Mend(t.Context(), []string{"a"}); !errors.Is(err, verify.ErrHalted) || len(w.sums) > 0 {
		t.Errorf("got %v and %v, want it left", err, w.sums)
	}
	if err := w.run(verify.Config{Partly: true}).Mend(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	if got, want := w.sums["a"], (sum{sum: 3, at: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	w.wantReported("a lost")
}

// What the source makes is not put in the place of a document that may have more, or that
// would be beyond an event which cannot be applied.
func TestMend_LeavesWhatMayBeTheBetterDocument(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		is  error
		has func(*world)
	}{
		"a version is missing":    {verify.ErrPartly, func(w *world) { w.events["a"] = slices.Delete(w.events["a"], 1, 2) }},
		"an event was discarded":  {verify.ErrPartly, func(w *world) { w.discarded = map[string]bool{"a-2": true} }},
		"it is of another source": {verify.ErrPartly, func(w *world) { w.source = "/shop/others" }},
		"a later event cannot be applied": {verify.ErrHalted, func(w *world) {
			w.events["a"] = append(w.events["a"], eventOf("a", 4, true, `{}`))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for range 3 {
				w.happens("a")
			}
			altered := sum{sum: 9, at: 3}
			w.sums["a"] = altered
			tt.has(w)
			if err := w.run(verify.Config{}).Mend(t.Context(), []string{"a"}); !errors.Is(err, tt.is) || w.sums["a"] != altered {
				t.Errorf("got %v and %+v, want it left", err, w.sums["a"])
			}
			if err := w.run(verify.Config{Partly: true}).Mend(t.Context(), []string{"a"}); err != nil || w.sums["a"] == altered {
				t.Errorf("where it is wanted: got %v and %+v, want it replaced", err, w.sums["a"])
			}
		})
	}
}

// A document may have what was discarded, since a rebuild brings it back, or be without it. It
// is what it is most like, and is brought on so.
func TestVerify_ADocumentHasWhatWasDiscardedOrNot(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		read     sum
		reported []string
		partly   bool // it may be the better document
		mended   int64
	}{
		"with it":            {sum{sum: 6, at: 3}, nil, false, 6},
		"without it":         {sum{sum: 4, at: 3}, nil, false, 4},
		"with it, behind":    {sum{sum: 3, at: 2}, []string{"a behind"}, false, 6},
		"without it, behind": {sum{sum: 1, at: 1}, []string{"a behind"}, true, 4},
		"neither":            {sum{sum: 7, at: 3}, []string{"a altered"}, true, 4},
		"only the discarded": {sum{sum: 2, at: 2}, []string{"a altered"}, true, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for range 3 {
				w.happens("a")
			}
			w.discarded = map[string]bool{"a-2": true}
			w.sums["a"] = tt.read
			if _, err := w.run(verify.Config{}).Verify(t.Context(), verify.Selection{Aggregates: []string{"a"}}); err != nil {
				t.Fatal(err)
			}
			w.wantReported(tt.reported...)
			if err := w.run(verify.Config{}).Mend(t.Context(), []string{"a"}); tt.partly != errors.Is(err, verify.ErrPartly) {
				t.Errorf("got %v, want what may be the better document left: %t", err, tt.partly)
			}
			if err := w.run(verify.Config{Partly: true}).Mend(t.Context(), []string{"a"}); err != nil || w.sums["a"] != (sum{sum: tt.mended, at: 3}) {
				t.Errorf("mended: got %+v and %v, want %d", w.sums["a"], err, tt.mended)
			}
		})
	}
}
