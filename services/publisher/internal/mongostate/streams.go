package mongostate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/majority"
)

// ErrNoStream is returned where there is no record of a stream, or where it is
// retired and must not be.
var ErrNoStream = errors.New("there is no record of the stream in streams, or it is retired")

// Streams keeps the records of streams.
type Streams struct {
	records *mongo.Collection
}

// Streams returns the records.
func (d *Database) Streams() *Streams { return &Streams{d.db.Collection(streams)} }

type streamDocument struct {
	Stream     string         `bson:"_id"`
	Whole      string         `bson:"stream"`
	Lease      string         `bson:"lease"`
	Partitions int            `bson:"partitions"`
	Retired    bool           `bson:"retired,omitempty"`
	Term       int64          `bson:"term"`
	Confirmed  int64          `bson:"confirmed"`
	Began      beginDocument  `bson:"began"`
	Source     sourceDocument `bson:"source"`
	// Settings are a map: the names of settings hold no dots.
	Settings  checkpoint.Settings `bson:"settings,omitempty"`
	Undecided bool                `bson:"undecided,omitempty"`
	Alone     bool                `bson:"alone,omitempty"`
	Marked    bool                `bson:"marked,omitempty"`
	Marks     int64               `bson:"marks,omitempty"`
	Behind    int64               `bson:"behind,omitempty"`
	Options   string              `bson:"options,omitempty"`
	Stopped   *bson.Timestamp     `bson:"stopped,omitempty"`
	Accepted  *bson.Timestamp     `bson:"accepted,omitempty"`
	DecidedAt time.Time           `bson:"decidedAt,omitempty"`
	Halt      string              `bson:"halt,omitempty"`
}

type beginDocument struct {
	How     string          `bson:"how"`
	Token   bson.Raw        `bson:"token,omitempty"`
	StartAt *bson.Timestamp `bson:"startAt,omitempty"`
	Copy    *copyDocument   `bson:"copy,omitempty"`
	Present int64           `bson:"present"`
	At      time.Time       `bson:"at"`
	By      string          `bson:"by"`
}

type sourceDocument struct {
	Set         string               `bson:"set,omitempty"`
	Cluster     string               `bson:"cluster,omitempty"`
	Collections []collectionDocument `bson:"collections"` // a list: names may hold dots
}

type collectionDocument struct {
	Name string `bson:"name"`
	ID   string `bson:"id"`
}

func (d streamDocument) record() checkpoint.Record {
	return checkpoint.Record{
		Stream: d.Stream, Whole: d.Whole, Lease: d.Lease, Partitions: d.Partitions, Retired: d.Retired,
		Term: d.Term, Confirmed: d.Confirmed, Alone: d.Alone, Marked: d.Marked, Marks: d.Marks, Behind: d.Behind, Options: d.Options, Halt: d.Halt,
		Began: checkpoint.Beginning{
			How: d.Began.How, Present: d.Began.Present, At: d.Began.At.UTC(), By: d.Began.By,
			Place: checkpoint.Place{Token: d.Began.Token, Start: clusterTime(d.Began.StartAt), Copy: d.Began.Copy.copy()},
		},
		Source: d.Source.origin(), Settings: d.Settings, Undecided: d.Undecided,
		Stopped: clusterTime(d.Stopped), Accepted: clusterTime(d.Accepted), DecidedAt: d.DecidedAt.UTC(),
	}
}

func (d sourceDocument) origin() checkpoint.Origin {
	o := checkpoint.Origin{Set: d.Set, Cluster: d.Cluster, Collections: map[string]string{}}
	for _, c := range d.Collections {
		o.Collections[c.Name] = c.ID
	}
	return o
}

func sourceOf(o checkpoint.Origin) sourceDocument {
	d := sourceDocument{Set: o.Set, Cluster: o.Cluster, Collections: []collectionDocument{}}
	for name, id := range o.Collections {
		d.Collections = append(d.Collections, collectionDocument{name, id})
	}
	return d
}

