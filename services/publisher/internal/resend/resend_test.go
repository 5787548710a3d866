package resend_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/resend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// event is one committed event, at its time.
type event struct {
	Aggregate string
	Version   int64
	At        uint32
}

func (e event) change() relay.Change {
	raw, _ := json.Marshal(e)
	return relay.Change{Raw: raw, Token: fmt.Append(nil, e.Aggregate, "/", e.Version), Position: contract.StreamPosition(1, e.At, "82")}
}

// mostBytes is more than the changes of most tests take.
const mostBytes = 16 << 20

// mapper reads what change has written. What is of no aggregate is none of ours.
type mapper struct{}

func (mapper) Map(c relay.Change) (contract.Event, bool, error) {
	var e event
	if err := json.Unmarshal(c.Raw, &e); err != nil {
		return contract.Event{}, false, err
	}
	return contract.Event{AggregateID: e.Aggregate, Version: contract.VersionOf(e.Version)}, !strings.HasPrefix(e.Aggregate, "other"), nil
}

// world is a source: its events, what of them the stream has shown, and the state
// database with one resend.
type world struct {
	mu      sync.Mutex
	now     uint32
	log     []event // guarded by mu: in the order of commits
	streams int     // guarded by mu: of them were read by the stream
	noted   uint32  // guarded by mu: up to which time the stream has said that there is no more
	// The stream shows nothing behind so many, but that it looks, where that is to come.
	held    int  // guarded by mu; negative is never
	looking bool // guarded by mu
	moved   chan struct{}

	record resend.Record // guarded by mu
	fail   error         // guarded by mu: of the store
	// reading is called in the middle of reading a chunk: before and after its snapshot.
	reading func()
	chunk   int
	// selects says which events are resent; nil is all.
	selects func(event) bool
	// lag is how much less than the stream has shown the source says and reads, unless
	// it is asked for more.
	lag uint32
}

func newWorld() *world {
	return &world{
		moved: make(chan struct{}, 1), reading: func() {}, chunk: 3, held: -1,
		record: resend.Record{ID: "r", State: resend.Running, Parts: make([]resend.Part, 1)},
	}
}

func (w *world) commit(aggregate string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	version := int64(1)
	for _, e := range w.log {
		if e.Aggregate == aggregate {
			version++
		}
	}
	w.now++
	w.log = append(w.log, event{aggregate, version, w.now})
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

// Read implements relay.Source: the stream.
func (w *world) Read(ctx context.Context) (relay.Batch, error) {
	for {
		w.mu.Lock()
		switch {
		case w.streams == w.held && w.looking:
			w.looking = false
			idle := w.log[w.streams-1].change()
			w.mu.Unlock()
			return relay.Batch{Idle: relay.Point{Token: idle.Token, Position: idle.Position}}, nil
		case w.streams == w.held:
		case w.streams < len(w.log):
			w.streams++
			change := w.log[w.streams-1].change()
			w.mu.Unlock()
			return relay.Batch{Changes: []relay.Change{change}}, nil
		case w.noted < w.now:
			w.now++ // the source notes that it is there
			w.noted = w.now
			idle := relay.Point{Token: fmt.Append(nil, w.noted), Position: contract.StreamPosition(1, w.noted, "82")}
			w.mu.Unlock()
			return relay.Batch{Idle: idle}, nil
		}
		w.mu.Unlock()
		select {
		case <-w.moved:
		case <-ctx.Done():
			return relay.Batch{}, context.Cause(ctx)
		}
	}
}

func (w *world) Take(_ context.Context, part int, term int64) (resend.Record, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &w.record.Parts[part]
	if w.fail != nil {
		return resend.Record{}, w.fail
	}
	if w.record.State != resend.Running || p.Done || p.Term > term {
		return resend.Record{}, resend.ErrNone
	}
	p.Term = term
	taken := w.record
	taken.Parts = slices.Clone(taken.Parts)
	return taken, nil
}

func (w *world) Save(_ context.Context, _ string, part int, p resend.Part) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.record.Parts[part].Term != p.Term {
		return resend.ErrSuperseded
	}
	w.record.Parts[part] = p
	return nil
}

