package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/backfill"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/resend"
)

// selection is what a resend is of.
type selection struct {
	// total is how many documents there are, negative where that takes too long to find
	// out.
	total int64
	// collection is the id of theirs, "" where it may not be seen.
	collection string
	warnings   []string
}

// selected looks for the documents of a selection. None are refused, and aggregates that
// are not there.
func selected(ctx context.Context, c config.Config, s resend.Selection) (of selection, err error) {
	plan, err := c.Resend(s, 0)
	if err != nil {
		return of, err
	}
	client, err := config.ConnectWithin(c.MongoURI, config.CommandSelectTimeout)
	if err != nil {
		return of, fmt.Errorf("prepare the source: %w", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), config.CloseTimeout)
		defer cancel()
		_ = client.Disconnect(closing) // the process ends anyway
	}()
	origin, err := c.Stream(client).Identify(ctx) // before it is counted
	if err != nil {
		return of, err
	}
	documents := client.Database(c.SourceDatabase).Collection(c.Collections()[0])
	of.collection = origin.Collections[documents.Name()]
	if err := allThere(ctx, c, documents, s.Aggregates); err != nil {
		return of, err
	}
	found, err := matches(ctx, documents, plan.Filter)
	if err == nil && !found {
		err = fmt.Errorf("the selection matches nothing in %s.%s", c.SourceDatabase, documents.Name())
	}
	if err != nil {
		return of, err
	}
	if of.total, err = count(ctx, documents, plan.Filter); err != nil {
		return of, err
	}
	if of.warnings, err = undated(ctx, c, documents, s); err != nil {
		return of, err
	}
	slow, err := unserved(ctx, documents, plan)
	of.warnings = append(of.warnings, slow...)
	return of, err
}

// undated warns of documents that a time leaves out because they have none.
func undated(ctx context.Context, c config.Config, documents *mongo.Collection, s resend.Selection) ([]string, error) {
	filter, err := c.Undated(s)
	if err != nil || filter == nil {
		return nil, err
	}
	found, err := matches(ctx, documents, filter)
	if err != nil || !found {
		return nil, err
	}
	many := "an unknown number of"
	n, err := count(ctx, documents, filter)
	if n >= 0 {
		many = strconv.FormatInt(n, 10)
	}
	return []string{fmt.Sprintf("%s of the documents have neither a date nor an ObjectId in %s (HEAL_FIELD), and are left out: "+
		"no time says when they were written", many, c.HealField)}, err
}

// unserved warns of a collection that has no index for a resend, which then goes through
// all of it for each chunk: what is read has to show all that was sent meanwhile.
func unserved(ctx context.Context, documents *mongo.Collection, plan backfill.Plan) ([]string, error) {
	all, err := documents.EstimatedDocumentCount(ctx)
	if err != nil || all <= manyDocuments {
		return nil, err
	}
	index, err := backfill.Serving(ctx, documents, plan.Order)
	if err != nil || index != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("no index serves it, so it goes through the %d documents of %q once for each %d that it sends; "+
		"publisher doctor names the index: the resend uses it from then on", all, documents.Name(), plan.Chunk)}, nil
}

// allThere returns an error where the source has nothing of an aggregate.
func allThere(ctx context.Context, c config.Config, documents *mongo.Collection, aggregates []string) error {
	var unknown []string
	for _, id := range aggregates {
		one, err := c.Resend(resend.Selection{Aggregates: []string{id}}, 0)
		if err != nil {
			return err
		}
		found, err := matches(ctx, documents, one.Filter)
		if err != nil {
			return err
		}
		if !found {
			unknown = append(unknown, id)
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("the source has nothing of aggregate %s", strings.Join(unknown, ", "))
	}
	return nil
}

// count is how many documents match: an estimate where that takes too long and the
// filter is empty, negative where it is not.
func count(ctx context.Context, documents *mongo.Collection, filter bson.D) (int64, error) {
	counting, cancel := context.WithTimeout(ctx, commandTimeout/4)
	defer cancel()
	all := filter
	if all == nil {
		all = bson.D{}
	}
	found, err := documents.CountDocuments(counting, all)
	switch {
	case err == nil || counting.Err() == nil || ctx.Err() != nil:
		return found, err
	case len(filter) == 0:
		return documents.EstimatedDocumentCount(ctx)
	default:
		return -1, nil
	}
}

// matches reports whether a filter matches a document.
func matches(ctx context.Context, documents *mongo.Collection, filter bson.D) (bool, error) {
	if filter == nil {
		filter = bson.D{}
	}
	err := documents.FindOne(ctx, filter, options.FindOne().SetProjection(bson.D{{Key: "_id", Value: 1}})).Err()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for what is to be sent again: %w", err)
	}
	return true, nil
}
