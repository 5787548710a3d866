package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/reply"
	"changerelay/services/projector/internal/verify"
)

// Comparison keeps recomputed documents beside the read documents, and replaces a read
// document with its recomputed one.
type Comparison struct {
	*database
	writes *Writes
	halts  *Halts
}

var _ verify.Documents = (*Comparison)(nil)

// Write implements verify.Documents.
func (s *Comparison) Write(ctx context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	return s.writes.Write(ctx, writes)
}

// recomputedFor is how long a recomputed document may be left by a run that is under way.
const recomputedFor = time.Hour

// Read implements verify.Documents.
func (s *Comparison) Read(ctx context.Context, collection string, aggregates []string) (map[string]verify.Document, error) {
	return s.withIDs(ctx, s.db.Collection(collection), aggregates)
}

// withIDs are the documents of a collection that have some ids.
func (s *Comparison) withIDs(ctx context.Context, in *mongo.Collection, ids []string) (map[string]verify.Document, error) {
	cursor, err := in.Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}})
	var found []bson.Raw
	if err == nil {
		err = cursor.All(ctx, &found)
	}
	if err != nil {
		return nil, fmt.Errorf("read documents of %q: %w", in.Name(), err)
	}
	all := make(map[string]verify.Document, len(found))
	for _, raw := range found {
		all[raw.Lookup("_id").StringValue()] = documentOf(raw)
	}
	return all, nil
}

func documentOf(raw bson.Raw) verify.Document {
	at, _ := placeOf(raw, bookkeeping)
	_, deleted := raw.Lookup(bookkeeping, "deletedAt").DateTimeOK()
	return verify.Document{Raw: raw, Sequence: at.Sequence, First: at.First, Deleted: deleted}
}

// IDs implements verify.Documents.
func (s *Comparison) IDs(ctx context.Context, collection string, sample int, each func(id bson.RawValue) error) error {
	var pipeline mongo.Pipeline
	if sample > 0 {
		pipeline = append(pipeline, bson.D{{Key: "$sample", Value: bson.D{{Key: "size", Value: sample}}}})
	}
	pipeline = append(pipeline, shown[0].(bson.D), bson.D{{Key: "$project", Value: bson.D{{Key: "_id", Value: 1}}}})
	cursor, err := s.db.Collection(collection).Aggregate(ctx, pipeline, options.Aggregate().SetAllowDiskUse(true))
	if err != nil {
		return fmt.Errorf("list the documents of %q: %w", collection, err)
	}
	defer func() { _ = cursor.Close(context.WithoutCancel(ctx)) }()
	for cursor.Next(ctx) {
		if err := each(cursor.Current.Lookup("_id")); err != nil {
			return err
		}
	}
	if err := cursor.Err(); err != nil {
		return fmt.Errorf("list the documents of %q: %w", collection, err)
	}
	return nil
}

// HaltedAt implements verify.Documents.
func (s *Comparison) HaltedAt(ctx context.Context, aggregates []string) (map[string]contract.Sequence, error) {
	cursor, err := s.own(projection.HaltedAggregates).Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: aggregates}}}})
	var found []haltedAggregate
	if err == nil {
		err = cursor.All(ctx, &found)
	}
	if err != nil {
		return nil, fmt.Errorf("look up which aggregates are halted: %w", err)
	}
	all := make(map[string]contract.Sequence, len(found))
	for i := range found {
		all[found[i].AggregateID] = found[i].Sequence
	}
	return all, nil
}

// DiscardedOf implements verify.Documents.
func (s *Comparison) DiscardedOf(ctx context.Context, aggregates []string) (map[string]bool, error) {
	cursor, err := s.own(projection.Positions).Find(ctx, bson.D{
		{Key: "discardedAt", Value: bson.D{{Key: "$exists", Value: true}}},
		{Key: "_id.aggregateId", Value: bson.D{{Key: "$in", Value: aggregates}}},
	})
	var found []discard
	if err == nil {
		err = cursor.All(ctx, &found)
	}
	if err != nil {
		return nil, fmt.Errorf("look up which events are discarded: %w", err)
	}
	all := make(map[string]bool, len(found))
	for i := range found {
		all[found[i].Key.EventID] = true
	}
	return all, nil
}

// SkippedOf implements verify.Documents.
func (s *Comparison) SkippedOf(ctx context.Context, aggregates []string) (map[verify.Skipper][]string, error) {
	of := make(bson.A, len(aggregates))
	for i, aggregate := range aggregates {
		of[i] = ofAggregate(aggregate)
	}
	cursor, err := s.own(projection.SkippedEvents).Find(ctx, bson.D{{Key: "$or", Value: of}, standing},
		options.Find().SetProjection(bson.D{{Key: "_id", Value: 1}}).SetSort(bson.D{{Key: "_id", Value: 1}}))
	var found []skippedEvent
	if err == nil {
		err = cursor.All(ctx, &found)
	}
	if err != nil {
		return nil, fmt.Errorf("look up which events were skipped: %w", err)
	}
	all := map[verify.Skipper][]string{}
	for i := range found {
		of := verify.Skipper{Projection: found[i].Key.Projection, Aggregate: found[i].Key.AggregateID}
		all[of] = append(all[of], found[i].Key.EventID)
	}
	return all, nil
}