func (w *world) part() resend.Part {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.record.Parts[0]
}

// reader reads a world's events by aggregate and version.
type reader struct {
	*world
	behind string
	from   uint32
	asOf   uint32
	open   int
	ended  bool // the last chunk was not full
}

var errEnd = errors.New("the end")

func (w *world) open(_ *resend.Record, behind []byte) (resend.Reader, error) {
	return &reader{world: w, behind: string(behind)}, nil
}

func key(e event) string { return fmt.Sprintf("%s/%04d", e.Aggregate, e.Version) }

func (r *reader) From(at checkpoint.ClusterTime) { r.from = at.Increment }

func (r *reader) Open() int { return r.open }

func (r *reader) AsOf() checkpoint.ClusterTime {
	return checkpoint.ClusterTime{Seconds: 1, Increment: r.asOf}
}

func (r *reader) Read(context.Context) (relay.Batch, error) {
	r.reading()
	r.mu.Lock()
	all, shown := slices.Clone(r.log), max(r.from, r.saysNow())
	r.asOf = shown
	r.mu.Unlock()
	all = slices.DeleteFunc(all, func(e event) bool { return e.At >= shown })
	r.reading()
	slices.SortFunc(all, func(a, b event) int { return cmp.Compare(key(a), key(b)) })
	all = slices.DeleteFunc(all, func(e event) bool {
		return key(e) <= r.behind || r.selects != nil && !r.selects(e)
	})
	if len(all) == 0 || r.ended {
		return relay.Batch{}, errEnd
	}
	r.open, r.ended = 0, len(all) < r.chunk
	if len(all) >= r.chunk {
		all = all[:r.chunk]
		for _, e := range all {
			if e.Aggregate == all[len(all)-1].Aggregate {
				r.open++
			}
		}
	}
	r.behind = key(all[len(all)-1])
	var batch relay.Batch
	for _, e := range all {
		change := e.change()
		change.Token = []byte(key(e))
		batch.Changes = append(batch.Changes, change)
	}
	return batch, nil
}

// saysNow is a time behind all that the source says it has. mu must be held.
func (w *world) saysNow() uint32 { return max(w.now+1, w.lag) - w.lag }

func (w *world) deps() resend.Deps {
	return resend.Deps{
		Store: w, Open: w.open, Log: zerolog.Nop(),
		Ended: func(err error) bool { return errors.Is(err, errEnd) },
		Moved: func(context.Context, *resend.Record) (string, error) { return "", nil },
		Quiet: w.quiet,
		Now: func(context.Context) (checkpoint.ClusterTime, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return checkpoint.ClusterTime{Seconds: 1, Increment: w.saysNow()}, nil
		},
	}
}

// handed is what the relay got, in its order.
type handed struct {
	event
	resent bool
	of     string
}

// run reads beside a resend in a term until done says so, or the world stands still,
// and finishes whatever comes at once, as accepted.
func (w *world) run(t *testing.T, term int64, done func([]handed) bool) []handed {
	return w.runWith(t, term, w.deps(), done)
}

func (w *world) runWith(t *testing.T, term int64, deps resend.Deps, done func([]handed) bool) []handed {
	return w.runWithin(t, term, deps, mostBytes, done)
}

// runWithin is runWith where so many bytes of changes are kept.
func (w *world) runWithin(t *testing.T, term int64, deps resend.Deps, bytes int, done func([]handed) bool) []handed {
	ctx, stop := context.WithCancel(t.Context())
	from := contract.Position("")
	if w.streams > 0 {
		from = w.log[w.streams-1].change().Position
	}
	both := resend.NewBeside(w, from, mapper{}, bytes)
	var running sync.WaitGroup
	running.Go(func() { resend.NewRunner(both, 0, term, deps).Run(ctx) })
	defer running.Wait()
	defer stop()
	var all []handed
	for !done(all) {
		reading, cancel := context.WithTimeout(ctx, 10*time.Second)
		batch, err := both.Read(reading)
		cancel()
		if err != nil {
			return all
		}
		for _, change := range batch.Changes {
			var e event
			_ = json.Unmarshal(change.Raw, &e)
			h := handed{event: e, resent: change.Resent != nil}
			if h.resent {
				h.of = change.Resent.ID
				change.Resent.Finished(relay.Accepted, e.Aggregate, "")
			}
			all = append(all, h)
		}
	}
	return all
}

