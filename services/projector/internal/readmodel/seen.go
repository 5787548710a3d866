package readmodel

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/projection"
)

// ErrUnseen means that a view is not there, or shows nothing, and that nobody knows
// which version readers are to see.
var ErrUnseen = errors.New("it is not known which version readers are to see")

// viewKey is the key of a view in collection_owners, beside collections and feeds.
func viewKey(view string) string { return "$view:" + view }

// viewNote is what is noted of a view.
type viewNote struct {
	On *string `bson:"viewOn"`
	// Stamp is another one each time that it is noted.
	Stamp *bson.ObjectID `bson:"stamp"`
}

// lookUpNote is what is noted of a view; On is nil where nothing is.
func (s *Store) lookUpNote(ctx context.Context, view string) (n viewNote, err error) {
	err = s.db.Collection(projection.Owners).FindOne(ctx, bson.D{{Key: "_id", Value: viewKey(view)}}).Decode(&n)
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return n, fmt.Errorf("look up in %q what view %q shows: %w", projection.Owners, view, err)
	}
	return n, nil
}

// note notes what readers see in a view.
func (s *Store) note(ctx context.Context, view, on string) error {
	return s.noteOver(ctx, view, on, bson.D{{Key: "_id", Value: viewKey(view)}})
}

// noteUnless notes what readers see in a view, unless something else was noted after
// was.
func (s *Store) noteUnless(ctx context.Context, view, on string, was viewNote) error {
	if was.On != nil && *was.On == on {
		return nil
	}
	err := s.noteOver(ctx, view, on, bson.D{{Key: "_id", Value: viewKey(view)}, {Key: "viewOn", Value: was.On}, {Key: "stamp", Value: was.Stamp}})
	if mongo.IsDuplicateKeyError(err) {
		return nil
	}
	return err
}

// noteOver notes what readers see in a view over the note that a filter finds.
func (s *Store) noteOver(ctx context.Context, view, on string, filter bson.D) error {
	_, err := s.db.Collection(projection.Owners).UpdateOne(ctx, filter, bson.D{
		{Key: "$set", Value: bson.D{{Key: "viewOn", Value: on}, {Key: "stamp", Value: bson.NewObjectID()}}},
		{Key: "$currentDate", Value: bson.D{{Key: "since", Value: true}}},
	}, options.UpdateOne().SetUpsert(true))
	if err != nil {
		return fmt.Errorf("note in %q what view %q shows: %w", projection.Owners, view, err)
	}
	return nil
}

// seen is what a view that is not there is to stand on: what it was noted to show, and
// ErrUnseen where that is gone; where nothing is noted, the one version that projectors
// have claimed and that has documents, or has none as all of them; where there is none,
// what v says.
func (s *Store) seen(ctx context.Context, v projection.View) (on string, err error) {
	noted, err := s.lookUpNote(ctx, v.Name)
	if err != nil {
		return "", err
	}
	if noted.On != nil {
		return *noted.On, s.checkShown(ctx, v, *noted.On)
	}
	versions, err := s.claimedVersions(ctx, v.Name)
	if err != nil {
		return "", err
	}
	var filled []string
	for _, name := range versions {
		some, err := s.there(ctx, name, bson.D{})
		if err != nil {
			return "", err
		}
		if some {
			filled = append(filled, name)
		}
	}
	if len(filled) > 0 {
		versions = filled
	}
	switch len(versions) {
	case 0:
		return v.On, nil
	case 1:
		return versions[0], nil
	}
	return "", fmt.Errorf("%w: view %q is not there, and it may have shown any of %s: run projector switch with --force in the environment of the right one",
		ErrUnseen, v.Name, strings.Join(versions, ", "))
}

// checkShown returns ErrUnseen where the collection is gone that a view was noted to show:
// no other has what readers saw. The view's own version is not asked for: its
// projectors make the collection. A role that may not list collections takes it to be
// there.
func (s *Store) checkShown(ctx context.Context, v projection.View, on string) error {
	if on == v.On {
		return nil
	}
	found, err := s.db.ListCollectionNames(ctx, bson.D{{Key: "name", Value: on}}, options.ListCollections().SetNameOnly(true))
	if IsUnauthorized(err) || len(found) > 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look up collection %q: %w", on, err)
	}
	return fmt.Errorf("%w: view %q showed %q, which is not there: restore it from a backup, "+
		"or run projector switch with --force in the environment of the version that readers are to see", ErrUnseen, v.Name, on)
}

// claimedVersions are the collections of a view's versions that projectors have
// claimed.
func (s *Store) claimedVersions(ctx context.Context, view string) ([]string, error) {
	var names []string
	err := s.db.Collection(projection.Owners).Distinct(ctx, "_id", bson.D{
		{Key: "_id", Value: bson.D{{Key: "$regex", Value: "^" + regexp.QuoteMeta(view) + "_v[1-9][0-9]*$"}}},
	}).Decode(&names)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", projection.Owners, err)
	}
	return names, nil
}