func streamOf(r checkpoint.Record) streamDocument {
	d := streamDocument{
		Stream: r.Stream, Whole: r.Whole, Lease: r.Lease, Partitions: r.Partitions,
		Term: r.Term, Confirmed: r.Confirmed, Alone: r.Alone, Source: sourceOf(r.Source), Settings: r.Settings, Options: r.Options, Undecided: r.Undecided, DecidedAt: r.DecidedAt,
		Began: beginDocument{
			How: r.Began.How, Token: r.Began.Place.Token, Copy: documentOf(r.Began.Place.Copy),
			Present: r.Began.Present, At: r.Began.At, By: r.Began.By,
		},
	}
	if !r.Began.Place.Start.IsZero() {
		at := timestamp(r.Began.Place.Start)
		d.Began.StartAt = &at
	}
	return d
}

// Read returns the record of a stream, retired or not, or ErrNoStream.
func (s *Streams) Read(ctx context.Context, stream string) (checkpoint.Record, error) {
	var found streamDocument
	err := s.records.FindOne(ctx, byStream(stream)).Decode(&found)
	return s.read(found, stream, err)
}

func (s *Streams) read(found streamDocument, stream string, err error) (checkpoint.Record, error) {
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return checkpoint.Record{}, ErrNoStream
	case err != nil:
		return checkpoint.Record{}, fmt.Errorf("read the record of stream %q: %w", stream, err)
	}
	return found.record(), nil
}

// Begun reports whether the ledger says where the stream began, which is entered
// only for streams that have a record.
func (g *Gaps) Begun(ctx context.Context) (bool, error) {
	err := g.entries.FindOne(ctx, append(slices.Clip(g.earlier), bson.E{Key: "decision", Value: Began})).Err()
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return false, fmt.Errorf("look for the beginning of stream %q: %w", g.stream, err)
	}
	return err == nil, nil
}

// Open adds a record unless there is one, and returns the one that is there.
func (s *Streams) Open(ctx context.Context, record checkpoint.Record) (checkpoint.Record, error) {
	if _, err := s.records.InsertOne(ctx, streamOf(record)); err != nil && !mongo.IsDuplicateKeyError(err) {
		return checkpoint.Record{}, fmt.Errorf("open the record of stream %q: %w", record.Stream, majority.Explain(ctx, s.records.Database().Client(), err))
	}
	return s.Read(ctx, record.Stream)
}

// Raise gives out a term: one above the highest that was given out, and above
// another. It is to be called before a claim of that term. ErrNoStream where
// the record is gone or retired.
func (s *Streams) Raise(ctx context.Context, stream string, above int64) (checkpoint.Record, error) {
	var after streamDocument
	err := s.records.FindOneAndUpdate(ctx, append(byStream(stream), inUse()), mongo.Pipeline{{{Key: "$set", Value: bson.D{
		{Key: "term", Value: bson.D{{Key: "$add", Value: bson.A{bson.D{{Key: "$max", Value: bson.A{"$term", "$confirmed", above}}}, int64(1)}}}},
	}}}}, options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&after)
	return s.read(after, stream, majority.Explain(ctx, s.records.Database().Client(), err))
}

// Kept is what a leader keeps of its stream in the record.
type Kept struct {
	Lease, Options string
	Source         checkpoint.Origin
	Settings       checkpoint.Settings
}

// Confirm says that the checkpoint has a term, by whose leader its record is
// kept. A later leader's record stays as it is.
func (s *Streams) Confirm(ctx context.Context, stream string, term int64, kept Kept) error {
	return s.update(ctx, upTo(stream, term), bson.D{
		{Key: "$max", Value: bson.D{{Key: "term", Value: term}, {Key: "confirmed", Value: term}}},
		{Key: "$set", Value: bson.D{
			{Key: "lease", Value: kept.Lease},
			{Key: "options", Value: kept.Options},
			{Key: "source", Value: sourceOf(kept.Source)},
			{Key: "settings", Value: kept.Settings},
		}},
		{Key: "$unset", Value: bson.D{{Key: "halt", Value: ""}}},
	})
}

// upTo is the filter of a record that no later term has confirmed.
func upTo(stream string, term int64) bson.D {
	return append(byStream(stream), bson.E{Key: "confirmed", Value: bson.D{{Key: "$lte", Value: term}}})
}

// Halt says why the leader waits for an operator. It is nothing where a later term
// than the one that it has seen was confirmed since, by a leader or an operator.
func (s *Streams) Halt(ctx context.Context, stream string, seen int64, why string) error {
	return s.update(ctx, upTo(stream, seen), bson.D{{Key: "$set", Value: bson.D{{Key: "halt", Value: why}}}})
}

