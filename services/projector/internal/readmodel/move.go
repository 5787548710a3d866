package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/projector/internal/projection"
)

// ErrInUse means that something of those who would be moved from is not done with.
var ErrInUse = errors.New("it is still in use")

// Move is what makes read collections another group's, a group another
// subscription's, or a subscription another group's.
type Move struct {
	// Collections are those that change their group, by the group they had.
	Collections map[string]string `json:"collections,omitempty"`
	// Positions are projections whose positions do so.
	Positions map[string]string `json:"positions,omitempty"`
	// From is what has fed the group; nil where nothing has, or it stays.
	From *Feed `json:"from,omitempty"`
	To   Feed  `json:"to"`
	// Taken is the group that To has fed; nil where it has fed no other.
	Taken *string `json:"taken_from,omitempty"`
	// Released are subscriptions that may feed other groups from now on.
	Released []Feed `json:"released,omitempty"`
	// Left are the subscriptions whose messages are applied to what is moved now, and
	// shall not be any more.
	Left []Feed `json:"left,omitempty"`
	// over is when the latest was noted of what is moved: whoever compares later takes
	// the move to have come after that.
	over time.Time
}

// None tells that everything is where it belongs.
func (m *Move) None() bool {
	return len(m.Collections) == 0 && len(m.Positions) == 0 && m.From == nil && m.Taken == nil && len(m.Released) == 0
}

// PlanMove says what would have to be moved so that collections are the group's
// and the store's subscription its feed. ErrInUse while projectors of a group that
// is concerned live, or messages are parked in one that something is taken from:
// nobody would find them any more.
func (s *Store) PlanMove(ctx context.Context, collections []string) (*Move, error) {
	m := &Move{Collections: map[string]string{}, Positions: map[string]string{}, To: s.feed}
	owners, err := s.owners(ctx, collections)
	if err != nil {
		return nil, err
	}
	groups := []string{s.group}
	m.over = latest(owners)
	for _, o := range owners {
		switch {
		case o.Projection != "" && !slices.Equal(o.Documents, s.documents(o.Projection)):
			return nil, fmt.Errorf("%w: %s", ErrElsewhere, s.strangeAccount(&o))
		case o.Group != s.group && o.Projection != "":
			m.Positions[o.Projection] = o.Group
		case o.Group != s.group && o.Feed != nil:
			m.Taken = &o.Group
		case o.Group != s.group:
			m.Collections[o.Key] = o.Group
		case o.Feed != nil && !o.Feed.is(s.feed):
			m.Released = append(m.Released, *o.Feed)
		}
		if !slices.Contains(groups, o.Group) {
			groups = append(groups, o.Group)
		}
	}
	f, err := s.fed(ctx, owners)
	if err != nil {
		return nil, err
	}
	if f != nil && !f.is(s.feed) {
		m.From = &f.Feed
	}
	if f != nil && f.Since.After(m.over) {
		m.over = f.Since
	}
	if m.None() {
		return m, nil
	}
	for _, group := range groups {
		if err := s.of(group).idle(ctx, group != s.group); err != nil {
			return nil, err
		}
	}
	return m, s.leaves(ctx, m, groups)
}

// leaves fills in what is left.
func (s *Store) leaves(ctx context.Context, m *Move, groups []string) error {
	feeds := m.Released
	if m.From != nil {
		feeds = append(slices.Clone(feeds), *m.From)
	}
	for _, group := range groups {
		if group == s.group {
			continue
		}
		f, err := s.of(group).fed(ctx, nil)
		if err != nil {
			return err
		}
		if f != nil {
			feeds = append(feeds, f.Feed)
		}
	}
	for _, feed := range feeds {
		if !feed.is(m.To) && !slices.ContainsFunc(m.Left, feed.is) {
			m.Left = append(m.Left, feed)
		}
	}
	return nil
}

// of is the same store for another group.
func (s *Store) of(group string) *Store {
	other := s.config
	other.Group = group
	return New(s.db.Client(), other)
}

// idle is ErrInUse while a projector of the group lives, and, where the group
// shall be left, while something is parked in it.
func (s *Store) idle(ctx context.Context, left bool) error {
	var hello struct {
		LocalTime time.Time `bson:"localTime"`
	}
	if err := s.admin(ctx, bson.D{{Key: "hello", Value: 1}}, &hello); err != nil {
		return fmt.Errorf("ask the read database for its time: %w", err)
	}
	alive, err := s.own(projection.Processes).CountDocuments(ctx, bson.D{
		{Key: "heartbeatAt", Value: bson.D{{Key: "$gt", Value: hello.LocalTime.Add(-deadAfter)}}}, {Key: "stoppedAt", Value: nil},
	})
	if err != nil {
		return fmt.Errorf("look for projectors of the group %q: %w", s.group, err)
	}
	if alive > 0 {
		return fmt.Errorf("%w: %d projectors of the group %q live, or were killed less than %s ago: stop them first", ErrInUse, alive, s.group, deadAfter)
	}
	if !left {
		return nil
	}
	halted, err := s.Halts.CountHalted(ctx)
	if err != nil {
		return err
	}
	parked, err := s.Parked.CountParked(ctx)
	if err != nil {
		return err
	}
	if halted > 0 || parked > 0 {
		return fmt.Errorf("%w: the group %q has %d halted aggregates and %d parked messages: redrive or discard them there first", ErrInUse, s.group, halted, parked)
	}
	return nil
}

// Move does what PlanMove has planned. One that has failed on the way is planned
// and done again: what the group was fed by is given up last.
func (s *Store) Move(ctx context.Context, m *Move, by string) error {
	for name, group := range m.Collections {
		if err := s.take(ctx, name, group, by, m.over); err != nil {
			return err
		}
	}
	for name, group := range m.Positions {
		if err := s.take(ctx, accountKey(name), group, by, m.over); err != nil {
			return err
		}
	}
	if m.Taken != nil {
		if err := s.take(ctx, m.To.key(), *m.Taken, by, m.over); err != nil {
			return err
		}
	}
	if err := s.claim(ctx, ownership{Key: m.To.key(), Feed: &m.To, By: by, Since: m.over}); err != nil {
		return err
	}
	if m.From != nil {
		if err := s.noteMoved(ctx, *m.From, by, m.over); err != nil {
			return err
		}
	}
	for _, feed := range m.Released {
		_, err := s.db.Collection(projection.Owners).UpdateOne(ctx, bson.D{{Key: "_id", Value: feed.key()}, {Key: "group", Value: s.group}},
			bson.D{{Key: "$unset", Value: bson.D{{Key: "group", Value: ""}, {Key: "by", Value: ""}, {Key: "since", Value: ""}}}})
		if err != nil {
			return fmt.Errorf("give up %s: %w", feed, err)
		}
	}
	return nil
}

// take makes the group's own what was another's.
func (s *Store) take(ctx context.Context, key, from, by string, over time.Time) error {
	result, err := s.db.Collection(projection.Owners).UpdateOne(ctx, bson.D{{Key: "_id", Value: key}, {Key: "group", Value: from}},
		mongo.Pipeline{{{Key: "$set", Value: bson.D{{Key: "group", Value: literal(s.group)}, {Key: "by", Value: literal(by)}, {Key: "since", Value: nowAfter(over)}}}}})
	if err != nil {
		return fmt.Errorf("move %q: %w", key, err)
	}
	if result.MatchedCount == 0 {
		return fmt.Errorf("move %q: %w: somebody else has moved it", key, ErrInUse)
	}
	return nil
}