func never([]handed) bool { return false }

// rebuilt is up to which version a receiver has each aggregate that begins with what
// is resent, and takes one version after the other; or what it misses.
func rebuilt(all []handed) (map[string]int64, error) {
	reached := map[string]int64{}
	for _, h := range all {
		if !h.resent && reached[h.Aggregate] == 0 {
			continue
		}
		switch next := reached[h.Aggregate] + 1; {
		case h.Version == next:
			reached[h.Aggregate] = next
		case h.Version > next && h.resent:
			return nil, fmt.Errorf("%s is resent, and version %d is not", key(h.event), next)
		}
	}
	return reached, nil
}

// play is what is committed, and when, and where leaders end.
type play struct {
	chunk     int
	lag       uint32
	before    []string
	meanwhile [][]string // by half of a read
	leaders   []int      // after so many changes
	unsaved   int        // by how many of them checkpoints are behind
}

func drawPlay(r *rapid.T) play {
	some := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "other"}), 0, 4)
	return play{
		chunk:     rapid.IntRange(1, 5).Draw(r, "chunk"),
		lag:       rapid.Uint32Range(0, 3).Draw(r, "lag"),
		before:    append([]string{"a", "a", "b", "c"}, some.Draw(r, "before")...),
		meanwhile: rapid.SliceOfN(some, 0, 12).Draw(r, "meanwhile"),
		unsaved:   rapid.IntRange(0, 3).Draw(r, "unsaved"),
		leaders:   append(rapid.SliceOfN(rapid.IntRange(1, 12), 0, 3).Draw(r, "leaders"), 1000),
	}
}

// run returns what relays got, and what was committed.
func (p play) run(t *testing.T) ([]handed, *world) {
	w := newWorld()
	w.chunk, w.lag = p.chunk, p.lag
	for _, aggregate := range p.before {
		w.commit(aggregate)
	}
	w.reading = func() {
		if len(p.meanwhile) > 0 {
			for _, aggregate := range p.meanwhile[0] {
				w.commit(aggregate)
			}
			p.meanwhile = p.meanwhile[1:]
		}
		time.Sleep(time.Second) //nolint:forbidigo // in a bubble; the stream goes on meanwhile
	}
	var all []handed
	for term, most := range p.leaders {
		all = append(all, w.run(t, int64(term), func(h []handed) bool { return len(h) >= most })...)
		w.streams = max(w.streams-p.unsaved, 0)
	}
	w.commit("a")
	return append(all, w.run(t, 9, never)...), w
}

// Of what is committed around the reading of a chunk, nothing goes along that was not
// selected, unless it is later than all that the chunk has; and nothing out of its order.
func TestResend_WhatWasNotSelectedGoesAlongOnlyBehindWhatWas(t *testing.T) {
	t.Parallel()
	// The versions of a that are resent, of which the even ones are selected.
	versions := func(t *testing.T, w *world, deps resend.Deps) (resent []int64) {
		w.selects = func(e event) bool { return e.Version%2 == 0 }
		w.commit("a")
		w.commit("a")
		for _, h := range w.runWith(t, 1, deps, never) {
			if h.resent {
				resent = append(resent, h.Version)
			}
		}
		return resent
	}
	t.Run("while the source's time is asked for", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			deps := w.deps()
			now, asked := deps.Now, 0
			deps.Now = func(ctx context.Context) (checkpoint.ClusterTime, error) {
				if asked++; asked == 1 {
					w.commit("a")
					time.Sleep(time.Second) //nolint:forbidigo // in a bubble; the stream hands it on
				}
				return now(ctx)
			}
			if got := versions(t, w, deps); !slices.Equal(got, []int64{2}) {
				t.Errorf("resent are versions %v, want the one that was selected", got)
			}
		})
	})
	t.Run("before the snapshot", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			halves := 0
			w.reading = func() {
				if halves++; halves == 1 {
					w.commit("a")
					w.commit("a")
				}
				time.Sleep(time.Second) //nolint:forbidigo // in a bubble; the stream hands them on
			}
			if got := versions(t, w, w.deps()); !slices.Equal(got, []int64{2, 4}) {
				t.Errorf("resent are versions %v, want those that were selected, in their order", got)
			}
		})
	})
}

