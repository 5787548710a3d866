package mongostate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/resend"
)

// Resends are the resends of one whole stream. It implements resend.Store for its
// partitions.
type Resends struct {
	stream  string
	of      int
	records *mongo.Collection

	checkpoints *Checkpoints
}

// Resends returns the resends of a stream that has so many partitions.
func (d *Database) Resends(stream string, partitions int) *Resends {
	return &Resends{stream: stream, of: partitions, records: d.db.Collection(resends), checkpoints: d.Checkpoints()}
}

// resendDocument is a document of resends. Its key is made of stream and number, so
// of two that begin at once one is there first.
type resendDocument struct {
	Key        string                  `bson:"_id"`
	ID         string                  `bson:"resend"`
	Stream     string                  `bson:"stream"`
	Number     int64                   `bson:"number"`
	State      resend.State            `bson:"state"`
	Group      string                  `bson:"group,omitempty"`
	Aggregates []string                `bson:"aggregates,omitempty"`
	Where      string                  `bson:"where,omitempty"`
	Since      time.Time               `bson:"since,omitempty"`
	Until      time.Time               `bson:"until,omitempty"`
	Rate       int                     `bson:"rate"`
	Who        string                  `bson:"who"`
	Why        string                  `bson:"why"`
	BeganAt    time.Time               `bson:"beganAt"`
	EndedAt    time.Time               `bson:"endedAt,omitempty"`
	Total      int64                   `bson:"total"`
	Collection string                  `bson:"collection,omitempty"`
	Partitions int                     `bson:"partitions"`
	Parts      map[string]partDocument `bson:"parts"`
	Actions    []ParkedAction          `bson:"actions,omitempty"`
}

type partDocument struct {
	Place     bson.Raw         `bson:"place,omitempty"`
	Term      int64            `bson:"term"`
	Read      int64            `bson:"read"`
	Sent      int64            `bson:"sent"`
	Passed    int64            `bson:"passed"`
	Failed    int64            `bson:"failed"`
	Failures  []resend.Failure `bson:"failures,omitempty"`
	Awaits    *bson.Timestamp  `bson:"awaits,omitempty"`
	Overrun   int              `bson:"overrun,omitempty"`
	Stuck     string           `bson:"stuck,omitempty"`
	Done      bool             `bson:"done"`
	Short     string           `bson:"short,omitempty"`
	UpdatedAt time.Time        `bson:"updatedAt,omitempty"`
}

func (d *resendDocument) record() resend.Record {
	r := resend.Record{
		ID: d.ID, Stream: d.Stream, Number: d.Number, State: d.State, Group: d.Group, Rate: d.Rate, Who: d.Who, Why: d.Why,
		BeganAt: d.BeganAt.UTC(), Total: d.Total, Collection: d.Collection, Parts: make([]resend.Part, d.Partitions),
		Selection: resend.Selection{Aggregates: d.Aggregates, Where: d.Where},
	}
	for _, at := range []struct {
		to   *time.Time
		from time.Time
	}{{&r.EndedAt, d.EndedAt}, {&r.Selection.Since, d.Since}, {&r.Selection.Until, d.Until}} {
		if !at.from.IsZero() {
			*at.to = at.from.UTC()
		}
	}
	done, end, last := r.State != resend.Beginning, resend.Done, time.Time{}
	for i := range r.Parts {
		p := d.Parts[strconv.Itoa(i)]
		r.Parts[i] = resend.Part{
			Place: p.Place, Term: p.Term, Read: p.Read, Sent: p.Sent, Passed: p.Passed, Failed: p.Failed,
			Failures: p.Failures, Awaits: clusterTime(p.Awaits), Overrun: p.Overrun, Stuck: p.Stuck, Done: p.Done, Short: p.Short, UpdatedAt: p.UpdatedAt,
		}
		done = done && p.Done
		if p.Short != "" {
			end = resend.Incomplete
		}
		if at := p.UpdatedAt.UTC(); at.After(last) {
			last = at
		}
	}
	if done && !r.State.Ended() { // whoever finished the last part has not said so
		r.State, r.EndedAt = end, last
	}
	return r
}

// ErrResending is returned by Begin where an earlier resend has not ended.
var ErrResending = errors.New("another resend of the stream has not ended")

