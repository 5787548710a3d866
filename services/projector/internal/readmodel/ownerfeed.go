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
	return strings.EqualFold(f.Topic, other.Topic) && strings.EqualFold(f.Subscription, other.Subscription) &&
		(f.Namespace == "" || other.Namespace == "" || strings.EqualFold(f.Namespace, other.Namespace))
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
}

// foreign says why a parked message is of none of the group's feeds, "" where it is
// of one. Of one that an older release has parked the topic is not known.
func (f *feeding) foreign(p *parkedMessage) string {
	if f == nil {
		return ""
	}
	from := Feed{Topic: p.Topic, Subscription: p.Subscription}
	same := func(feed Feed) bool {
		return from.Subscription == feed.Subscription && (from.Topic == "" || from.Topic == feed.Topic)
	}
	if same(f.Feed) || slices.ContainsFunc(f.Before, same) {
		return ""
	}
	return fmt.Sprintf("it came from %s, which does not feed the group: %s does. If it is the group's, run projector move in the environment of that subscription, and again in that of this one", from, f.Feed)
}

// feeding reads what feeds the group: of an older release, the subscription whose
// projectors were the last to start. nil where nothing is known.
func (s *Store) feeding(ctx context.Context) (*feeding, error) {
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

// fed is what feeds the group by owners, the group's own among them, where what is
// noted beside its processes is lost, or older. nil where nothing is known.
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
	if claimed != nil {
		return claimed, nil
	}
	return f, nil
}

// noteFeed notes, unless something is noted already, that the store's subscription
// feeds the group.
func (s *Store) noteFeed(ctx context.Context, by string) error {
	_, err := s.own(projection.Processes).UpdateOne(ctx, bson.D{{Key: "_id", Value: feedKey}},
		bson.D{{Key: "$setOnInsert", Value: feeding{Feed: s.feed, Before: []Feed{}, By: by, Since: time.Now()}}}, options.UpdateOne().SetUpsert(true))
	if err != nil && !mongo.IsDuplicateKeyError(err) {
		return fmt.Errorf("note what feeds the group in %q: %w", projection.Processes, err)
	}
	return nil
}

// noteMoved notes that the store's subscription feeds the group in place of another.
func (s *Store) noteMoved(ctx context.Context, from Feed, by string) error {
	_, err := s.own(projection.Processes).UpdateOne(ctx, bson.D{{Key: "_id", Value: feedKey}}, bson.D{
		{Key: "$set", Value: bson.D{
			{Key: "namespace", Value: s.feed.Namespace},
			{Key: "topic", Value: s.feed.Topic},
			{Key: "subscription", Value: s.feed.Subscription},
			{Key: "by", Value: by},
			{Key: "since", Value: time.Now()},
		}},
		{Key: "$addToSet", Value: bson.D{{Key: "before", Value: from}}},
	}, options.UpdateOne().SetUpsert(true))
	if err != nil {
		return fmt.Errorf("move the group %q: %w", s.group, err)
	}
	return nil
}

// Feeds are the group's feed, first, and those that it was moved from.
func (s *Store) Feeds(ctx context.Context) ([]Feed, error) {
	f, err := s.feeding(ctx)
	if err != nil || f == nil {
		return nil, err
	}
	feeds := slices.Clone(f.Before)
	slices.Reverse(feeds)
	return append([]Feed{f.Feed}, feeds...), nil
}