// Whatever is committed while chunks are read, however far the stream is, and wherever
// leaders end, who begins anew from what is resent misses nothing.
func TestResend_WhoeverBeginsAnewMissesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		p := drawPlay(r)
		var all []handed
		var w *world
		synctest.Test(t, func(t *testing.T) { all, w = p.run(t) })
		if !w.part().Done {
			r.Fatalf("the resend has not ended: %+v, %v", w.part(), all)
		}
		reached, err := rebuilt(all)
		if err != nil {
			r.Fatalf("%v, of %v", err, all)
		}
		if ahead := overtaken(all); ahead != "" {
			r.Fatalf("%s is resent before it came, of %v", ahead, all)
		}
		for _, e := range w.log {
			if e.Aggregate != "other" && reached[e.Aggregate] < e.Version && anyResent(all, e.Aggregate) {
				r.Fatalf("%s is missing, of %v", key(e), all)
			}
		}
	})
}

// overtaken is what is resent before the stream has handed it on; empty for nothing.
func overtaken(all []handed) string {
	came := map[string]bool{}
	for _, h := range all {
		if h.resent && !came[key(h.event)] {
			return key(h.event)
		}
		came[key(h.event)] = true
	}
	return ""
}

// anyResent reports whether something of an aggregate was: all of it is live where its
// first event came when its place was passed.
func anyResent(all []handed, aggregate string) bool {
	return slices.ContainsFunc(all, func(h handed) bool { return h.resent && h.Aggregate == aggregate })
}

// A source, a state database or a chunk that does not answer holds up nothing live.
func TestResend_TheStreamGoesOnWhateverTheResendMeets(t *testing.T) {
	t.Parallel()
	for name, meet := range map[string]func(*world){
		"the state database": func(w *world) { w.fail = errors.New("not authorized") },
		"the source":         func(w *world) { w.reading = func() { time.Sleep(time.Hour) } }, //nolint:forbidigo // in a bubble
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				meet(w)
				for range 50 {
					w.commit("a")
				}
				began, took := time.Now(), time.Duration(0)
				all := w.run(t, 1, func(h []handed) bool { took = time.Since(began); return len(h) == 50 })
				if len(all) != 50 || took > 0 {
					t.Errorf("%d changes were handed on within %s, want 50 at once", len(all), took)
				}
			})
		})
	}
}

// More passes while a chunk is read than is kept: it is read again.
func TestResend_AChunkIsReadAgainWhereTooMuchHasPassed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.commit("a")
		reads := 0
		w.reading = func() {
			if reads++; reads == 2 { // behind the first snapshot
				for range resend.MostKept + 1 {
					w.now++
					w.log = append(w.log, event{"a", int64(len(w.log) + 1), w.now})
				}
				w.moved <- struct{}{}
			}
			time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		}
		all := w.run(t, 1, func([]handed) bool { return w.part().Read > 0 })
		resent := slices.DeleteFunc(all, func(h handed) bool { return !h.resent })
		if len(resent) < w.chunk || reads < 4 {
			t.Errorf("resent is %v after %d halves of chunks, want it read again, and full", resent, reads)
		}
	})
}

// A resend that never keeps up with the stream says so, until it does.
func TestResend_SaysThatItsChunksAreReadInVain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.commit("a")
		reads, said := 0, 0
		w.reading = func() {
			if reads++; reads%2 == 0 && reads <= 6 { // behind the first snapshot of three chunks
				for range resend.MostKept + 1 {
					w.now++
					w.log = append(w.log, event{"a", int64(len(w.log) + 1), w.now})
				}
				w.moved <- struct{}{}
			}
			said = max(said, w.part().Overrun)
			time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		}
		w.run(t, 1, func([]handed) bool { return w.part().Read > 0 })
		if said < 2 || w.part().Overrun != 0 {
			t.Errorf("it said %d in a row at most and then %d, want at least 2, and 0 after a chunk", said, w.part().Overrun)
		}
	})
}