// Begin adds a resend, which the leaders take up. It gives it its number. There is
// one at a time: ErrResending.
//
// Terms that were over when it begins never carry it out. Those of the checkpoints are
// read when it is there already, so that a term which is claimed later finds it.
func (s *Resends) Begin(ctx context.Context, r resend.Record) (resend.Record, error) {
	last, err := s.Latest(ctx)
	switch {
	case err == nil && !last.State.Ended():
		return last, fmt.Errorf("%w: %s, which %q began", ErrResending, last.ID, last.Who)
	case err != nil && !errors.Is(err, resend.ErrNone):
		return r, err
	}
	r.Number, r.State, r.Stream = last.Number+1, resend.Beginning, s.stream
	document := resendDocument{
		Key: fmt.Sprintf("%s/%d", s.stream, r.Number), ID: r.ID, Stream: s.stream, Number: r.Number, State: r.State, Group: r.Group,
		Aggregates: r.Selection.Aggregates, Where: r.Selection.Where, Since: r.Selection.Since, Until: r.Selection.Until,
		Rate: r.Rate, Who: r.Who, Why: r.Why, BeganAt: r.BeganAt, Total: r.Total, Collection: r.Collection, Partitions: s.of, Parts: map[string]partDocument{},
	}
	for i := range s.of {
		document.Parts[strconv.Itoa(i)] = partDocument{}
	}
	_, err = s.records.InsertOne(ctx, document)
	if mongo.IsDuplicateKeyError(err) {
		return r, fmt.Errorf("%w: it was begun at the same time", ErrResending)
	}
	if err != nil {
		return r, fmt.Errorf("begin a resend of stream %q: %w", s.stream, err)
	}
	for i, name := range PartitionNames(s.stream, s.of) {
		kept, err := s.checkpoints.Read(ctx, name)
		if err == nil {
			err = s.Fence(ctx, i, kept.Term)
		}
		if err != nil && !errors.Is(err, ErrNone) {
			return r, fmt.Errorf("begin a resend of stream %q, which is to be cancelled now: %w", s.stream, err)
		}
	}
	if begun, err := s.Decide(ctx, r.ID, []resend.State{resend.Beginning}, resend.Running, r.Who, r.Why); err != nil || !begun {
		return r, cmp.Or(err, fmt.Errorf("resend %s was cancelled at once", r.ID))
	}
	return s.Latest(ctx)
}

// Fence has the resend under way taken and saved by a term and later ones alone, in one
// partition. It is to be called before the term hands anything on.
func (s *Resends) Fence(ctx context.Context, part int, term int64) error {
	_, err := s.records.UpdateMany(ctx, bson.D{
		{Key: "stream", Value: s.stream},
		{Key: "partitions", Value: s.of},
		{Key: "state", Value: bson.D{{Key: "$in", Value: []resend.State{resend.Beginning, resend.Running, resend.Paused}}}},
		{Key: partField(part, "term"), Value: bson.D{{Key: "$lt", Value: term}}},
	}, bson.D{{Key: "$max", Value: bson.D{{Key: partField(part, "term"), Value: term}}}})
	if err != nil {
		return fmt.Errorf("take the resend of stream %q from earlier terms: %w", s.stream, err)
	}
	return nil
}

// Latest returns the stream's last resend, or resend.ErrNone.
func (s *Resends) Latest(ctx context.Context) (resend.Record, error) {
	all, err := s.List(ctx, 1)
	if err == nil && len(all) == 0 {
		err = resend.ErrNone
	}
	if err != nil {
		return resend.Record{}, err
	}
	return all[0], nil
}

// List returns the stream's last resends, at most so many, the latest first; 0 is all.
func (s *Resends) List(ctx context.Context, most int64) ([]resend.Record, error) {
	cursor, err := s.records.Find(ctx, bson.D{{Key: "stream", Value: s.stream}},
		options.Find().SetSort(bson.D{{Key: "number", Value: -1}}).SetLimit(most))
	if err != nil {
		return nil, fmt.Errorf("look for resends of stream %q: %w", s.stream, err)
	}
	var found []resendDocument
	if err := cursor.All(ctx, &found); err != nil {
		return nil, fmt.Errorf("look for resends of stream %q: %w", s.stream, err)
	}
	records := make([]resend.Record, len(found))
	for i := range found {
		records[i] = found[i].record()
	}
	return records, nil
}