// Recomputing implements verify.Documents.
func (s *Comparison) Recomputing(w *projection.Write, id string) {
	w.Collection, w.ID = s.own(projection.Recomputed).Name(), id
	if complete := w.Complete; complete != nil {
		w.Complete = func(document bson.Raw) (projection.Write, error) {
			done, err := complete(document)
			s.Recomputing(&done, id)
			return done, err
		}
	}
}

// Recomputed implements verify.Documents.
func (s *Comparison) Recomputed(ctx context.Context, ids []string) (map[string]verify.Document, error) {
	in := s.own(projection.Recomputed)
	all, err := s.withIDs(ctx, in, ids)
	if err != nil {
		return nil, err
	}
	if _, err := in.DeleteMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}}); err != nil {
		return nil, fmt.Errorf("remove recomputed documents from %q: %w", in.Name(), err)
	}
	return all, nil
}

// ForgetRecomputed removes recomputed documents: those of a run, and what was left by one
// that died.
func (s *Comparison) ForgetRecomputed(ctx context.Context, run string) error {
	in := s.own(projection.Recomputed)
	_, err := in.DeleteMany(ctx, bson.D{{Key: "$or", Value: bson.A{
		bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: run + "/"}, {Key: "$lt", Value: run + "0"}}}},
		bson.D{{Key: bookkeeping + ".updatedAt", Value: bson.D{{Key: "$lt", Value: time.Now().Add(-recomputedFor)}}}},
	}}})
	if err != nil {
		return fmt.Errorf("remove recomputed documents from %q: %w", in.Name(), err)
	}
	return nil
}

// Replace implements verify.Documents. Whether the aggregate is halted stays as it is.
func (s *Comparison) Replace(ctx context.Context, collection, aggregate string, read, made *verify.Document) (replaced bool, err error) {
	in, at := s.db.Collection(collection), bson.D{{Key: "_id", Value: aggregate}}
	err = s.together(ctx, func(ctx context.Context) error {
		replaced = false
		raw, err := in.FindOne(ctx, at).Raw()
		if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
			return err
		}
		if now := documentOf(raw); (raw == nil) != (read.Raw == nil) || now.Sequence != read.Sequence {
			return nil
		}
		if made.Raw == nil {
			_, err := in.DeleteOne(ctx, at)
			replaced = err == nil
			return err
		}
		document, err := s.inPlaceOf(ctx, raw, aggregate, made.Raw)
		if err == nil && raw == nil {
			_, err = in.InsertOne(ctx, document)
		} else if err == nil {
			_, err = in.ReplaceOne(ctx, at, document)
		}
		replaced = err == nil
		return err
	})
	if mongo.IsDuplicateKeyError(err) && read.Raw == nil {
		return false, nil // it was made meanwhile
	}
	if err != nil {
		return false, fmt.Errorf("put the recomputed document of aggregate %q into %q: %w", aggregate, collection, reply.WithoutData(err))
	}
	return replaced, nil
}

// inPlaceOf is a recomputed document as an aggregate's, with the mark of its halt.
func (s *Comparison) inPlaceOf(ctx context.Context, raw bson.Raw, aggregate string, made bson.Raw) (document bson.D, err error) {
	if err := bson.Unmarshal(made, &document); err != nil {
		return nil, err
	}
	mark, marked := any(nil), false
	if value, lookErr := raw.LookupErr(bookkeeping, "halted"); raw != nil && lookErr == nil {
		mark, marked = value, true
	} else if raw == nil {
		h, err := s.halts.Mark(ctx, aggregate)
		if err != nil {
			return nil, err
		}
		if h != nil {
			mark, marked = markOf(h), true
		}
	}
	for i, e := range document {
		switch relay, is := e.Value.(bson.D); {
		case e.Key == "_id":
			document[i].Value = aggregate
		case e.Key == bookkeeping && is && marked:
			document[i].Value = slices.Concat(relay, bson.D{{Key: "halted", Value: mark}})
		}
	}
	return document, nil
}

// Verified is what the last comparison with the source has found.
type Verified struct {
	At time.Time `bson:"at"`
	By string    `bson:"by"`
	// Aggregates are those that were looked at, Differences the documents that differ.
	Aggregates  int64 `bson:"aggregates"`
	Differences int   `bson:"differences"`
}

// verifiedKey is the key of the group's note in collection_owners, beside collections and
// feeds.
func (s *Comparison) verifiedKey() string { return "$verified:" + s.group }

// NoteVerified notes what a comparison has found, in the place of the one before.
func (s *Comparison) NoteVerified(ctx context.Context, v *Verified) error {
	_, err := s.db.Collection(projection.Owners).ReplaceOne(ctx, bson.D{{Key: "_id", Value: s.verifiedKey()}}, v, options.Replace().SetUpsert(true))
	if err != nil {
		return fmt.Errorf("note in %q what was compared: %w", projection.Owners, err)
	}
	return nil
}

// LastVerified is what the last comparison has found; nil where there was none.
func (s *Comparison) LastVerified(ctx context.Context) (*Verified, error) {
	var v Verified
	err := s.db.Collection(projection.Owners).FindOne(ctx, bson.D{{Key: "_id", Value: s.verifiedKey()}}).Decode(&v)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read in %q what was compared: %w", projection.Owners, err)
	}
	return &v, nil
}
