package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
)

// sourcesTrusted is for how long a process goes by what it has read of continuations.
const sourcesTrusted = 10 * time.Second

// OtherSource is how the reason of a halt begins that is for an event of another
// source than what is applied.
const OtherSource = "the event is of another source"

// Continuation is an operator's declaration that the events of one source continue those
// of another: their sequences have one order, and two events with the same sequence are
// the same change. It is a document of applied_positions.
type Continuation struct {
	Key  continuationKey `bson:"_id" json:"-"`
	From string          `bson:"from" json:"from"`
	To   string          `bson:"to" json:"to"`
	By   string          `bson:"by" json:"by"`
	Why  string          `bson:"why" json:"why"`
	At   time.Time       `bson:"at" json:"at"`
}

// continuationKey is in a range of its own.
type continuationKey struct {
	Note string `bson:"note"` // notedContinuation
	To   string `bson:"to"`
	From string `bson:"from"`
}

const notedContinuation = "continuation"

// sources knows which sources' events go on from those of which others. They are
// looked up when an event meets a position of another source, and not before: what
// has one source alone costs nothing. The nil sources knows of none.
type sources struct {
	notes *mongo.Collection

	mu   sync.Mutex
	all  []Continuation // guarded by mu
	asOf time.Time      // guarded by mu
}

// taken are the sources over whose positions an event of a source may be applied: its
// own first, and those that it goes on from, near and far.
func (s *sources) taken(source string) []string {
	if s == nil {
		return []string{source}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.asOf) > sourcesTrusted {
		return []string{source}
	}
	return behind(s.all, source)
}

// behind are a source, and those that it goes on from by what was said, near and far.
func behind(said []Continuation, source string) []string {
	all := []string{source}
	for i := 0; i < len(all); i++ {
		for _, c := range said {
			if c.To == all[i] && !slices.Contains(all, c.From) {
				all = append(all, c.From)
			}
		}
	}
	return all
}

// look reads the continuations.
func (s *sources) look(ctx context.Context) error {
	asked := time.Now()
	all, err := continuations(ctx, s.notes)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all, s.asOf = all, asked
	return nil
}

// place is how far something is: the position of the last event that changed it.
type place struct {
	Sequence contract.Sequence `bson:"sequence"`
	EventID  string            `bson:"eventId"`
	// Source is empty where an older release has applied the event.
	Source string `bson:"source"`
	// First is that of the event it begins with; empty where that is not known.
	First contract.Sequence `bson:"first"`
}

// fits tells whether an event may be compared with a place by its sequence. Behind the
// place goes an event of the same source, or of one that goes on from it; what is not
// behind it is a repeat, too, where the place's source goes on from the event's.
func (s *sources) fits(e *contract.Event, at place) bool {
	if e.Source == "" || at.Source == "" || slices.Contains(s.taken(e.Source), at.Source) {
		return true
	}
	return e.Sequence <= at.Sequence && slices.Contains(s.taken(at.Source), e.Source)
}

// apart says that an event is of another source than a place, which nobody has said
// the one goes on from; empty where it is not. Learned tells that this had to be
// looked up: a guard that was sent before did not have it.
func (s *sources) apart(ctx context.Context, e *contract.Event, at place) (why string, learned bool, err error) {
	if s.fits(e, at) {
		return "", false, nil
	}
	if err := s.look(ctx); err != nil {
		return "", false, err
	}
	if s.fits(e, at) {
		return "", true, nil
	}
	return fmt.Sprintf("%s, %s: what is applied of the aggregate is of %s, up to sequence %s. Two sources have one aggregate id. "+
		"Where the collection was renamed or moved, say so with projector sources continue --from %s --to %s --why TEXT, then run projector parked redrive --all; "+
		"otherwise end what sends it, and discard the event with projector parked discard", OtherSource, e.Source, at.Source, at.Sequence, at.Source, e.Source), false, nil
}

// another tells whether an event is known to be of another source than a place.
func another(e *contract.Event, at place) bool {
	return e.Source != "" && at.Source != "" && e.Source != at.Source
}