// A resend that cannot be opened, or read, says why until it can.
func TestResend_SaysWhyItCannotGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.commit("a")
		deps, said := w.deps(), []string(nil)
		note := func() { said = append(said, w.part().Stuck) }
		deps.Open = func(r *resend.Record, behind []byte) (resend.Reader, error) {
			if note(); len(said) == 1 {
				return nil, errors.New("of other settings")
			}
			opened, err := w.open(r, behind)
			return &failing{opened, note, 2}, err
		}
		w.runWith(t, 1, deps, func([]handed) bool { return w.part().Read > 0 })
		said = append(said[:5], w.part().Stuck)
		stuck := "read a chunk of resend r: not to be read"
		if want := []string{"", "open resend r: of other settings", "open resend r: of other settings", stuck, stuck, ""}; !slices.Equal(said, want) {
			t.Errorf("it says %q, want %q", said, want)
		}
	})
}

// failing is a reader that fails so many times.
type failing struct {
	resend.Reader
	note  func()
	times int
}

func (f *failing) Read(ctx context.Context) (relay.Batch, error) {
	f.note()
	if f.times--; f.times >= 0 {
		return relay.Batch{}, errors.New("not to be read")
	}
	return f.Reader.Read(ctx)
}

// TestResend_OneThatIsCancelledIsNotReadAnyLonger has the source read for ever for the first
// one, which is cancelled, and another one requested.
func TestResend_OneThatIsCancelledIsNotReadAnyLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.commit("a")
		deps := w.deps()
		deps.Open = func(r *resend.Record, behind []byte) (resend.Reader, error) {
			opened, err := w.open(r, behind)
			if r.ID == "r" {
				return silent{opened}, err
			}
			return opened, err
		}
		time.AfterFunc(5*time.Second, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.record = resend.Record{ID: "next", State: resend.Running, Parts: make([]resend.Part, 1)}
		})
		all := w.runWith(t, 1, deps, func(all []handed) bool { return len(all) == 2 })
		if want := []handed{{w.log[0], false, ""}, {w.log[0], true, "next"}}; !slices.Equal(all, want) {
			t.Errorf("handed on are %v, want %v", all, want)
		}
	})
}

// silent is a reader that gets no answer.
type silent struct{ resend.Reader }

func (silent) Read(ctx context.Context) (relay.Batch, error) {
	<-ctx.Done()
	return relay.Batch{}, ctx.Err()
}

// What passes while a chunk is read is kept as far as there is room for its bytes.
func TestResend_KeepsNoMoreBytesThanItMay(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int]int{mostBytes: 0, 1: 2} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.commit("a")
			reads, said := 0, 0
			w.reading = func() {
				said = max(said, w.part().Overrun)
				if reads++; reads%2 == 0 && reads <= 4 { // behind the snapshots of two chunks
					w.now++
					w.log = append(w.log, event{"a", int64(len(w.log) + 1), w.now})
					w.moved <- struct{}{}
				}
				time.Sleep(time.Second) //nolint:forbidigo // in a bubble
			}
			w.runWithin(t, 1, w.deps(), bytes, func([]handed) bool { return w.part().Read > 0 })
			if said != want {
				t.Errorf("with %d bytes to keep, %d chunks in a row were read in vain, want %d", bytes, said, want)
			}
		})
	}
}

// A chunk follows another at the rate that is asked for.
func TestResend_ARateIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.record.Rate = 2
		for range 12 {
			w.commit("a")
		}
		began := time.Now()
		w.run(t, 1, func([]handed) bool { return w.part().Read >= 9 })
		if took := time.Since(began); took < 3*time.Second || took > 5*time.Second {
			t.Errorf("9 documents at 2 a second, 3 at a time, took %s, want 3 s", took)
		}
	})
}

// empty reads nothing, and says that this is no end.
type empty struct{ reads int }

func (*empty) From(checkpoint.ClusterTime)  {}
func (*empty) Open() int                    { return 0 }
func (*empty) AsOf() checkpoint.ClusterTime { return checkpoint.ClusterTime{} }

