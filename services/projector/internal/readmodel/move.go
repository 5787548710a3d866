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

	"changerelay/services/projector/internal/projection"
)

// ErrInUse means that something of those who would be moved from is not done with.
var ErrInUse = errors.New("it is still in use")

// Move gives read collections to another group, a group to another subscription, or a
// subscription to another group.
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
	// Kept are the collections that To has fed and that another group keeps: nothing
	// feeds them any more.
	Kept []string `json:"kept,omitempty"`
	// Left are the subscriptions whose messages are applied to what is moved now, and
	// shall not be any more.
	Left []Feed `json:"left,omitempty"`
	// Former are those that what is moved was left by before, and that feed nobody else
	// now: they may have dead letters of it.
	Former []Feed `json:"-"`
	// before are all of Left and Former, and those that feed others now, the latest last.
	before []Feed
	// keepers are the groups that keep collections, by what has fed them.
	keepers map[Feed]string
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
	m := &Move{Collections: map[string]string{}, Positions: map[string]string{}, To: s.feed, keepers: map[Feed]string{}}
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
		other := s.of(group)
		if err := other.idle(ctx, group != s.group); err != nil {
			return nil, err
		}
		if err := other.leaves(ctx, m, group != s.group); err != nil {
			return nil, err
		}
	}
	m.Former = slices.DeleteFunc(m.Former, func(feed Feed) bool { return slices.ContainsFunc(m.Left, feed.is) })
	return m, nil
}

// Keeper is the group that keeps collections which a feed of Left, or To, has fed; false
// where all that it has fed is moved.
func (m *Move) Keeper(feed Feed) (group string, keeps bool) {
	group, keeps = m.keepers[feed]
	return group, keeps
}

// leaves adds the feeds that the group leaves, by any note about it, and what it keeps
// where it is another than the one that is moved to.
func (s *Store) leaves(ctx context.Context, m *Move, another bool) error {
	f, err := s.feeding(ctx)
	if err != nil {
		return err
	}
	owners, err := s.owners(ctx, nil)
	if err != nil {
		return err
	}
	var kept []string
	if another {
		if kept, err = s.keeps(ctx, m.Collections); err != nil {
			return err
		}
	}
	var feeds, former []Feed
	if f != nil {
		feeds, former = append(feeds, f.Feed), f.Before
	}
	for _, o := range owners {
		if o.Feed != nil && o.Group == s.group {
			feeds = append(feeds, *o.Feed)
		}
	}
	for _, feed := range former {
		if feed.is(m.To) || slices.ContainsFunc(m.before, feed.is) {
			continue
		}
		holder, err := s.Holder(ctx, feed)
		if err != nil {
			return err
		}
		if m.before = append(m.before, feed); holder == "" {
			m.Former = append(m.Former, feed)
		}
	}
	for _, feed := range feeds {
		switch {
		case feed.is(m.To) && len(kept) > 0:
			m.Kept, m.keepers[m.To] = kept, s.group
		case feed.is(m.To):
		case !slices.ContainsFunc(m.Left, feed.is):
			m.Left, m.before = append(m.Left, feed), append(m.before, feed)
			if len(kept) > 0 {
				m.keepers[feed] = s.group
			}
		}
	}
	return nil
}

// keeps are the collections of the group but for those that are moved.
func (s *Store) keeps(ctx context.Context, moved map[string]string) (names []string, err error) {
	err = s.db.Collection(projection.Owners).Distinct(ctx, "_id", bson.D{
		{Key: "group", Value: s.group}, {Key: "_id", Value: bson.Regex{Pattern: "^[^$]"}},
	}).Decode(&names)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", projection.Owners, err)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		_, is := moved[name]
		return is
	}), nil
}

// Holder is another group that has collections and that a subscription feeds, said for
// people; "" where there is none.
func (s *Store) Holder(ctx context.Context, feed Feed) (string, error) {
	cursor, err := s.db.Collection(projection.Owners).Find(ctx, bson.D{
		{Key: "feed", Value: bson.D{{Key: "$exists", Value: true}}}, {Key: "group", Value: bson.D{{Key: "$exists", Value: true}, {Key: "$ne", Value: s.group}}},
	}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
	var all []ownership
	if err == nil {
		err = cursor.All(ctx, &all)
	}
	if err != nil {
		return "", fmt.Errorf("read %q: %w", projection.Owners, err)
	}
	for _, o := range all {
		if !o.Feed.is(feed) {
			continue
		}
		kept, err := s.of(o.Group).keeps(ctx, nil)
		if err != nil {
			return "", err
		}
		if len(kept) > 0 {
			return fmt.Sprintf("%s feeds the group %q, which has the collections %q", feed, o.Group, kept), nil
		}
	}
	return "", nil
}

// At is the same store for another subscription of the group.
func (s *Store) At(feed Feed) *Store {
	other := s.config
	other.Feed = feed
	return New(s.db.Client(), other)
}

// FedBy tells whether a feed may be the store's own.
func (s *Store) FedBy(feed Feed) bool { return s.feed.is(feed) }

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
// and done again: what it leaves is noted first, and what the group was fed by is given
// up last.
func (s *Store) Move(ctx context.Context, m *Move, by string) error {
	if len(m.before) > 0 {
		if err := s.noteFeed(ctx, by); err != nil {
			return err
		}
		if err := s.noteBefore(ctx, m.before); err != nil {
			return err
		}
	}
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