// Marking says that the topic is about to be marked, and returns how often it was
// to be, this time included.
func (s *Streams) Marking(ctx context.Context, stream string) (int64, error) {
	var after streamDocument
	err := s.records.FindOneAndUpdate(ctx, append(byStream(stream), inUse()), bson.D{{Key: "$inc", Value: bson.D{{Key: "marks", Value: int64(1)}}}},
		options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&after)
	record, err := s.read(after, stream, err)
	return record.Marks, err
}

// Mark says that the topic has a mark of the stream, behind so many messages and
// marks of others.
func (s *Streams) Mark(ctx context.Context, stream string, behind int64) error {
	return s.update(ctx, byStream(stream), bson.D{{Key: "$set", Value: bson.D{{Key: "marked", Value: true}, {Key: "behind", Value: behind}}}})
}

// Stop says that the stream stands before a change to a collection.
func (s *Streams) Stop(ctx context.Context, stream string, at checkpoint.ClusterTime) error {
	return s.update(ctx, byStream(stream), bson.D{{Key: "$max", Value: bson.D{{Key: "stopped", Value: timestamp(at)}}}})
}

// Source keeps a source as that of the stream, in a term.
func (s *Streams) Source(ctx context.Context, stream string, term int64, source checkpoint.Origin) error {
	return s.update(ctx, upTo(stream, term), bson.D{{Key: "$set", Value: bson.D{{Key: "source", Value: sourceOf(source)}}}})
}

// Decision is what an operator decides about a stream.
type Decision struct {
	// Term is that of the checkpoint from now on.
	Term int64
	// Source and Settings are the stream's from now on.
	Source   checkpoint.Origin
	Settings checkpoint.Settings
	// Accepted is the time up to which changes to collections are accepted.
	Accepted checkpoint.ClusterTime
}

// Decide keeps a decision, and reports whether it is the stream's: not where a later
// term was confirmed, or the stream was retired, since the checkpoint was moved. Then
// who leads it goes on as it found it, and the record says only that there was one.
func (s *Streams) Decide(ctx context.Context, stream string, d Decision) (bool, error) {
	decided := bson.E{Key: "$currentDate", Value: bson.D{{Key: "decidedAt", Value: true}}}
	result, err := s.records.UpdateOne(ctx, append(upTo(stream, d.Term), inUse()), bson.D{
		{Key: "$max", Value: bson.D{{Key: "term", Value: d.Term}, {Key: "accepted", Value: timestamp(d.Accepted)}}},
		{Key: "$set", Value: bson.D{{Key: "confirmed", Value: d.Term}, {Key: "source", Value: sourceOf(d.Source)}, {Key: "settings", Value: d.Settings}}},
		{Key: "$unset", Value: bson.D{{Key: "halt", Value: ""}, {Key: "undecided", Value: ""}, {Key: "alone", Value: ""}}},
		decided,
	})
	if err != nil {
		return false, fmt.Errorf("keep the decision about stream %q: %w", stream, err)
	}
	if result.MatchedCount == 1 {
		return true, nil
	}
	return false, s.update(ctx, byStream(stream), bson.D{decided})
}

// update changes a record that is there; it makes none.
func (s *Streams) update(ctx context.Context, which, update bson.D) error {
	if _, err := s.records.UpdateOne(ctx, which, update); err != nil {
		return fmt.Errorf("keep the record of stream %q: %w", which[0].Value, majority.Explain(ctx, s.records.Database().Client(), err))
	}
	return nil
}

// Of returns the records that are in use of a whole stream, or of all streams
// where its name is empty.
func (s *Streams) Of(ctx context.Context, whole string) ([]checkpoint.Record, error) {
	which := bson.D{inUse()}
	if whole != "" {
		which = append(which, bson.E{Key: "stream", Value: whole})
	}
	cursor, err := s.records.Find(ctx, which, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
	if err != nil {
		return nil, fmt.Errorf("read the records of streams: %w", err)
	}
	var found []streamDocument
	if err := cursor.All(ctx, &found); err != nil {
		return nil, fmt.Errorf("read the records of streams: %w", err)
	}
	records := make([]checkpoint.Record, len(found))
	for i, document := range found {
		records[i] = document.record()
	}
	return records, nil
}