func (e *empty) Read(context.Context) (relay.Batch, error) {
	e.reads++
	return relay.Batch{}, nil
}

// A chunk without a document is neither an end nor a place: it is read again.
func TestResend_AChunkWithoutADocumentIsNoEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, nothing := newWorld(), &empty{}
		deps := w.deps()
		deps.Open = func(*resend.Record, []byte) (resend.Reader, error) { return nothing, nil }
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		resend.NewRunner(resend.NewBeside(w, "", mapper{}, mostBytes), 0, 1, deps).Run(ctx)
		if p := w.part(); p.Done || p.Read != 0 || nothing.reads < 2 {
			t.Errorf("the part is %+v after %d reads, want it read again", p, nothing.reads)
		}
	})
}

// The collection is compared in each term before anything is sent, and at the end.
func TestResend_OneWhoseCollectionIsAnotherEndsShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.commit("a")
		deps := w.deps()
		deps.Moved = func(context.Context, *resend.Record) (string, error) { return "it is another one", nil }
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		resend.NewRunner(resend.NewBeside(w, "", mapper{}, mostBytes), 0, 1, deps).Run(ctx)
		if p := w.part(); !p.Done || p.Read != 0 || p.Short != "it is another one" {
			t.Errorf("the part is %+v, want it ended before anything is read", p)
		}
	})
}

// The collection is compared behind each chunk that is read, too: of one that takes its
// place nothing is sent.
func TestResend_OneWhoseCollectionIsReplacedSendsNothingOfTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for range 12 {
			w.commit("a")
		}
		reads, moved := 0, ""
		w.reading = func() {
			if reads++; reads == 3 {
				moved = "it is another one"
			}
		}
		deps := w.deps()
		deps.Moved = func(context.Context, *resend.Record) (string, error) { return moved, nil }
		all := w.runWith(t, 1, deps, never)
		sent := len(slices.DeleteFunc(all, func(h handed) bool { return !h.resent }))
		if p := w.part(); !p.Done || p.Short != moved || p.Read != 3 || sent != 3 {
			t.Errorf("%d were resent, and the part is %+v, want it ended behind the first chunk", sent, p)
		}
	})
}

// Documents that are not found any more are missing, unless the stream has their removal, they
// are of the collection that they were selected from, and no filter leaves them out.
func TestResend_FewerDocumentsAreAllWhereTheStreamHasRemovals(t *testing.T) {
	t.Parallel()
	const of = "id of the collection"
	for name, tt := range map[string]struct {
		removals   bool
		collection string
		selection  resend.Selection
		short      bool
	}{
		"documents":                     {true, of, resend.Selection{}, false},
		"documents of aggregates":       {true, of, resend.Selection{Aggregates: []string{"a"}}, false},
		"documents of a filter":         {true, of, resend.Selection{Where: "{}"}, true},
		"documents since a time":        {true, of, resend.Selection{Since: time.Unix(1, 0)}, true},
		"documents until a time":        {true, of, resend.Selection{Until: time.Unix(1, 0)}, true},
		"documents of who knows whence": {true, "", resend.Selection{}, true},
		"events, of which none may go":  {false, of, resend.Selection{}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.commit("a")
			w.record.Total, w.record.Collection, w.record.Selection = 2, tt.collection, tt.selection
			deps := w.deps()
			deps.Removals = tt.removals
			w.runWith(t, 1, deps, never)
			if p := w.part(); !p.Done || p.Read != 1 || (p.Short != "") != tt.short {
				t.Errorf("%s: the part is %+v, want it short: %v", name, p, tt.short)
			}
		})
	}
}

// Nothing is saved under an earlier term, and what it does then is nothing.
func TestResend_AnEarlierTermSavesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for range 4 {
			w.commit("a")
		}
		reads := 0
		w.reading = func() {
			if reads++; reads == 2 {
				w.mu.Lock()
				w.record.Parts[0].Term = 7 // of another leader
				w.mu.Unlock()
			}
		}
		w.run(t, 3, never)
		if p := w.part(); p.Place != nil || p.Term != 7 || reads != 2 {
			t.Errorf("the part is %+v after %d halves of chunks, want nothing saved and no more read", p, reads)
		}
	})
}
