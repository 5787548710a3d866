package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/projection"
)

// Feed is the subscription whose messages a group's read collections are made of.
type Feed struct {
	// Namespace is the host name of the broker; "" where not known, which is any.
	Namespace    string `bson:"namespace" json:"namespace,omitempty"`
	Topic        string `bson:"topic" json:"topic"`
	Subscription string `bson:"subscription" json:"subscription"`
}

func (f Feed) String() string {
	of := fmt.Sprintf("subscription %q of topic %q", f.Subscription, f.Topic)
	if f.Namespace != "" {
		of += fmt.Sprintf(" in %q", f.Namespace)
	}
	return of
}

// is tells whether two feeds may be the same. Names of the broker have no case.
func (f Feed) is(other Feed) bool {
	return strings.EqualFold(f.Topic, other.Topic) && strings.EqualFold(f.Subscription, other.Subscription) && f.Beside(other)
}

// Beside tells whether two feeds may be of one namespace.
func (f Feed) Beside(other Feed) bool {
	return f.Namespace == "" || other.Namespace == "" || strings.EqualFold(f.Namespace, other.Namespace)
}

// key is that of the feed beside collections: no collection has a "$" in its name.
func (f Feed) key() string {
	return strings.ToLower("$" + f.Namespace + "/" + f.Topic + "/" + f.Subscription)
}

// feedKey is the key of a group's feed, beside its processes.
const feedKey = "feed"

// feeding is what is known of a group's feed.
type feeding struct {
	Feed `bson:",inline"`
	// Before are those that it was moved from, the latest last.
	Before []Feed    `bson:"before"`
	By     string    `bson:"by"`
	Since  time.Time `bson:"since"`
	// UnnotedAt is until when projectors that note no versions may have lived.
	UnnotedAt time.Time `bson:"unnotedAt,omitempty"`
	// NotedSince is since when all projectors note them; zero where they do not.
	NotedSince time.Time `bson:"notedSince,omitempty"`
}

// foreign says why a parked message is of none of the group's feeds, "" where it is
// of one. Of one that an older release has parked the topic is not known.
func (f *feeding) foreign(p *parkedMessage) string {
	if f == nil {
		return ""
	}
	from := Feed{Topic: p.Topic, Subscription: p.Subscription}
	same := func(feed Feed) bool {
		return strings.EqualFold(from.Subscription, feed.Subscription) && (from.Topic == "" || strings.EqualFold(from.Topic, feed.Topic))
	}
	if same(f.Feed) || slices.ContainsFunc(f.Before, same) {
		return ""
	}
	return fmt.Sprintf("it came from %s, which does not feed the group: %s does. If it is the group's, run projector move in the environment of that subscription, and again in that of this one", from, f.Feed)
}

// feeding reads what feeds the group: of an older release, the subscription whose
// projectors were the last to start. nil where nothing is known.
func (s *database) feeding(ctx context.Context) (*feeding, error) {
	var stored feeding
	err := s.own(projection.Processes).FindOne(ctx, bson.D{{Key: "_id", Value: feedKey}}).Decode(&stored)
	if err == nil {
		return &stored, nil
	}
	if !errors.Is(err, mongo.ErrNoDocuments) {
		return nil, fmt.Errorf("read what feeds the group in %q: %w", projection.Processes, err)
	}
	deployments, err := s.Deployments(ctx)
	if err != nil || len(deployments) == 0 {
		return nil, err
	}
	last := &deployments[0]
	return &feeding{Feed: Feed{Topic: last.Topic, Subscription: last.Subscription}, By: last.StartedBy, Since: last.StartedAt}, nil
}

// fed is what feeds the group, by what is noted beside its processes and by owners,
// the group's own among them: where one of them was restored from before a move, the
// later word counts. nil where nothing is known.
func (s *Store) fed(ctx context.Context, owners []ownership) (*feeding, error) {
	f, err := s.feeding(ctx)
	if err != nil {
		return nil, err
	}
	var claimed *feeding
	for _, o := range owners {
		if o.Feed == nil || o.Group != s.group {
			continue
		}
		if f != nil && f.is(*o.Feed) {
			return f, nil
		}
		if claimed == nil || o.Since.After(claimed.Since) {
			claimed = &feeding{Feed: *o.Feed, By: o.By, Since: o.Since}
		}
	}
	if claimed != nil && (f == nil || claimed.Since.After(f.Since)) {
		if f != nil {
			claimed.Before = slices.Concat(f.Before, []Feed{f.Feed})
		}
		return claimed, nil
	}
	return f, nil
}

