package mongostate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/relay"
)

// maxParkedBytes is how large a change may be to be kept whole: a document of
// 16 MiB must hold it and what is said about it.
const maxParkedBytes = 16<<20 - 64<<10

// Parked are the parked changes of one whole stream.
type Parked struct {
	stream      string
	changes     *mongo.Collection
	checkpoints *mongo.Collection
	records     *mongo.Collection
	ledger      *Gaps
}

// Parked returns the store of the stream's parked changes.
func (d *Database) Parked(stream string) *Parked {
	return &Parked{
		stream: stream, ledger: d.Gaps(stream),
		changes: d.db.Collection(parked), checkpoints: d.db.Collection(checkpoints), records: d.db.Collection(streams),
	}
}

// ParkedChange is what is known of a parked change; without the change itself
// when it comes from a list.
type ParkedChange struct {
	ID          string    `bson:"_id" json:"id"`
	Stream      string    `bson:"stream" json:"stream"`
	Partition   string    `bson:"partition,omitempty" json:"-"` // that parked it; empty is an earlier release's
	Position    string    `bson:"position" json:"position"`
	Reason      string    `bson:"reason" json:"reason"`
	AggregateID string    `bson:"aggregateId,omitempty" json:"aggregate_id,omitempty"`
	EventID     string    `bson:"eventId,omitempty" json:"event_id,omitempty"`
	Term        int64     `bson:"term" json:"term"`
	ParkedAt    time.Time `bson:"parkedAt" json:"parked_at"`
	DocumentKey bson.Raw  `bson:"documentKey,omitempty" json:"-"`
	// Resolved is what was done with it in the end: empty while it is parked.
	Resolved Resolution `bson:"resolved,omitempty" json:"resolved,omitempty"`
	// Actions are what operators did with it, oldest first.
	Actions []ParkedAction `bson:"actions,omitempty" json:"actions,omitempty"`

	Change     bson.Raw `bson:"change,omitempty" json:"-"`
	ChangeBSON []byte   `bson:"changeBson,omitempty" json:"-"`
	claimed    string   // after Claim: which claim it is
	claimant   string   // after Claim: whose it is
}

// Raw is the change itself; nil where it was not read or could not be kept.
func (c *ParkedChange) Raw() []byte {
	if c.Change != nil {
		return c.Change
	}
	return c.ChangeBSON
}

// ID is that by which a change of the stream is parked.
func (p *Parked) ID(change relay.Change) string { return parkedID(p.stream, change) }

// Has reports whether a change is parked, dealt with or not.
func (p *Parked) Has(ctx context.Context, id string) (bool, error) {
	return p.has(ctx, id, byStream(id))
}

// Waits reports whether a change is parked, and not dealt with.
func (p *Parked) Waits(ctx context.Context, id string) (bool, error) {
	return p.has(ctx, id, append(p.unresolved(), bson.E{Key: "_id", Value: id}))
}

func (p *Parked) has(ctx context.Context, id string, which bson.D) (bool, error) {
	err := p.changes.FindOne(ctx, which, options.FindOne().SetProjection(bson.D{{Key: "_id", Value: 1}})).Err()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for parked change %s: %w", id, err)
	}
	return true, nil
}

// Reader is who reads a change that it cannot send: a partition, since it was claimed.
type Reader struct {
	Partition string
	Since     time.Time
}

// Park keeps a change that a partition cannot send, and returns whose it is: another
// partition's where that has kept it before. What was replayed or discarded before it
// was read is parked again.
func (p *Parked) Park(ctx context.Context, by Reader, parked relay.Parked) (owner string, err error) {
	id := parkedID(p.stream, parked.Change)
	summary := bson.D{
		{Key: "stream", Value: p.stream},
		{Key: "partition", Value: by.Partition},
		{Key: "position", Value: string(parked.Change.Position)},
		{Key: "token", Value: bson.Raw(parked.Change.Token)},
		{Key: "reason", Value: parked.Reason},
		{Key: "term", Value: parked.Term},
		{Key: "parkedAt", Value: time.Now()},
	}
	if parked.AggregateID != "" {
		summary = append(summary,
			bson.E{Key: "aggregateId", Value: parked.AggregateID},
			bson.E{Key: "eventId", Value: parked.EventID})
	}
	if key, ok := bson.Raw(parked.Change.Raw).Lookup("documentKey").DocumentOK(); ok {
		summary = append(summary, bson.E{Key: "documentKey", Value: key})
	}
	if len(parked.Change.Raw) > maxParkedBytes {
		return p.insert(ctx, id, by, append(summary, bson.E{Key: "omitted", Value: "the change is too large to be kept here; see the source document"}))
	}
	owner, err = p.insert(ctx, id, by, append(summary, bson.E{Key: "change", Value: bson.Raw(parked.Change.Raw)}))
	if refused(err) {
		// Field names that this server does not store, but the source did.
		return p.insert(ctx, id, by, append(summary, bson.E{Key: "changeBson", Value: parked.Change.Raw}))
	}
	return owner, err
}

// insert adds the document unless it is there: then the very same change was
// parked before, and is open again. It returns whose it is.
func (p *Parked) insert(ctx context.Context, id string, by Reader, document bson.D) (owner string, err error) {
	result, err := p.changes.UpdateOne(ctx, byStream(id), bson.D{{Key: "$setOnInsert", Value: document}}, options.UpdateOne().SetUpsert(true))
	if err != nil && !mongo.IsDuplicateKeyError(err) {
		return "", fmt.Errorf("park change %s: %w", id, err)
	}
	if err == nil && result.UpsertedCount == 1 {
		return by.Partition, nil
	}
	kept, err := p.summary(ctx, id)
	if err == nil {
		err = p.reopen(ctx, id, by, document)
	}
	if err != nil {
		return "", fmt.Errorf("park change %s: %w", id, err)
	}
	return kept.Partition, nil
}

