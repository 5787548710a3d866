package mongostate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

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
	for _, as := range []Resolution{Discarded, Replayed} {
		for {
			some, err := p.purgePage(ctx, before, as, by)
			if err != nil {
				return purged, fmt.Errorf("purge the %s changes of %q: %w", as, p.stream, err)
			}
			if some == 0 {
				break
			}
			purged += some
		}
	}
	return purged, nil
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

// purgePage removes a page of the oldest changes that were dealt with so, and returns
// how many. What was discarded is in the ledger before, and all are counted out.
func (p *Parked) purgePage(ctx context.Context, before time.Time, as Resolution, by string) (int64, error) {
	old := p.resolvedBefore(before, as)
	oldest, err := p.page(ctx, old)
	if err != nil || len(oldest) == 0 {
		return 0, err
	}
	if as == Discarded {
		if err := p.enterDiscarded(ctx, oldest, by); err != nil {
			return 0, err
		}
	}
	parts := map[string][]string{}
	for _, change := range oldest {
		parts[change.Partition] = append(parts[change.Partition], change.ID)
	}
	var removed int64
	for partition, ids := range parts {
		some, err := p.remove(ctx, partition, ids, old)
		if removed += some; err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// remove counts changes of a partition out and removes those that are still old, and
// returns how many. What stays is counted in again, unless that is not known.
func (p *Parked) remove(ctx context.Context, partition string, changes []string, old bson.D) (int64, error) {
	counted := int64(len(changes))
	if err := p.countOut(ctx, partition, counted, changes); err != nil {
		return 0, err
	}
	these := bson.E{Key: "_id", Value: bson.D{{Key: "$in", Value: changes}}}
	var removed int64
	result, err := p.changes.DeleteMany(ctx, append(slices.Clip(old), these))
	switch {
	case err == nil:
		removed = result.DeletedCount
	case !Forbidden(err):
		return 0, err
	}
	if counted == removed {
		return removed, err
	}
	stay, failed := p.ids(ctx, these)
	if failed == nil {
		failed = p.countOut(ctx, partition, removed-counted, stay)
	}
	return removed, errors.Join(err, failed)
}

// Forbidden reports whether the server did nothing of what it was asked to, because it
// may not be asked.
func Forbidden(err error) bool {
	answered, ok := errors.AsType[mongo.ServerError](err)
	return ok && slices.ContainsFunc([]int{
		13,   // Unauthorized
		8000, // AtlasError
	}, answered.HasErrorCode)
}

// enterDiscarded writes into the ledger which changes were never sent.
func (p *Parked) enterDiscarded(ctx context.Context, oldest []ParkedChange, by string) error {
	names := make([]string, len(oldest))
	for i, change := range oldest {
		names[i] = change.name()
	}
	first, last := oldest[0], oldest[len(oldest)-1]
	return p.ledger.Enter(ctx, Gap{
		From: first.Position, FromTime: timeOf(first.Position), ToTime: timeOf(last.Position),
		Cause:    "parked changes purged",
		Error:    fmt.Sprintf("%d changes were discarded and never sent: %s", len(names), strings.Join(names, "; ")),
		Decision: string(Discarded), At: time.Now(), Instance: by, Term: last.Term, What: strings.Join(names, "; "),
	})
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
