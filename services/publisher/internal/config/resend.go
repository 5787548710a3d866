package config

import (
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/backfill"
	"changerelay/services/publisher/internal/mapping"
	"changerelay/services/publisher/internal/resend"
)

// mostResent bounds the documents of a chunk of a resend. It takes part of the window
// alone, as of its bytes: the rest is the stream's.
const mostResent = 500

// MayResend returns why nothing of the stream can be sent again.
func (c *Config) MayResend() error {
	switch {
	case c.Mode != ModeDocuments && c.FieldVersion == mapping.None:
		return errors.New("the source numbers no events (FIELD_VERSION=-): their sequences come from the change stream, " +
			"a resend would give them others, and read models would apply them twice")
	case len(c.Collections()) != 1:
		return errors.New("the stream has several collections, and a resend is of one (SOURCE_COLLECTION)")
	case c.SourceFilter != "":
		return errors.New("SOURCE_FILTER leaves out some changes, and a resend cannot: it reads documents")
	}
	return nil
}

// Resend is how the documents of a selection are read for a resend at a rate.
func (c *Config) Resend(s resend.Selection, rate int) (backfill.Plan, error) {
	plan := c.Plan(time.Time{})
	plan.EndShort, plan.Once = true, true
	plan.Earlier = nil // a chunk waits for the stream
	plan.Rate = 0      // whoever sends again keeps it
	plan.Chunk = max(min(mostResent, c.MaxInFlight/windowShare), 1)
	if rate > 0 {
		plan.Chunk = min(plan.Chunk, rate) // a second's: for so long an idle stream may not tell how far it is
	}
	plan.Listed, plan.ListedBytes = plan.Chunk, plan.Bytes // each chunk lists anew
	var all bson.A
	if len(s.Aggregates) > 0 {
		var values bson.A
		for _, id := range s.Aggregates {
			values = append(values, mapping.IDValues(id)...)
		}
		all = append(all, bson.D{{Key: c.aggregateField(), Value: bson.D{{Key: "$in", Value: values}}}})
		plan.Narrow = c.aggregateField() == plan.Order[0]
	}
	if s.Where != "" {
		var where bson.D
		if err := bson.UnmarshalExtJSON([]byte(s.Where), false, &where); err != nil {
			return plan, fmt.Errorf("%q is no filter in Extended JSON: %w", s.Where, err)
		}
		all = append(all, where)
	}
	if written := c.written(s.Since, s.Until); written != nil {
		all = append(all, written)
	}
	if len(all) > 0 {
		plan.Filter = bson.D{{Key: "$and", Value: all}}
	}
	return plan, nil
}

// Events is how the documents of a selection are read at a rate by who sends nothing. What
// is listed then stays from chunk to chunk, and what cannot be read is tried again.
func (c *Config) Events(s resend.Selection, rate int) (backfill.Plan, error) {
	plan, err := c.Resend(s, rate)
	plan.Rate, plan.Once = rate, false
	plan.Listed, plan.ListedBytes = 0, c.share(mostListed)
	return plan, err
}

// aggregateField is the path of the aggregate's id in a document of the source.
func (c *Config) aggregateField() string {
	if c.Mode == ModeDocuments {
		return c.DocumentAggregateID
	}
	return c.FieldAggregateID
}

// Undated matches what of a selection no time selects, as HEAL_FIELD has none; nil where
// no time is asked for.
func (c *Config) Undated(s resend.Selection) (bson.D, error) {
	if s.Since.IsZero() && s.Until.IsZero() {
		return nil, nil
	}
	s.Since, s.Until = time.Time{}, time.Time{}
	plan, err := c.Resend(s, 0)
	all := bson.A{bson.D{{Key: c.HealField, Value: bson.D{{Key: "$not", Value: bson.D{{Key: "$type", Value: bson.A{"date", "objectId"}}}}}}}}
	if plan.Filter != nil {
		all = append(all, plan.Filter)
	}
	return bson.D{{Key: "$and", Value: all}}, err
}

// written matches documents that were written within bounds, by HEAL_FIELD; nil for
// none. Those with the ObjectId of a second in which the time ends may be of before it,
// and match.
func (c *Config) written(since, until time.Time) bson.D {
	if since.IsZero() && until.IsZero() {
		return nil
	}
	var dates, ids bson.D
	if !since.IsZero() {
		dates, ids = append(dates, bson.E{Key: "$gte", Value: since}), append(ids, bson.E{Key: "$gte", Value: backfill.FirstObjectID(since)})
	}
	if !until.IsZero() {
		dates, ids = append(dates, bson.E{Key: "$lt", Value: until}), append(ids, bson.E{Key: "$lt", Value: backfill.FirstObjectID(until.Add(time.Second - 1))})
	}
	return bson.D{{Key: "$or", Value: bson.A{bson.D{{Key: c.HealField, Value: dates}}, bson.D{{Key: c.HealField, Value: ids}}}}}
}
