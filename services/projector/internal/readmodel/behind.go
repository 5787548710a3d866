package readmodel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
)

// Behind are aggregates whose events one version of a projection has and
// another one has not yet, each with the sequence that it has to reach.
type Behind map[string]contract.Sequence

// lookEvery is how often those behind are looked at again.
const lookEvery = 100 * time.Millisecond

// ErrUnnoted means that a version has documents of events that its ledger does not
// have, so that nobody knows which aggregates it has dealt with.
var ErrUnnoted = errors.New("it cannot be known what the version has dealt with")

// Behind compares, aggregate by aggregate, with what two versions have dealt, and
// returns those in which v is behind live, up to limit. Each is asked in its own
// terms, by what it notes and not by how either is declared: a document that is an
// aggregate's own shows how far that is, and one that several aggregates change
// shows nothing, since the ledger has all of its events. A version without a key
// notes there what it does not follow. So a version in which nothing has come yet
// is behind in everything. ErrUnnoted where live has not noted what it shows.
//
// An aggregate whose source was deleted asks for nothing where there is nothing
// of it: a copy does not show what was deleted.
func (s *Store) Behind(ctx context.Context, v, live *projection.Version, limit int) (Behind, error) {
	behind := Behind{}
	err := s.pages(ctx, projection.Positions, positionsOf(live.Account()), func(page bson.D) (enough bool, err error) {
		err = s.gather(ctx, behind, projection.Positions, page, behindInLedger(v, live), limit)
		return len(behind) >= limit, err
	})
	if err != nil {
		return nil, err
	}
	err = s.pages(ctx, live.Collection(), bson.D{}, func(page bson.D) (enough bool, err error) {
		unnoted := Behind{}
		if err := s.gather(ctx, unnoted, live.Collection(), page, notNoted(live), 1); err != nil {
			return false, err
		}
		for aggregate, sequence := range unnoted {
			return false, fmt.Errorf("%w: a document of %q shows sequence %s of aggregate %q, which %q does not have for %q",
				ErrUnnoted, live.Collection(), sequence, aggregate, projection.Positions, live.Account())
		}
		err = s.gather(ctx, behind, live.Collection(), page, behindInDocuments(v), limit)
		return len(behind) >= limit, err
	})
	if err != nil {
		return nil, err
	}
	return behind, nil
}

// pageSize is how many documents are compared, or removed, in one request. With all of a
// large collection one would take longer than it may.
const pageSize = 1000

// pages calls each with what matches some of a collection's documents at a time, until it
// has enough or there are no more.
func (d *database) pages(ctx context.Context, from string, filter bson.D, each func(page bson.D) (enough bool, err error)) error {
	only := bson.D{{Key: "_id", Value: 1}}
	cursor, err := d.db.Collection(from).Find(ctx, filter, options.Find().SetProjection(only).SetHint(only).SetBatchSize(pageSize))
	if err != nil {
		return fmt.Errorf("go through %q: %w", from, err)
	}
	defer func() { _ = cursor.Close(context.WithoutCancel(ctx)) }() // the server ends it by itself
	for more := true; more; {
		var ids bson.A
		for len(ids) < pageSize {
			if more = cursor.Next(ctx); !more {
				break
			}
			ids = append(ids, bson.Raw(bytes.Clone(cursor.Current)).Lookup("_id"))
		}
		if len(ids) == 0 {
			break
		}
		enough, err := each(bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}})
		if enough || err != nil {
			return err
		}
	}
	if err := cursor.Err(); err != nil {
		return fmt.Errorf("go through %q: %w", from, err)
	}
	return nil
}

// gather adds what a comparison finds in a page, the higher sequence of each aggregate.
func (s *Store) gather(ctx context.Context, behind Behind, from string, page bson.D, pipeline mongo.Pipeline, limit int) error {
	pipeline = slices.Concat(mongo.Pipeline{{{Key: "$match", Value: page}}}, pipeline, mongo.Pipeline{{{Key: "$limit", Value: limit}}})
	cursor, err := s.db.Collection(from).Aggregate(ctx, pipeline)
	if err != nil {
		return fmt.Errorf("compare versions in %q: %w", from, err)
	}
	var found []struct {
		Aggregate string            `bson:"aggregate"`
		Sequence  contract.Sequence `bson:"sequence"`
	}
	if err := cursor.All(ctx, &found); err != nil {
		return fmt.Errorf("compare versions in %q: %w", from, err)
	}
	for _, f := range found {
		behind[f.Aggregate] = max(behind[f.Aggregate], f.Sequence)
	}
	return nil
}

// ofAggregates is where a document that several aggregates change says whose event
// was its last; an aggregate's own document has no such field.
const ofAggregates = bookkeeping + ".aggregateId"

// notNoted finds documents that several aggregates change, and whose last event the
// version's ledger does not have.
func notNoted(live *projection.Version) mongo.Pipeline {
	return mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: ofAggregates, Value: bson.D{{Key: "$ne", Value: nil}}}}}},
		{{Key: "$set", Value: bson.D{
			{Key: "aggregate", Value: "$" + ofAggregates},
			{Key: "sequence", Value: "$_relay.sequence"},
			{Key: "gone", Value: false},
			{Key: "document", Value: bson.A{}},
		}}},
		lookUpEntry(live), lookedUpEntry, notReached, shownBehind,
	}
}

