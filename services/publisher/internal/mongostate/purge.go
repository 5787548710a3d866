package mongostate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
)

// Purge removes the changes of the stream that were dealt with, and left alone
// since before a time; with dry set it only counts them. What is still parked it
// never touches. What was discarded, and so never sent, is in the ledger by its
// ids before it is removed. A leader whose checkpoint was moved back before such a
// change parks it anew.
func (p *Parked) Purge(ctx context.Context, before time.Time, by string, dry bool) (int64, error) {
	if dry {
		count, err := p.changes.CountDocuments(ctx, p.resolvedBefore(before, Replayed, Discarded))
		if err != nil {
			return 0, fmt.Errorf("count the resolved changes of %q: %w", p.stream, err)
		}
		return count, nil
	}
	var purged int64
	for {
		some, err := p.purgeDiscarded(ctx, before, by)
		if err != nil {
			return purged, fmt.Errorf("purge the discarded changes of %q: %w", p.stream, err)
		}
		if some == 0 {
			break
		}
		purged += some
	}
	result, err := p.changes.DeleteMany(ctx, p.resolvedBefore(before, Replayed))
	if err != nil {
		return purged, fmt.Errorf("purge the replayed changes of %q: %w", p.stream, err)
	}
	return purged + result.DeletedCount, nil
}

// resolvedBefore is the filter of what was dealt with in one of some ways, and
// left alone since before a time.
func (p *Parked) resolvedBefore(before time.Time, as ...Resolution) bson.D {
	return bson.D{
		{Key: "stream", Value: p.stream},
		{Key: "resolved", Value: bson.D{{Key: "$in", Value: as}}},
		{Key: "actions.at", Value: bson.D{{Key: "$lt", Value: before}, {Key: "$not", Value: bson.D{{Key: "$gte", Value: before}}}}},
	}
}

// purgeDiscarded removes a page of the oldest discarded changes behind their entry in the
// ledger, and returns how many.
func (p *Parked) purgeDiscarded(ctx context.Context, before time.Time, by string) (int64, error) {
	old := p.resolvedBefore(before, Discarded)
	oldest, err := p.page(ctx, old)
	if err != nil || len(oldest) == 0 {
		return 0, err
	}
	ids, names := make(bson.A, len(oldest)), make([]string, len(oldest))
	for i, change := range oldest {
		ids[i], names[i] = change.ID, change.name()
	}
	first, last := oldest[0], oldest[len(oldest)-1]
	err = p.ledger.Enter(ctx, Gap{
		From: first.Position, FromTime: timeOf(first.Position), ToTime: timeOf(last.Position),
		Cause:    "parked changes purged",
		Error:    fmt.Sprintf("%d changes were discarded and never sent: %s", len(names), strings.Join(names, "; ")),
		Decision: string(Discarded), At: time.Now(), Instance: by, Term: last.Term, What: strings.Join(names, "; "),
	})
	if err != nil {
		return 0, err
	}
	result, err := p.changes.DeleteMany(ctx, append(old, bson.E{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}))
	if err != nil {
		return 0, err
	}
	return result.DeletedCount, nil
}

// name says which change it is, for people.
func (c *ParkedChange) name() string {
	name := c.ID
	if c.EventID != "" {
		name += fmt.Sprintf(" (event %s of %q)", c.EventID, c.AggregateID)
	}
	if c.DocumentKey != nil {
		name += " of document " + c.DocumentKey.String()
	}
	return name
}

// timeOf is the cluster time of a position; zero where it has none.
func timeOf(position string) time.Time {
	seconds, _, err := contract.Position(position).ClusterTime()
	if err != nil {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0).UTC()
}