// ofSource are conditions that a position, whose source stands in a field, is of a
// source that an event may be applied over; none where the event's is not known.
func (s *sources) ofSource(field string, e *contract.Event) bson.D {
	if e.Source == "" {
		return nil
	}
	known := bson.A{nil} // noted by an older release
	for _, source := range s.taken(e.Source) {
		known = append(known, source)
	}
	return bson.D{{Key: field, Value: bson.D{{Key: "$in", Value: known}}}}
}

// noted is how the source of an event stands beside its sequence.
func noted(e *contract.Event) bson.D {
	if e.Source == "" {
		return nil
	}
	return bson.D{{Key: "source", Value: e.Source}}
}

func continuations(ctx context.Context, notes *mongo.Collection) (all []Continuation, err error) {
	cursor, err := notes.Find(ctx, bson.D{{Key: "_id", Value: bson.D{
		{Key: "$gte", Value: bson.D{{Key: "note", Value: notedContinuation}, {Key: "to", Value: ""}}},
		{Key: "$lt", Value: bson.D{{Key: "note", Value: notedContinuation}, {Key: "to", Value: bson.MaxKey{}}}},
	}}}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
	if err == nil {
		err = cursor.All(ctx, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read in %q which sources continue others: %w", projection.Positions, err)
	}
	return all, nil
}

// Continuations are what operators have said of the sources of the store's group.
func (s *Store) Continuations(ctx context.Context) ([]Continuation, error) {
	return continuations(ctx, s.Writes.sources.notes)
}

// OtherSource is a source of the documents of a version that has none of a given one, and none
// that it continues; empty where there is none, or that is not known.
func (s *Store) OtherSource(ctx context.Context, v *projection.Version, source string) (other string, err error) {
	said, err := s.Continuations(ctx)
	if err != nil {
		return "", err
	}
	own, err := s.sourceIn(ctx, v, bson.D{{Key: "$in", Value: behind(said, source)}})
	if err != nil || own != "" {
		return "", err
	}
	return s.sourceIn(ctx, v, bson.D{{Key: "$gt", Value: ""}})
}

// sourceIn is the source of a document of a version whose source is as wanted; empty where
// there is none.
func (s *Store) sourceIn(ctx context.Context, v *projection.Version, wanted bson.D) (string, error) {
	var found struct {
		Relay place `bson:"_relay"`
	}
	err := s.db.Collection(v.Collection()).FindOne(ctx, bson.D{{Key: bookkeeping + ".source", Value: wanted}}).Decode(&found)
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return "", fmt.Errorf("look for the sources of %q: %w", v.Collection(), err)
	}
	return found.Relay.Source, nil
}

// Continue notes that one source continues another, and tells whether that is new.
// Replicas go by it at the next event that they would halt for, and nobody has to wait.
func (s *Store) Continue(ctx context.Context, c Continuation) (fresh bool, err error) {
	c.Key, c.At = continuationKey{notedContinuation, c.To, c.From}, time.Now()
	result, err := s.Writes.sources.notes.UpdateOne(ctx, bson.D{{Key: "_id", Value: c.Key}}, bson.D{{Key: "$setOnInsert", Value: bson.D{
		{Key: "from", Value: c.From}, {Key: "to", Value: c.To}, {Key: "by", Value: c.By}, {Key: "why", Value: c.Why}, {Key: "at", Value: c.At},
	}}}, options.UpdateOne().SetUpsert(true))
	if err != nil {
		return false, fmt.Errorf("note in %q that %s continues %s: %w", projection.Positions, c.To, c.From, err)
	}
	return result.UpsertedCount > 0, nil
}

// Separate takes back that one source continues another, and tells whether that was
// noted. Replicas go by it within sourcesTrusted.
func (s *Store) Separate(ctx context.Context, from, to string) (was bool, err error) {
	result, err := s.Writes.sources.notes.DeleteOne(ctx, bson.D{{Key: "_id", Value: continuationKey{notedContinuation, to, from}}})
	if err != nil {
		return false, fmt.Errorf("take back in %q that %s continues %s: %w", projection.Positions, to, from, err)
	}
	return result.DeletedCount > 0, nil
}