// reopen parks a change again that was dealt with before it was read: the stream went
// back before it, and passes it once more. It is known by a later term than the one that
// has parked it last, or, where terms began anew, by the server's clock. What was done
// with it after a term began stands: a leader that was frozen has read it before.
func (p *Parked) reopen(ctx context.Context, id string, by Reader, document bson.D) error {
	term := lookup(document, "term")
	open := append(p.unresolved(), bson.E{Key: "_id", Value: id})
	if _, err := p.changes.UpdateOne(ctx, open, bson.D{{Key: "$max", Value: bson.D{{Key: "term", Value: term}}}}); err != nil {
		return err
	}
	set := bson.D{{Key: "term", Value: term}, {Key: "actions", Value: withAction(ParkedAgain, by.Partition, fmt.Sprintf("read again in term %d", term))}}
	for _, field := range []string{"reason", "aggregateId", "eventId"} {
		if value := lookup(document, field); value != nil {
			set = append(set, bson.E{Key: field, Value: literal(value)})
		}
	}
	_, err := p.changes.UpdateOne(ctx, bson.D{
		{Key: "_id", Value: id},
		{Key: "resolved", Value: bson.D{{Key: "$ne", Value: nil}}},
		{Key: "$or", Value: bson.A{
			bson.D{{Key: "term", Value: bson.D{{Key: "$lt", Value: term}}}},
			bson.D{{Key: "actions.at", Value: bson.D{{Key: "$not", Value: bson.D{{Key: "$gte", Value: by.Since}}}}}},
		}},
	}, mongo.Pipeline{{{Key: "$set", Value: set}}, {{Key: "$unset", Value: bson.A{"resolved"}}}})
	return err
}

// lookup is a field of a document, or nil.
func lookup(document bson.D, field string) any {
	for _, e := range document {
		if e.Key == field {
			return e.Value
		}
	}
	return nil
}

// refused reports whether the server refused the document itself.
func refused(err error) bool {
	failure, ok := errors.AsType[mongo.WriteException](err)
	return ok && len(failure.WriteErrors) > 0
}

// Count returns how many changes of the stream are parked, neither replayed nor
// discarded.
func (p *Parked) Count(ctx context.Context) (int64, error) {
	return p.changes.CountDocuments(ctx, p.unresolved())
}

// withoutChange leaves out of a parked change what may be as large as a document can be.
var withoutChange = bson.D{{Key: "change", Value: 0}, {Key: "changeBson", Value: 0}, {Key: "token", Value: 0}}

// listPage is how many parked changes are listed at a time.
const listPage = 100

// Each calls visit for every parked change of the stream, oldest first; for
// those that were dealt with only when all is set. A visit may take as long as
// it likes: nothing is open on the server meanwhile.
func (p *Parked) Each(ctx context.Context, all bool, visit func(ParkedChange) error) error {
	which := p.unresolved()
	if all {
		which = bson.D{{Key: "stream", Value: p.stream}}
	}
	for behind := (bson.D{}); ; {
		page, err := p.page(ctx, append(slices.Clone(which), behind...))
		if err != nil {
			return fmt.Errorf("list parked changes: %w", err)
		}
		for _, found := range page {
			if err := visit(found); err != nil {
				return err
			}
		}
		if len(page) == 0 {
			return nil
		}
		last := page[len(page)-1]
		behind = bson.D{{Key: "$or", Value: bson.A{
			bson.D{{Key: "position", Value: bson.D{{Key: "$gt", Value: last.Position}}}},
			bson.D{{Key: "position", Value: last.Position}, {Key: "_id", Value: bson.D{{Key: "$gt", Value: last.ID}}}},
		}}}
	}
}

// page returns the first of the changes that a filter finds, oldest first.
func (p *Parked) page(ctx context.Context, which bson.D) ([]ParkedChange, error) {
	cursor, err := p.changes.Find(ctx, which, options.Find().
		SetSort(bson.D{{Key: "position", Value: 1}, {Key: "_id", Value: 1}}).
		SetLimit(listPage).SetBatchSize(listPage+1).
		SetProjection(withoutChange))
	if err != nil {
		return nil, err
	}
	var page []ParkedChange
	err = cursor.All(ctx, &page)
	return page, err
}

// parkedID names a change by its place, short enough to be typed. A copied
// document has none: a copy that is taken up again may count it otherwise, and
// give its place to another. All that is said of it names it, which is when the
// copy began, the collection, and the document with its key: in another copy, or
// with other content, it is another change.
func parkedID(stream string, change relay.Change) string {
	h := sha256.New()
	operation, _ := bson.Raw(change.Raw).Lookup("operationType").StringValueOK()
	switch {
	case operation == string(contract.Snapshot):
		fmt.Fprintf(h, "%s\x00copied\x00", stream)
		h.Write(change.Raw)
	case change.Position != "":
		fmt.Fprintf(h, "%s\x00%s\x00", stream, change.Position)
	default:
		fmt.Fprintf(h, "%s\x00\x00", stream)
		h.Write(change.Token)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}
