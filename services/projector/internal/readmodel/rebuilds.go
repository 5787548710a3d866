package readmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/rebuild"
)

var _ rebuild.Positions = (*Writes)(nil)

// ErrRevised means that the record of a rebuild was changed by somebody else.
var ErrRevised = errors.New("the rebuild was changed at the same time by another command, or a projector: run the command again to see how far it is")

// rebuildKey is the key of a rebuild's record in collection_owners, beside collections
// and feeds.
func rebuildKey(r *rebuild.Record) string {
	key := fmt.Sprintf("$rebuild:%s:%d", r.Projection, r.Declared)
	if r.View != "" {
		key += ":" + r.View
	}
	return key
}

// Rebuilds are the records of rebuilds, as a majority has them.
func (s *Store) Rebuilds(ctx context.Context) (rebuild.Records, error) {
	cursor, err := s.db.Collection(projection.Owners).Find(ctx,
		bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: "$rebuild:"}, {Key: "$lt", Value: "$rebuild;"}}}},
		options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
	var records rebuild.Records
	if err == nil {
		err = cursor.All(ctx, &records)
	}
	if err != nil {
		return nil, fmt.Errorf("read rebuilds in %q: %w", projection.Owners, err)
	}
	return records, nil
}

// Claimed is the highest number of a version of a projection of this name that has, or had,
// positions: one that is claimed, that has documents, or that a rebuild has given out; 0 for
// none. Another group's count as well: its documents are elsewhere, and its positions are not.
func (s *Store) Claimed(ctx context.Context, v *projection.Version) (highest int, err error) {
	of := accountKey(v.Projection + "_v")
	cursor, err := s.db.Collection(projection.Owners).Find(ctx, bson.D{{Key: "$or", Value: bson.A{
		bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: of}, {Key: "$lt", Value: of + ":"}}}},
		bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: shapePrefix}, {Key: "$lt", Value: shapeEnd}}}},
	}}})
	var claims []struct {
		Projection string `bson:"projection"` // of a claim
		Of         string `bson:"of"`         // of a shape
	}
	if err == nil {
		err = cursor.All(ctx, &claims)
	}
	if err != nil {
		return 0, fmt.Errorf("read whose positions are claimed in %q: %w", projection.Owners, err)
	}
	for i := range claims {
		if n, is := v.InAccount(cmp.Or(claims[i].Projection, claims[i].Of)); is {
			highest = max(highest, n)
		}
	}
	records, err := s.Rebuilds(ctx)
	if err != nil {
		return 0, err
	}
	for i := range records {
		if records[i].Projection == v.Projection {
			highest = max(highest, records[i].Highest)
		}
	}
	return highest, nil
}

// TakeNumber takes the number of a version for a rebuild, for good. It tells whether nobody
// has taken it before: of two that begin at once, for projections of one name, one has it.
func (s *Store) TakeNumber(ctx context.Context, v *projection.Version, by string) (bool, error) {
	_, err := s.db.Collection(projection.Owners).InsertOne(ctx, bson.D{
		{Key: "_id", Value: "$number:" + v.Account()}, {Key: "view", Value: v.View}, {Key: "group", Value: s.group}, {Key: "by", Value: by}, {Key: "at", Value: time.Now()},
	})
	if mongo.IsDuplicateKeyError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("take the number of %q in %q: %w", v.Account(), projection.Owners, err)
	}
	return true, nil
}

// holdTime is how long a command has a record for itself. What it does meanwhile it ends
// well before.
const holdTime = 30 * time.Second

// ErrHeld means that another command has the record of a rebuild for itself.
var ErrHeld = errors.New("another command changes at this moment what readers see")

// Revise replaces the record of a rebuild as it was read, which is zero before the first;
// ErrRevised where it is not that any more, and ErrHeld while another command has it.
func (s *Store) Revise(ctx context.Context, was, next rebuild.Record) error {
	owners := s.db.Collection(projection.Owners)
	if was.Revision == 0 {
		next := struct {
			ID     string         `bson:"_id"`
			Record rebuild.Record `bson:",inline"`
		}{rebuildKey(&next), next}
		_, err := owners.InsertOne(ctx, next)
		if mongo.IsDuplicateKeyError(err) {
			return ErrRevised
		}
		if err != nil {
			return fmt.Errorf("note a rebuild in %q: %w", projection.Owners, err)
		}
		return nil
	}
	result, err := owners.ReplaceOne(ctx, inTurn(&was), next)
	if err != nil {
		return fmt.Errorf("note a rebuild in %q: %w", projection.Owners, err)
	}
	if result.MatchedCount == 0 {
		return s.overtaken(ctx, &was)
	}
	return nil
}

// Hold has a command have a record for itself, as it was read, for holdTime: nobody else
// changes it meanwhile. It returns the record in its next turn. Errors are those of
// Revise.
func (s *Store) Hold(ctx context.Context, was rebuild.Record) (rebuild.Record, error) {
	next := was.Noted()
	until := bson.D{{Key: "$add", Value: bson.A{"$$NOW", holdTime.Milliseconds()}}}
	result, err := s.db.Collection(projection.Owners).UpdateOne(ctx, inTurn(&was),
		mongo.Pipeline{{{Key: "$set", Value: bson.D{{Key: "turn", Value: next.Turn}, {Key: "heldUntil", Value: until}}}}})
	if err != nil {
		return was, fmt.Errorf("take a rebuild in %q: %w", projection.Owners, err)
	}
	if result.MatchedCount == 0 {
		return was, s.overtaken(ctx, &was)
	}
	next.Held = true
	return next, nil
}

