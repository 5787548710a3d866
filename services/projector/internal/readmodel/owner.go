package readmodel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/projection"
)

// ErrElsewhere means that read collections are another group's, or that another
// subscription feeds the group, or the subscription another group. Two groups know
// nothing of each other's halts and versions, two subscriptions nothing of each
// other's order, and a message of a subscription comes to one of its readers alone.
var ErrElsewhere = errors.New("projectors of another environment work here")

// ownership is a document of collection_owners: whose a read collection is, or a
// projection's positions, or which group a subscription feeds. One that was given up
// has no group.
type ownership struct {
	// Key is the collection's name, or the key of Feed, or of Projection.
	Key  string `bson:"_id"`
	Feed *Feed  `bson:"feed,omitempty"` // of a subscription alone
	// Projection and Documents, its collections, are of positions alone.
	Projection string   `bson:"projection,omitempty"`
	Documents  []string `bson:"documents,omitempty"`

	Group string    `bson:"group"`
	By    string    `bson:"by"`
	Since time.Time `bson:"since"`
}

// owners are those of collections, of the store's subscription, and the group's own
// of other subscriptions. What nobody has claimed has none.
func (s *Store) owners(ctx context.Context, collections []string) ([]ownership, error) {
	cursor, err := s.db.Collection(projection.Owners).Find(ctx, bson.D{
		{Key: "group", Value: bson.D{{Key: "$exists", Value: true}}},
		{Key: "$or", Value: bson.A{
			bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: s.claimed(collections)}}}},
			bson.D{{Key: "feed", Value: bson.D{{Key: "$exists", Value: true}}}, {Key: "group", Value: s.group}},
		}},
	}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
	var all []ownership
	if err == nil {
		err = cursor.All(ctx, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", projection.Owners, err)
	}
	return all, nil
}

// claimed are the keys of what a projector claims.
func (s *Store) claimed(collections []string) bson.A {
	keys := bson.A{s.feed.key()}
	for _, name := range collections {
		keys = append(keys, name)
	}
	for _, account := range s.accounts() {
		keys = append(keys, account.Key)
	}
	return keys
}

// CheckOwner is ErrElsewhere, with what is whose, where a collection is another
// group's, positions are of other documents or another group, the group is fed by another subscription, or the store's subscription
// feeds another group.
func (s *Store) CheckOwner(ctx context.Context, collections []string) error {
	owners, err := s.owners(ctx, collections)
	if err != nil {
		return err
	}
	var problems []string
	for _, o := range owners {
		switch {
		case o.Projection != "":
			if problem := s.strangeAccount(&o); problem != "" {
				problems = append(problems, problem)
			}
		case o.Group == s.group:
		case o.Feed == nil:
			problems = append(problems, fmt.Sprintf("collection %q is of the group %q, claimed by %s, and not of %q", o.Key, o.Group, o.By, s.group))
		default:
			problems = append(problems, fmt.Sprintf("%s feeds the group %q, since %s started, and what one group takes the other never sees: "+
				"create a subscription of its own for the group %q and set SERVICEBUS_SUBSCRIPTION to it", o.Feed, o.Group, o.By, s.group))
		}
	}
	f, err := s.fed(ctx, owners)
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

// Claim makes collections the group's own, the store's subscription its feed, and
// the group the one that it feeds, where nobody has come before; ErrElsewhere where
// somebody has.
func (s *Store) Claim(ctx context.Context, collections []string, by string) error {
	if err := s.CheckOwner(ctx, collections); err != nil {
		return err
	}
	if err := s.claimShapes(ctx); err != nil {
		return err
	}
	for _, name := range collections {
		if err := s.claim(ctx, ownership{Key: name, By: by}); err != nil {
			return err
		}
	}
	for _, account := range s.accounts() {
		account.By = by
		if err := s.claim(ctx, account); err != nil {
			return err
		}
	}
	if err := s.noteFeed(ctx, by); err != nil {
		return err
	}
	// Another one may have come between the look and the claim, each time. Whom
	// another subscription of the group has overtaken must not keep this one.
	if err := s.CheckOwner(ctx, collections); err != nil {
		return err
	}
	owners, err := s.owners(ctx, nil)
	if err != nil {
		return err
	}
	if err := s.claim(ctx, ownership{Key: s.feed.key(), Feed: &s.feed, By: by, Since: latest(owners)}); err != nil {
		return err
	}
	return s.CheckOwner(ctx, collections)
}

// nowAfter is the server's time, and later than a time in any case: also within one
// millisecond, and where a clock was ahead.
func nowAfter(over time.Time) bson.D {
	return bson.D{{Key: "$max", Value: bson.A{"$$NOW", over.Add(time.Millisecond)}}}
}

// latest is when the last of what owners have was noted.
func latest(owners []ownership) (at time.Time) {
	for _, o := range owners {
		if o.Since.After(at) {
			at = o.Since
		}
	}
	return at
}

// claim makes something the group's own that is nobody's, as of later than o.Since.
func (s *Store) claim(ctx context.Context, o ownership) error {
	fields := bson.D{{Key: "group", Value: literal(s.group)}, {Key: "by", Value: literal(o.By)}, {Key: "since", Value: nowAfter(o.Since)}}
	if o.Projection != "" {
		fields = append(fields, bson.E{Key: "projection", Value: literal(o.Projection)}, bson.E{Key: "documents", Value: literal(o.Documents)})
	}
	for i := range fields {
		fields[i].Value = bson.D{{Key: "$ifNull", Value: bson.A{"$" + fields[i].Key, fields[i].Value}}}
	}
	if o.Feed != nil {
		fields = append(fields, bson.E{Key: "feed", Value: literal(o.Feed)})
	}
	_, err := s.db.Collection(projection.Owners).UpdateOne(ctx, bson.D{{Key: "_id", Value: o.Key}},
		mongo.Pipeline{{{Key: "$set", Value: fields}}}, options.UpdateOne().SetUpsert(true))
	if err != nil && !mongo.IsDuplicateKeyError(err) {
		return fmt.Errorf("claim %q in %q: %w", o.Key, projection.Owners, err)
	}
	return nil
}

// Keep is CheckOwner, and notes again what Claim and Deploy have noted, where that
// is lost while the projector runs, or is older: then it returns what was.
func (s *Store) Keep(ctx context.Context, collections []string, by string) (again string, err error) {
	if err := s.CheckOwner(ctx, collections); err != nil {
		return "", err
	}
	f, err := s.feeding(ctx)
	if err != nil {
		return "", err
	}
	if f != nil && !f.is(s.feed) { // older than the claim
		return fmt.Sprintf("that %s feeds the group, which it was moved from", f.Feed), s.noteMoved(ctx, f.Feed, by, f.Since)
	}
	for _, noted := range []struct {
		in   *mongo.Collection
		keys bson.A
	}{
		{s.db.Collection(projection.Owners), s.claimed(collections)},
		{s.own(projection.Processes), bson.A{feedKey}},
	} {
		n, err := noted.in.CountDocuments(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: noted.keys}}}})
		if err != nil {
			return "", fmt.Errorf("read %q: %w", noted.in.Name(), err)
		}
		if n == int64(len(noted.keys)) {
			continue
		}
		again = fmt.Sprintf("what is lost of %q", noted.in.Name())
		if err := s.Claim(ctx, collections, by); err != nil {
			return again, err
		}
		break
	}
	older, err := s.redeploy(ctx, by)
	if older && again == "" {
		again = "what these projectors are"
	}
	return again, err
}
