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

// ErrElsewhere means that read collections are another group's, or that another
// subscription feeds the group. Two groups know nothing of each other's halts and
// versions, and two subscriptions nothing of each other's order.
var ErrElsewhere = errors.New("projectors of another environment work here")

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

// is tells whether two feeds may be the same.
func (f Feed) is(other Feed) bool {
	return f.Topic == other.Topic && f.Subscription == other.Subscription &&
		(f.Namespace == "" || other.Namespace == "" || f.Namespace == other.Namespace)
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

// ownership is a document of collection_owners; its key is the collection.
type ownership struct {
	Collection string    `bson:"_id"`
	Group      string    `bson:"group"`
	By         string    `bson:"by"`
	Since      time.Time `bson:"since"`
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

// owners are those of collections; one that nobody has claimed has none.
func (s *Store) owners(ctx context.Context, collections []string) ([]ownership, error) {
	cursor, err := s.db.Collection(projection.Owners).Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: collections}}}},
		options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
	var all []ownership
	if err == nil {
		err = cursor.All(ctx, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", projection.Owners, err)
	}
	return all, nil
}

// CheckOwner is ErrElsewhere, with what is whose, where a collection is another
// group's, or the group is fed by another subscription.
func (s *Store) CheckOwner(ctx context.Context, collections []string) error {
	owners, err := s.owners(ctx, collections)
	if err != nil {
		return err
	}
	var problems []string
	for _, o := range owners {
		if o.Group != s.group {
			problems = append(problems, fmt.Sprintf("collection %q is of the group %q, claimed by %s, and not of %q", o.Collection, o.Group, o.By, s.group))
		}
	}
	f, err := s.feeding(ctx)
	if err != nil {
		return err
	}
	if f != nil && !f.is(s.feed) {
		problems = append(problems, fmt.Sprintf("the group %q is fed by %s, since %s started, and not by %s", s.group, f.Feed, f.By, s.feed))
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s. Set READMODEL_GROUP, READMODEL_DATABASE, SERVICEBUS_TOPIC and SERVICEBUS_SUBSCRIPTION as the projectors have them, "+
		"or stop those and run projector move, which makes this environment theirs", ErrElsewhere, strings.Join(problems, "; "))
}

// Claim makes collections the group's own, and the store's subscription its feed,
// where nobody has come before; ErrElsewhere where somebody has.
func (s *Store) Claim(ctx context.Context, collections []string, by string) error {
	if err := s.CheckOwner(ctx, collections); err != nil {
		return err
	}
	now := time.Now()
	for _, name := range collections {
		_, err := s.db.Collection(projection.Owners).UpdateOne(ctx, bson.D{{Key: "_id", Value: name}},
			bson.D{{Key: "$setOnInsert", Value: bson.D{{Key: "group", Value: s.group}, {Key: "by", Value: by}, {Key: "since", Value: now}}}},
			options.UpdateOne().SetUpsert(true))
		if err != nil && !mongo.IsDuplicateKeyError(err) {
			return fmt.Errorf("claim collection %q in %q: %w", name, projection.Owners, err)
		}
	}
	_, err := s.own(projection.Processes).UpdateOne(ctx, bson.D{{Key: "_id", Value: feedKey}},
		bson.D{{Key: "$setOnInsert", Value: feeding{Feed: s.feed, Before: []Feed{}, By: by, Since: now}}}, options.UpdateOne().SetUpsert(true))
	if err != nil && !mongo.IsDuplicateKeyError(err) {
		return fmt.Errorf("note what feeds the group in %q: %w", projection.Processes, err)
	}
	// Another one may have come between the look and the claim.
	return s.CheckOwner(ctx, collections)
}