// inTurn finds a record as it was read, unless another command has it.
func inTurn(was *rebuild.Record) bson.D {
	filter := bson.D{{Key: "_id", Value: rebuildKey(was)}, {Key: "revision", Value: was.Revision}, {Key: "turn", Value: was.Turn}}
	if was.Turn == 0 { // of an earlier release, which has no turns
		filter[2].Value = nil
	}
	if !was.Held {
		free := bson.D{{Key: "$lte", Value: bson.A{bson.D{{Key: "$ifNull", Value: bson.A{"$heldUntil", "$$NOW"}}}, "$$NOW"}}}
		filter = append(filter, bson.E{Key: "$expr", Value: free})
	}
	return filter
}

// overtaken is why a record is not found any more as it was read.
func (s *Store) overtaken(ctx context.Context, was *rebuild.Record) error {
	var now rebuild.Record
	err := s.db.Collection(projection.Owners).FindOne(ctx, bson.D{{Key: "_id", Value: rebuildKey(was)}}).Decode(&now)
	switch {
	case err != nil && !errors.Is(err, mongo.ErrNoDocuments):
		return fmt.Errorf("read a rebuild in %q: %w", projection.Owners, err)
	case err == nil && now.Revision == was.Revision && now.Turn == was.Turn:
		return ErrHeld
	}
	return ErrRevised
}

// Outdate notes of a rebuild that a projector writes its versions by a projection that
// says something else than when it began.
func (s *Store) Outdate(ctx context.Context, r *rebuild.Record) error {
	_, err := s.db.Collection(projection.Owners).UpdateOne(ctx,
		bson.D{{Key: "_id", Value: rebuildKey(r)}, {Key: "next", Value: r.Next}, {Key: "content", Value: r.Content}, {Key: "changed", Value: nil}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "changed", Value: true}}}, {Key: "$inc", Value: bson.D{{Key: "turn", Value: 1}}}})
	if err != nil {
		return fmt.Errorf("note in %q that a projection has changed: %w", projection.Owners, err)
	}
	return nil
}

// wentBack notes of rebuilds whose next version is filled that the database was restored from
// before.
func (s *Store) wentBack(ctx context.Context) error {
	_, err := s.db.Collection(projection.Owners).UpdateMany(ctx,
		bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: "$rebuild:"}, {Key: "$lt", Value: "$rebuild;"}}}, {Key: "state", Value: rebuild.Filling}, {Key: "wentBack", Value: nil}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "wentBack", Value: true}}}, {Key: "$inc", Value: bson.D{{Key: "turn", Value: 1}}}})
	if err != nil {
		return fmt.Errorf("note in %q that the database went back: %w", projection.Owners, err)
	}
	return nil
}

// Elsewhere are the instances of the group's processes that live, as far as they have
// said so within deadAfter, and work by other records of rebuilds; and how many there
// are in all. One that others suspect to have died may yet write, as long as it has not
// been silent for so long.
func (s *Store) Elsewhere(ctx context.Context, works string) (others []string, all int, err error) {
	live := mongo.Pipeline{
		{{Key: "$match", Value: bson.D{
			{Key: "instance", Value: bson.D{{Key: "$exists", Value: true}}},
			{Key: "stoppedAt", Value: nil},
			{Key: "$expr", Value: bson.D{{Key: "$gt", Value: bson.A{"$heartbeatAt", bson.D{{Key: "$subtract", Value: bson.A{"$$NOW", deadAfter.Milliseconds()}}}}}}},
		}}},
		{{Key: "$sort", Value: bson.D{{Key: "instance", Value: 1}}}},
	}
	cursor, err := s.own(projection.Processes).Aggregate(ctx, live)
	var found []struct {
		Instance string  `bson:"instance"`
		Works    *string `bson:"works"` // nil of an older release
	}
	if err == nil {
		err = cursor.All(ctx, &found)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("look for projectors in %q: %w", projection.Processes, err)
	}
	for _, p := range found {
		if p.Works == nil || *p.Works != works {
			others = append(others, p.Instance)
		}
	}
	return others, len(found), nil
}

// Begun tells whether a version has a document, or has dealt with an event.
func (s *Store) Begun(ctx context.Context, v *projection.Version) (bool, error) {
	if begun, err := s.there(ctx, v.Collection(), bson.D{}); begun || err != nil {
		return begun, err
	}
	return s.there(ctx, projection.Positions, positionsOf(v.Account()))
}

// Drop removes what there is of a version that nobody writes: documents, positions and
// what is noted of both.
func (s *Store) Drop(ctx context.Context, v *projection.Version) error {
	if err := s.db.Collection(v.Collection()).Drop(ctx); err != nil {
		return fmt.Errorf("drop %q: %w", v.Collection(), err)
	}
	err := s.pages(ctx, projection.Positions, positionsOf(v.Account()), func(page bson.D) (enough bool, err error) {
		_, err = s.db.Collection(projection.Positions).DeleteMany(ctx, page)
		return false, err
	})
	if err != nil {
		return fmt.Errorf("remove the positions of %q: %w", v.Account(), err)
	}
	if err := s.Skipped.ForgetOf(ctx, v.Account()); err != nil {
		return err
	}
	lacks := s.own(projection.Positions)
	err = s.pages(ctx, lacks.Name(), lacksOf(v.Account()), func(page bson.D) (enough bool, err error) {
		_, err = lacks.DeleteMany(ctx, page)
		return false, err
	})
	if err != nil {
		return fmt.Errorf("remove what %q is noted to lack: %w", v.Account(), err)
	}
	keys := bson.A{v.Collection(), emptiedKey(v.Collection()), accountKey(v.Account()), shapeKey(v.Account(), v.Collection())}
	if _, err := s.db.Collection(projection.Owners).DeleteMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: keys}}}}); err != nil {
		return fmt.Errorf("remove what is noted of %q: %w", v.Collection(), err)
	}
	return nil
}