// Decide gives a resend that has one of some states another one, and keeps who did
// that and why. It returns false where the resend has none of them any more.
func (s *Resends) Decide(ctx context.Context, id string, from []resend.State, to resend.State, who, why string) (bool, error) {
	now := time.Now().UTC()
	set := bson.D{{Key: "state", Value: to}}
	if to.Ended() {
		set = append(set, bson.E{Key: "endedAt", Value: now})
	}
	result, err := s.records.UpdateOne(ctx,
		bson.D{{Key: "stream", Value: s.stream}, {Key: "resend", Value: id}, {Key: "state", Value: bson.D{{Key: "$in", Value: from}}}},
		bson.D{
			{Key: "$set", Value: set},
			{Key: "$push", Value: bson.D{{Key: "actions", Value: ParkedAction{Action: string(to), By: who, At: now, Note: why}}}},
		})
	if err != nil {
		return false, fmt.Errorf("keep the decision about resend %s: %w", id, err)
	}
	return result.MatchedCount == 1, nil
}

// Find returns a resend, and whether there is a record of it.
func (s *Resends) Find(ctx context.Context, id string) (resend.Record, bool, error) {
	var found resendDocument
	err := s.records.FindOne(ctx, bson.D{{Key: "stream", Value: s.stream}, {Key: "resend", Value: id}}).Decode(&found)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return resend.Record{}, false, nil
	}
	if err != nil {
		return resend.Record{}, false, fmt.Errorf("look for resend %s: %w", id, err)
	}
	return found.record(), true, nil
}

// part is the path of a field of a partition's progress.
func partField(part int, field string) string { return fmt.Sprintf("parts.%d.%s", part, field) }

// Take implements resend.Store.
func (s *Resends) Take(ctx context.Context, part int, term int64) (resend.Record, error) {
	var found resendDocument
	err := s.records.FindOneAndUpdate(ctx, bson.D{
		{Key: "stream", Value: s.stream},
		{Key: "state", Value: resend.Running},
		{Key: "partitions", Value: s.of},
		{Key: partField(part, "done"), Value: false},
		{Key: partField(part, "term"), Value: bson.D{{Key: "$lte", Value: term}}},
	}, bson.D{{Key: "$max", Value: bson.D{{Key: partField(part, "term"), Value: term}}}},
		options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&found)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return resend.Record{}, resend.ErrNone
	}
	if err != nil {
		return resend.Record{}, fmt.Errorf("look for a resend of stream %q: %w", s.stream, err)
	}
	return found.record(), nil
}

// Save implements resend.Store.
func (s *Resends) Save(ctx context.Context, id string, part int, p resend.Part) error {
	whole := bson.D{{Key: "stream", Value: s.stream}, {Key: "resend", Value: id}}
	var awaits *bson.Timestamp
	if !p.Awaits.IsZero() {
		at := timestamp(p.Awaits)
		awaits = &at
	}
	result, err := s.records.UpdateOne(ctx, append(slices.Clone(whole), bson.E{Key: partField(part, "term"), Value: p.Term}),
		bson.D{{Key: "$set", Value: bson.D{{Key: fmt.Sprintf("parts.%d", part), Value: partDocument{
			Place: p.Place, Term: p.Term, Read: p.Read, Sent: p.Sent, Passed: p.Passed, Failed: p.Failed,
			Failures: p.Failures, Awaits: awaits, Overrun: p.Overrun, Stuck: p.Stuck, Done: p.Done, Short: p.Short, UpdatedAt: p.UpdatedAt,
		}}}}})
	if err != nil {
		return fmt.Errorf("save the progress of resend %s: %w", id, err)
	}
	if result.MatchedCount == 0 {
		return fmt.Errorf("save the progress of resend %s: %w", id, resend.ErrSuperseded)
	}
	if !p.Done {
		return nil
	}
	return s.end(ctx, whole, id, p.UpdatedAt)
}

// end gives a resend of which all parts are done its last state: one that is short
// makes the whole incomplete.
func (s *Resends) end(ctx context.Context, whole bson.D, id string, at time.Time) error {
	all := append(slices.Clip(whole), bson.E{Key: "state", Value: bson.D{{Key: "$in", Value: []resend.State{resend.Running, resend.Paused}}}})
	var short bson.A
	for i := range s.of {
		all = append(all, bson.E{Key: partField(i, "done"), Value: true})
		short = append(short, bson.D{{Key: partField(i, "short"), Value: bson.D{{Key: "$exists", Value: true}}}})
	}
	for _, one := range []struct {
		state  resend.State
		filter bson.D
	}{{resend.Incomplete, append(slices.Clip(all), bson.E{Key: "$or", Value: short})}, {resend.Done, all}} {
		_, err := s.records.UpdateOne(ctx, one.filter, bson.D{{Key: "$set", Value: bson.D{{Key: "state", Value: one.state}, {Key: "endedAt", Value: at}}}})
		if err != nil {
			return fmt.Errorf("say that resend %s is %s: %w", id, one.state, err)
		}
	}
	return nil
}
