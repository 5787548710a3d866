package readmodel

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/reply"
)

// ErrNotAView means that the name that readers use is a collection.
var ErrNotAView = errors.New("is a collection and no view")

// VersionState is one version of a projection as the database has it.
type VersionState struct {
	Projection string `json:"projection"`
	Version    int    `json:"version"`
	Collection string `json:"collection"`
	// Live tells that readers see this version.
	Live bool `json:"live"`
	// Documents is an estimate.
	Documents int64 `json:"documents"`
}

// shown is the pipeline of every view: what is deleted is not shown, whatever
// keeps its position.
var shown = bson.A{bson.D{{Key: "$match", Value: bson.D{{Key: bookkeeping + ".deletedAt", Value: nil}}}}}

// EnsureView makes a view that is not there, for the first time or because it was lost:
// that stands again on what readers saw. ErrUnseen where nobody knows what that was.
func (s *Store) EnsureView(ctx context.Context, v projection.View) (made bool, err error) {
	if !v.Versioned() {
		return s.create(ctx, v.Name, v.On)
	}
	on, err := s.seen(ctx, v)
	if errors.Is(err, ErrUnseen) {
		// A role that may not list collections may look into the view.
		if there, lookErr := s.there(ctx, v.Name, bson.D{}); lookErr == nil && there {
			return false, nil
		}
	}
	if err != nil {
		return false, err
	}
	if made, err = s.create(ctx, v.Name, on); err != nil || !made {
		return false, err
	}
	// Without the right the view itself says what readers see, as long as it is there.
	if err := s.note(ctx, v.Name, on); err != nil && !IsUnauthorized(err) {
		return true, err
	}
	return true, nil
}

// Refresh has a view that is there show what it is to show, on the collection it
// stands on, and notes which that is, unless a switch has noted another meanwhile.
// ErrNotAView where a collection has its name.
func (s *Store) Refresh(ctx context.Context, v projection.View) error {
	was, err := s.lookUpNote(ctx, v.Name)
	if err != nil {
		return err
	}
	found, err := s.db.ListCollectionSpecifications(ctx, bson.D{{Key: "name", Value: v.Name}})
	if err != nil {
		return fmt.Errorf("look up view %q: %w", v.Name, err)
	}
	for i := range found {
		if found[i].Type != "view" {
			return fmt.Errorf("%q %w: readers of %q need a view of that name", v.Name, ErrNotAView, v.On)
		}
		var view struct {
			On       string `bson:"viewOn"`
			Pipeline bson.A `bson:"pipeline"`
		}
		if err := bson.Unmarshal(found[i].Options, &view); err != nil {
			return fmt.Errorf("read what view %q stands on: %w", v.Name, err)
		}
		if v.Versioned() {
			if err := s.noteUnless(ctx, v.Name, view.On, was); err != nil && !IsUnauthorized(err) {
				return err
			}
		}
		if len(view.Pipeline) == 0 {
			return s.setView(ctx, v.Name, view.On)
		}
	}
	return nil
}

// Live is the number of the version that readers see; 0 where there is no view.
// ErrNotAView where a collection has the view's name.
func (s *Store) Live(ctx context.Context, v *projection.Version) (int, error) {
	found, err := s.db.ListCollectionSpecifications(ctx, bson.D{{Key: "name", Value: v.View}})
	if err != nil {
		return 0, fmt.Errorf("look up view %q: %w", v.View, err)
	}
	if len(found) == 0 {
		return 0, nil
	}
	var view struct {
		On string `bson:"viewOn"`
	}
	if found[0].Type != "view" {
		return 0, fmt.Errorf("%q %w", v.View, ErrNotAView)
	}
	if err := bson.Unmarshal(found[0].Options, &view); err != nil {
		return 0, fmt.Errorf("read what view %q stands on: %w", v.View, err)
	}
	n, ok := v.In(view.On)
	if !ok {
		return 0, fmt.Errorf("view %q stands on %q, which is no version of it", v.View, view.On)
	}
	return n, nil
}

// Versions are the versions of a projection that the database has documents of,
// in order of their collections' names.
func (s *Store) Versions(ctx context.Context, v *projection.Version) ([]VersionState, error) {
	live, err := s.Live(ctx, v)
	if err != nil && !errors.Is(err, ErrNotAView) {
		return nil, err
	}
	names, err := s.db.ListCollectionNames(ctx, bson.D{{Key: "type", Value: "collection"}}, options.ListCollections().SetNameOnly(true))
	if err != nil {
		return nil, fmt.Errorf("list collections: %w", err)
	}
	var states []VersionState
	for _, name := range names {
		n, ok := v.In(name)
		if !ok {
			continue
		}
		documents, err := s.db.Collection(name).EstimatedDocumentCount(ctx)
		if err != nil {
			return nil, fmt.Errorf("count the documents of %q: %w", name, err)
		}
		states = append(states, VersionState{v.Projection, n, name, n == live, documents})
	}
	return states, nil
}

// SwitchView has readers see this version, in one step for all of them. It is noted
// before, so that a view that is lost does not show an earlier one again, and after,
// over what a Refresh in between has noted.
func (s *Store) SwitchView(ctx context.Context, v *projection.Version) error {
	if err := s.note(ctx, v.View, v.Collection()); err != nil {
		return err
	}
	if _, err := s.create(ctx, v.View, v.Collection()); err != nil {
		return err
	}
	if err := s.setView(ctx, v.View, v.Collection()); err != nil {
		return err
	}
	return s.note(ctx, v.View, v.Collection())
}

// create makes a view, unless there is something of that name already.
func (s *Store) create(ctx context.Context, view, on string) (made bool, err error) {
	err = s.db.CreateView(ctx, view, on, shown)
	if reply.Has(err, namespaceExists) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("create view %q: %w", view, err)
	}
	return true, nil
}

func (s *Store) setView(ctx context.Context, view, on string) error {
	err := s.db.RunCommand(ctx, bson.D{
		{Key: "collMod", Value: view},
		{Key: "viewOn", Value: on},
		{Key: "pipeline", Value: shown},
		{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}},
	}).Err()
	if err != nil {
		return fmt.Errorf("have view %q stand on %q: %w", view, on, err)
	}
	return nil
}

// EnsureViews makes the views that are not there. It returns false when the role
// may not.
func (s *Store) EnsureViews(ctx context.Context, views []projection.View) (bool, error) {
	for _, v := range views {
		_, err := s.EnsureView(ctx, v)
		if reply.Has(err, unauthorized) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// CountHalted is how many aggregates are halted in the store's group.
func (s *Halts) CountHalted(ctx context.Context) (int64, error) {
	n, err := s.own(projection.HaltedAggregates).CountDocuments(ctx, bson.D{})
	if err != nil {
		return 0, fmt.Errorf("count halted aggregates: %w", err)
	}
	return n, nil
}

// CountParked is how many messages are parked in the store's group.
func (s *Parked) CountParked(ctx context.Context) (int64, error) {
	n, err := s.own(projection.ParkedMessages).CountDocuments(ctx, bson.D{})
	if err != nil {
		return 0, fmt.Errorf("count parked messages: %w", err)
	}
	return n, nil
}