// behindInDocuments compares live documents that are the aggregates' own.
func behindInDocuments(v *projection.Version) mongo.Pipeline {
	return mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: ofAggregates, Value: nil}}}},
		{{Key: "$set", Value: bson.D{
			{Key: "aggregate", Value: "$_id"},
			{Key: "sequence", Value: "$_relay.sequence"},
			// A tombstone of an older release does not say which operation it is of.
			{Key: "gone", Value: bson.D{{Key: "$and", Value: bson.A{
				bson.D{{Key: "$gt", Value: bson.A{"$_relay.deletedAt", nil}}},
				bson.D{{Key: "$in", Value: bson.A{bson.D{{Key: "$ifNull", Value: bson.A{"$_relay.operation", contract.Delete}}}, bson.A{contract.Delete}}}},
			}}}},
		}}},
		lookUpDocument(v), ownDocument, lookUpEntry(v), lookedUpEntry, notReached, shownBehind,
	}
}

// behindInLedger compares the ledger's entries of a live version.
func behindInLedger(v, live *projection.Version) mongo.Pipeline {
	return mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: "_id.projection", Value: live.Account()}}}},
		{{Key: "$set", Value: bson.D{{Key: "aggregate", Value: "$_id.aggregateId"}, {Key: "gone", Value: bson.D{{Key: "$eq", Value: bson.A{"$operation", contract.Delete}}}}}}},
		lookUpDocument(v), ownDocument, lookUpEntry(v), lookedUpEntry, notReached, shownBehind,
	}
}

// lookUpDocument looks up the document in a version that has the aggregate's id,
// and ownDocument drops one that only happens to: whose key is something else.
func lookUpDocument(v *projection.Version) bson.D {
	return bson.D{{Key: "$lookup", Value: bson.D{{Key: "from", Value: v.Collection()}, {Key: "localField", Value: "aggregate"}, {Key: "foreignField", Value: "_id"}, {Key: "as", Value: "document"}}}}
}

var ownDocument = bson.D{{Key: "$set", Value: bson.D{{Key: "document", Value: bson.D{{Key: "$filter", Value: bson.D{
	{Key: "input", Value: "$document"},
	{Key: "as", Value: "d"},
	{Key: "cond", Value: bson.D{{Key: "$lte", Value: bson.A{"$$d." + ofAggregates, nil}}}},
}}}}}}}

// lookUpEntry makes the key of the aggregate's entry in the ledger of a version,
// and lookedUpEntry looks it up.
func lookUpEntry(v *projection.Version) bson.D {
	return bson.D{{Key: "$set", Value: bson.D{{Key: "key", Value: bson.D{{Key: "projection", Value: bson.D{{Key: "$literal", Value: v.Account()}}}, {Key: "aggregateId", Value: "$aggregate"}}}}}}
}

var lookedUpEntry = bson.D{{Key: "$lookup", Value: bson.D{{Key: "from", Value: projection.Positions}, {Key: "localField", Value: "key"}, {Key: "foreignField", Value: "_id"}, {Key: "as", Value: "entry"}}}}

// notReached leaves those whose sequence neither document nor entry has reached,
// but what is gone and was never there; shownBehind shows the sequence.
var (
	notReached = bson.D{{Key: "$match", Value: bson.D{
		{Key: "$expr", Value: bson.D{{Key: "$and", Value: bson.A{
			bson.D{{Key: "$lt", Value: bson.A{bson.D{{Key: "$ifNull", Value: bson.A{bson.D{{Key: "$first", Value: "$document._relay.sequence"}}, ""}}}, "$sequence"}}},
			bson.D{{Key: "$lt", Value: bson.A{bson.D{{Key: "$ifNull", Value: bson.A{bson.D{{Key: "$first", Value: "$entry.sequence"}}, ""}}}, "$sequence"}}},
		}}}},
		{Key: "$or", Value: bson.A{
			bson.D{{Key: "gone", Value: false}},
			bson.D{{Key: "document", Value: bson.D{{Key: "$ne", Value: bson.A{}}}}},
			bson.D{{Key: "entry", Value: bson.D{{Key: "$ne", Value: bson.A{}}}}},
		}},
	}}}
	shownBehind = bson.D{{Key: "$project", Value: bson.D{{Key: "_id", Value: 0}, {Key: "aggregate", Value: 1}, {Key: "sequence", Value: 1}}}}
)

// Await looks until v has reached what it was behind in, for about as long as
// timeout says, and returns what is left.
func (s *Store) Await(ctx context.Context, v *projection.Version, behind Behind, timeout time.Duration) (Behind, error) {
	left := maps.Clone(behind)
	end := time.Now().Add(timeout)
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		for aggregate, sequence := range left {
			reached, err := s.reached(ctx, v, aggregate, sequence)
			if err != nil {
				return left, err
			}
			if reached {
				delete(left, aggregate)
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			return left, nil
		}
		select {
		case <-ctx.Done():
			return left, context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

func (s *Store) reached(ctx context.Context, v *projection.Version, aggregate string, sequence contract.Sequence) (bool, error) {
	reached, err := s.Writes.ReachedKeyed(ctx, v.Account(), aggregate, sequence)
	if reached || err != nil {
		return reached, err
	}
	return s.Writes.Reached(ctx, v.Collection(), aggregate, sequence)
}