// noteFeed notes, unless something is noted already, that the store's subscription
// feeds the group.
func (s *Store) noteFeed(ctx context.Context, by string) error {
	fields := bson.D{
		{Key: "namespace", Value: literal(s.feed.Namespace)},
		{Key: "topic", Value: literal(s.feed.Topic)},
		{Key: "subscription", Value: literal(s.feed.Subscription)},
		{Key: "before", Value: literal(bson.A{})},
		{Key: "by", Value: literal(by)},
		{Key: "since", Value: "$$NOW"},
	}
	for i := range fields {
		fields[i].Value = bson.D{{Key: "$ifNull", Value: bson.A{"$" + fields[i].Key, fields[i].Value}}}
	}
	_, err := s.own(projection.Processes).UpdateOne(ctx, bson.D{{Key: "_id", Value: feedKey}},
		mongo.Pipeline{{{Key: "$set", Value: fields}}}, options.UpdateOne().SetUpsert(true))
	if err != nil && !mongo.IsDuplicateKeyError(err) {
		return fmt.Errorf("note what feeds the group in %q: %w", projection.Processes, err)
	}
	return nil
}

// noteBefore adds subscriptions to those that the group was moved from, the latest last.
func (s *Store) noteBefore(ctx context.Context, left []Feed) error {
	_, err := s.own(projection.Processes).UpdateOne(ctx, bson.D{{Key: "_id", Value: feedKey}},
		mongo.Pipeline{{{Key: "$set", Value: bson.D{{Key: "before", Value: beforeAnd(left)}}}}})
	if err != nil {
		return fmt.Errorf("note what has fed the group in %q: %w", projection.Processes, err)
	}
	return nil
}

// beforeAnd is what the group was moved from, and more.
func beforeAnd(more []Feed) bson.D {
	before := bson.D{{Key: "$ifNull", Value: bson.A{"$before", bson.A{}}}}
	return bson.D{{Key: "$concatArrays", Value: bson.A{before, bson.D{{Key: "$filter", Value: bson.D{
		{Key: "input", Value: literal(more)}, {Key: "cond", Value: bson.D{{Key: "$not", Value: bson.D{{Key: "$in", Value: bson.A{"$$this", before}}}}}},
	}}}}}}
}

// noteMoved notes that the store's subscription feeds the group in place of another,
// since later than over.
func (s *Store) noteMoved(ctx context.Context, from Feed, by string, over time.Time) error {
	_, err := s.own(projection.Processes).UpdateOne(ctx, bson.D{{Key: "_id", Value: feedKey}}, mongo.Pipeline{{{Key: "$set", Value: bson.D{
		{Key: "namespace", Value: literal(s.feed.Namespace)},
		{Key: "topic", Value: literal(s.feed.Topic)},
		{Key: "subscription", Value: literal(s.feed.Subscription)},
		{Key: "by", Value: literal(by)},
		{Key: "since", Value: nowAfter(over)},
		{Key: "before", Value: beforeAnd([]Feed{from})},
	}}}}, options.UpdateOne().SetUpsert(true))
	if err != nil {
		return fmt.Errorf("move the group %q: %w", s.group, err)
	}
	return nil
}

// Feeds are the group's feed, first, and those that what it has was moved from, the
// latest first.
func (s *Store) Feeds(ctx context.Context) ([]Feed, error) {
	owners, err := s.owners(ctx, nil)
	if err != nil {
		return nil, err
	}
	f, err := s.fed(ctx, owners)
	if err != nil || f == nil {
		return nil, err
	}
	feeds := []Feed{f.Feed}
	for _, feed := range slices.Backward(f.Before) {
		if !slices.ContainsFunc(feeds, feed.is) {
			feeds = append(feeds, feed)
		}
	}
	return feeds, nil
}
