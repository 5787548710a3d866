package verify

import (
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// Selection says for which aggregates events are asked: for these, for a number that the
// source draws, or for all.
type Selection struct {
	Aggregates []string
	Sample     int
	All        bool
}

// Source has every event, as the messages that carry them.
type Source interface {
	// Messages calls each with those of a selection, of each aggregate together and in
	// order, and has all that was committed before it was called. It returns how many
	// documents of the source are no events.
	Messages(ctx context.Context, s Selection, each func(contract.Message) error) (unmappable int64, err error)
}

// Documents are the read documents, and beside them a place for recomputed ones.
type Documents interface {
	// Read returns aggregates' own documents, as a majority has them, tombstones among
	// them.
	Read(ctx context.Context, collection string, aggregates []string) (map[string]Document, error)
	// IDs calls each with the ids of documents that readers see, of at most so many that
	// are drawn, or of all where sample is 0.
	IDs(ctx context.Context, collection string, sample int, each func(id bson.RawValue) error) error
	// HaltedAt are the sequences at which those of aggregates are halted that are, and
	// DiscardedOf the ids of their events that were discarded.
	HaltedAt(ctx context.Context, aggregates []string) (map[string]contract.Sequence, error)
	DiscardedOf(ctx context.Context, aggregates []string) (map[string]bool, error)
	// SkippedOf are the ids of events of aggregates that projections have skipped.
	SkippedOf(ctx context.Context, aggregates []string) (map[Skipper][]string, error)

	// Recomputing has a write make a recomputed document of that id.
	Recomputing(w *projection.Write, id string)
	Write(ctx context.Context, writes []projection.Write) ([]delivery.Outcome, error)
	// Recomputed takes recomputed documents away, and returns them.
	Recomputed(ctx context.Context, ids []string) (map[string]Document, error)
	// Replace puts a recomputed document, or none, in the place of an aggregate's, if that
	// is at the position at which it was read.
	Replace(ctx context.Context, collection, aggregate string, read, made *Document) (bool, error)
}

// Skipper is a projection, and an aggregate of which it has skipped events.
type Skipper struct{ Projection, Aggregate string }

// Document is a read document; the zero Document is none.
type Document struct {
	Raw bson.Raw
	// Sequence is its position, and First that of the event with which it began, where
	// that is known.
	Sequence, First contract.Sequence
	Deleted         bool // it is a tombstone
}

// shown tells whether readers see it.
func (d *Document) shown() bool { return d.Raw != nil && !d.Deleted }

// Target is a projection whose documents are compared, in the collection that readers
// see.
type Target struct {
	Projection projection.Projection
	Name       string // as it is declared
	Collection string
	// Beside has its documents left as they are, and not compared: it only says whether
	// the events that are still to come can be applied.
	Beside bool
}

// Config says what is compared.
type Config struct {
	// Run is unique among all runs.
	Run     string
	Targets []Target
	// Wait is how long a document may take to come to where the source is.
	Wait time.Duration
	// Most is after how many differences it ends; 0 for no bound.
	Most int
	// Kept says that the source has nothing that came since it was made.
	Kept bool
	// Partly lets Mend replace, or remove, documents of aggregates of which the source does
	// not have all.
	Partly bool
}

// Summary is what came of a run.
type Summary struct {
	// Aggregates and Events are how many were looked at.
	Aggregates int64 `json:"aggregates"`
	Events     int64 `json:"events"`
	// Documents are how many were compared, of those that there are or should be.
	Documents int64 `json:"documents"`
	// Differences are how many documents were reported, by how they differ.
	Differences map[Difference]int `json:"differences"`
	// MovedOn are documents that have changed since Config.Kept was made: nobody can say.
	MovedOn int `json:"moved_on"`
	// Unmappable are documents of the source that are no events.
	Unmappable int64 `json:"unmappable"`
	// Stopped tells that there were too many differences to go on.
	Stopped bool `json:"stopped,omitempty"`
}

// Count is how many documents were reported.
func (s *Summary) Count() (n int) {
	for _, of := range s.Differences {
		n += of
	}
	return n
}

// Run is one run. It is for one goroutine.
type Run struct {
	config    Config
	source    Source
	documents Documents
	report    func(Verdict) error
	summary   Summary

	seed maphash.Seed
	seen map[uint64]struct{} // aggregates, by their hashes
	// doubted are aggregates to be looked at carefully.
	doubted []string
	waiting map[string]*recheck
}

// recheck is what is known of an aggregate that is looked at again.
type recheck struct {
	until time.Time
	// at are the positions of its documents at the last look.
	at []contract.Sequence
}

// New returns a run that reports what differs.
func New(config Config, source Source, documents Documents, report func(Verdict) error) *Run {
	return &Run{
		config: config, source: source, documents: documents, report: report,
		summary: Summary{Differences: map[Difference]int{}},
		seed:    maphash.MakeSeed(), seen: map[uint64]struct{}{}, waiting: map[string]*recheck{},
	}
}

const (
	// atOnce is how many aggregates are looked at carefully at once.
	atOnce = 100
	// lookAgain is the time between two looks at what may be right a moment later.
	lookAgain = time.Second
)

// errEnough ends a run that has reported enough.
var errEnough = errors.New("there are more differences than are looked for")

// Verify compares what is selected, and reports what differs.
func (r *Run) Verify(ctx context.Context, s Selection) (Summary, error) {
	err := r.compare(ctx, s)
	for err == nil && len(r.waiting) > 0 {
		err = r.again(ctx)
	}
	if errors.Is(err, errEnough) {
		r.summary.Stopped, err = true, nil
	}
	return r.summary, err
}

// compare looks at what is selected once, and at what is doubtful once more.
func (r *Run) compare(ctx context.Context, s Selection) error {
	if len(s.Aggregates) > 0 {
		r.doubted = slices.Compact(slices.Sorted(slices.Values(s.Aggregates)))
		r.summary.Aggregates = int64(len(r.doubted))
		return r.settle(ctx)
	}
	err := r.look(ctx, s, passing, nil, func(aggregate string, verdicts []Verdict) error {
		r.note(aggregate)
		if slices.ContainsFunc(verdicts, func(v Verdict) bool { return v.Difference != Equal }) {
			return r.doubt(ctx, aggregate)
		}
		r.compared(verdicts)
		return nil
	})
	if err != nil {
		return err
	}
	for i := range r.config.Targets {
		if err := r.others(ctx, &r.config.Targets[i], s.Sample); err != nil {
			return err
		}
	}
	return r.settle(ctx)
}

// note counts an aggregate that was not met before.
func (r *Run) note(aggregate string) (fresh bool) {
	key := maphash.String(r.seed, aggregate)
	if _, known := r.seen[key]; known {
		return false
	}
	r.seen[key] = struct{}{}
	r.summary.Aggregates++
	return true
}

// doubt has an aggregate looked at carefully, soon.
func (r *Run) doubt(ctx context.Context, aggregate string) error {
	r.doubted = append(r.doubted, aggregate)
	if len(r.doubted) < atOnce {
		return nil
	}
	return r.settle(ctx)
}

// others doubts documents whose aggregates the source has not shown.
func (r *Run) others(ctx context.Context, t *Target, sample int) error {
	return r.documents.IDs(ctx, t.Collection, sample, func(id bson.RawValue) error {
		aggregate, is := id.StringValueOK()
		if !is {
			return r.tell(Verdict{
				Projection: t.Name, Collection: t.Collection, Document: id.String(), Difference: Extra,
				Reason: "its _id is no aggregate's",
			})
		}
		if r.note(aggregate) {
			return r.doubt(ctx, aggregate)
		}
		return nil
	})
}

// settle looks at what is doubtful. Where as many may differ as are looked for, nothing
// more is taken up before it is known whether they do.
func (r *Run) settle(ctx context.Context) error {
	err := r.settleOnce(ctx)
	for err == nil && r.config.Most > 0 && len(r.waiting) >= r.config.Most {
		err = r.again(ctx)
	}
	return err
}

// again looks at what waits, a moment later.
func (r *Run) again(ctx context.Context) error {
	if err := wait(ctx, lookAgain); err != nil {
		return err
	}
	for id := range r.waiting {
		r.doubted = append(r.doubted, id)
	}
	slices.Sort(r.doubted)
	return r.settleOnce(ctx)
}

// settleOnce looks at what is doubtful carefully, and reports what differs, unless it may
// be right a moment later.
func (r *Run) settleOnce(ctx context.Context) error {
	for len(r.doubted) > 0 {
		some := r.doubted[:min(len(r.doubted), atOnce)]
		r.doubted = r.doubted[len(some):]
		if err := r.carefully(ctx, some, r.conclude); err != nil {
			return err
		}
	}
	return nil
}

// carefully looks at aggregates carefully. A document that differs without the events that
// were discarded may have them, since a rebuild brings them back: it is looked at with them,
// too, and has them if it is right, or only behind, so.
func (r *Run) carefully(ctx context.Context, aggregates []string, judged func(string, []Verdict) error) error {
	without := map[string][]Verdict{}
	whole := map[string][]bool{}
	err := r.look(ctx, Selection{Aggregates: aggregates}, careful, nil, func(aggregate string, verdicts []Verdict) error {
		differ := make([]bool, len(verdicts))
		for i := range verdicts {
			differ[i] = verdicts[i].lacks && verdicts[i].Difference != Equal
		}
		if !slices.Contains(differ, true) {
			return judged(aggregate, verdicts)
		}
		without[aggregate], whole[aggregate] = verdicts, differ
		return nil
	})
	if err != nil || len(without) == 0 {
		return err
	}
	some := slices.Sorted(maps.Keys(without))
	return r.look(ctx, Selection{Aggregates: some}, careful, whole, func(aggregate string, with []Verdict) error {
		verdicts := without[aggregate]
		for i, v := range with {
			if whole[aggregate][i] && (v.Difference == Equal || v.Difference == Behind && verdicts[i].Difference != Behind) {
				v.whole = true
				verdicts[i] = v
			}
		}
		return judged(aggregate, verdicts)
	})
}

// conclude reports what a careful look has found of an aggregate, or has it looked at
// again.
func (r *Run) conclude(aggregate string, verdicts []Verdict) error {
	known := r.waiting[aggregate]
	if known == nil {
		known = &recheck{until: time.Now().Add(r.config.Wait)}
	}
	if slices.ContainsFunc(verdicts, func(v Verdict) bool { return v.waits() }) && time.Now().Before(known.until) {
		known.at = nil
		for i := range verdicts {
			known.at = append(known.at, verdicts[i].Sequence)
		}
		r.waiting[aggregate] = known
		return nil
	}
	delete(r.waiting, aggregate)
	r.compared(verdicts)
	for i, v := range verdicts {
		if v.target.Beside || v.Difference == Equal {
			continue
		}
		if v.Difference == movedOn {
			r.summary.MovedOn++
			continue
		}
		if !v.versioned && v.read.Raw != nil && (known.at == nil || known.at[i] != v.Sequence) {
			v.Difference, v.Fields = Unsettled, nil
		}
		if err := r.tell(v); err != nil {
			return err
		}
	}
	return nil
}

// compared counts documents that are there, or should be.
func (r *Run) compared(verdicts []Verdict) {
	for i := range verdicts {
		v := &verdicts[i]
		if !v.target.Beside && v.Difference != movedOn && (v.read.Raw != nil || v.made.Raw != nil) {
			r.summary.Documents++
		}
	}
}

// tell reports a difference.
func (r *Run) tell(v Verdict) error {
	if r.config.Most > 0 && r.summary.Count() >= r.config.Most {
		return errEnough
	}
	r.summary.Differences[v.Difference]++
	return r.report(v)
}

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
