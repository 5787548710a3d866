package mongostate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/checkpoint"
)

// purgeTime is longer than any purge runs. Within it what a purge has counted out
// may still be there.
const purgeTime = 10 * time.Minute

// KeptAside is how many changes of one partition parked_changes has, dealt with or not,
// beside how many its checkpoint has noted. The note is made behind the change, and a
// purge is counted before it: so what was noted and is not there was lost.
type KeptAside struct {
	// Stream is the partition, and Retired says that it is one of another number.
	Stream  string
	Retired bool
	// Note is what the checkpoint says; nil where none was made yet.
	Note *checkpoint.Aside
	// Purged is how many of those that were noted a purge has removed, and Purging
	// says that one may be about to remove some that are found.
	Purged  int64
	Purging bool
	// Found is how many there are, without those that had Arrived of the ones that
	// were coming, and Oldest the position of the first of all.
	Found   int64
	Arrived []string
	Oldest  contract.Position
	// Gone are those that are named, were not purged, and are not there: whatever else
	// is found does not make up for them. Unnamed says that the names are none of what
	// is noted: a release without them has noted, or purged, something since.
	Gone    []string
	Unnamed bool
	// Place is up to where the partition is published.
	Place checkpoint.Place
}

// Noted is how many there are to be.
func (k KeptAside) Noted() int64 {
	if k.Note == nil {
		return 0
	}
	return k.Note.Count - k.Purged
}

// Since is when the first of them was written, by the source's clock.
func (k KeptAside) Since() time.Time {
	if k.Note == nil {
		return time.Time{}
	}
	return timeOf(string(k.Note.From))
}

// OfCopy reports whether the first of them was copied, or may have been: then no
// stream that is read again brings it back.
func (k KeptAside) OfCopy() bool { return k.Note.From == "" || k.Note.From.OfSnapshot() }

// Missing is how many were lost, at least.
func (k KeptAside) Missing() int64 { return max(k.Noted()-k.Found, int64(len(k.Gone)), 0) }

// Returned reports whether more are there than are to be, or the names are to be made
// anew: what was lost was put back.
func (k KeptAside) Returned() bool {
	return k.Note != nil && !k.Purging && (k.Found > k.Noted() || k.Unnamed)
}

// Settled is the note that goes with what is found. A note falls short by what was
// counted out and not purged when a process died; it is made up for where no purge is
// under way. What was coming and has arrived is counted, and no other: it may come yet.
func (k KeptAside) Settled() checkpoint.Aside {
	settled := checkpoint.Aside{Count: k.Found + k.Purged, From: k.Oldest}
	if k.Note != nil {
		settled.Coming = k.coming()
	}
	switch {
	case k.Purging && k.Note == nil:
		settled.Count = k.Found
	case k.Purging:
		settled.Count = k.Note.Count - k.Missing()
	}
	settled.Count += int64(len(k.Arrived))
	return settled
}

// maxComing is how many changes that earlier terms have named, and that are not there,
// stay named. One term names no more at once than it sends side by side.
const maxComing = 1000

// coming is what may come yet: not what has arrived, and not what the checkpoint is
// past. That was sent, or parked and counted, after the term that has named it; should
// that term park it all the same, it is counted as what is put back.
func (k KeptAside) coming() []checkpoint.Expected {
	coming := slices.DeleteFunc(slices.Clone(k.Note.Coming), func(one checkpoint.Expected) bool {
		return slices.Contains(k.Arrived, one.ID) || one.At != "" && k.Place.Passed(one.At)
	})
	return coming[max(0, len(coming)-maxComing):]
}

// asideDocument is what a checkpoint has of a checkpoint.Aside.
type asideDocument struct {
	Count  int64              `bson:"count"`
	From   string             `bson:"from,omitempty"`
	Coming []expectedDocument `bson:"coming,omitempty"`
}

type expectedDocument struct {
	ID string `bson:"id"`
	At string `bson:"at,omitempty"`
}

func documentOfAside(a checkpoint.Aside) asideDocument {
	document := asideDocument{Count: a.Count, From: string(a.From)}
	for _, one := range a.Coming {
		document.Coming = append(document.Coming, expectedDocument{ID: one.ID, At: string(one.At)})
	}
	return document
}

func (d *asideDocument) aside() *checkpoint.Aside {
	if d == nil {
		return nil
	}
	aside := &checkpoint.Aside{Count: d.Count, From: contract.Position(d.From)}
	for _, one := range d.Coming {
		aside.Coming = append(aside.Coming, checkpoint.Expected{ID: one.ID, At: contract.Position(one.At)})
	}
	return aside
}

// keptDocument is a checkpoint with what it says of a purge.
type keptDocument struct {
	Checkpoint checkpointDocument `bson:",inline"`
	Purged     int64              `bson:"purged"`
	Purging    bool               `bson:"purging"`
}

// KeptAside returns what is kept of every partition that has a checkpoint, in use or
// retired.
func (p *Parked) KeptAside(ctx context.Context) ([]KeptAside, error) {
	return p.keptAside(ctx, anyPartition("_id", p.stream), bson.E{Key: "partition", Value: bson.D{{Key: "$gt", Value: ""}}})
}

// KeptAsideOf returns what is kept of one partition; nothing where it has no checkpoint.
func (p *Parked) KeptAsideOf(ctx context.Context, partition string) ([]KeptAside, error) {
	return p.keptAside(ctx, bson.E{Key: "_id", Value: partition}, bson.E{Key: "partition", Value: partition})
}

// keptAside may be asked at any time: what is noted is read before what there is, and
// what was purged after it, so that neither makes a change look lost.
func (p *Parked) keptAside(ctx context.Context, noting, parking bson.E) ([]KeptAside, error) {
	noted, err := p.notes(ctx, noting)
	if err != nil {
		return nil, err
	}
	found, err := p.found(ctx, parking, coming(noted))
	if err != nil {
		return nil, err
	}
	present, err := p.present(ctx, noted)
	if err != nil {
		return nil, err
	}
	after, err := p.notes(ctx, noting)
	if err != nil {
		return nil, err
	}
	purged, err := p.purged(ctx, noting)
	if err != nil {
		return nil, err
	}
	var all []KeptAside
	for name, note := range noted {
		there := found[name]
		aside := note.Checkpoint.Parked.aside()
		arrived := there.arrived(aside)
		kept := KeptAside{
			Stream: name, Retired: note.Checkpoint.Retired, Note: aside, Purged: max(after[name].Purged, purged[name]), Purging: after[name].Purging,
			Found: there.N - int64(len(arrived)), Arrived: arrived, Oldest: contract.Position(there.Oldest),
			Place: note.Checkpoint.checkpoint().Place,
		}
		kept.compare(note.Checkpoint.Kept.names(), after[name].Checkpoint, present)
		all = append(all, kept)
	}
	return all, nil
}

func (p *Parked) notes(ctx context.Context, which bson.E) (map[string]keptDocument, error) {
	cursor, err := p.checkpoints.Aggregate(ctx, mongo.Pipeline{
		{{Key: "$match", Value: bson.D{which}}},
		{{Key: "$addFields", Value: bson.D{{Key: "purging", Value: bson.D{{Key: "$gt", Value: bson.A{"$purgedAt", fromNow(-purgeTime)}}}}}}},
	})
	var read []keptDocument
	if err == nil {
		err = cursor.All(ctx, &read)
	}
	if err != nil {
		return nil, fmt.Errorf("read how many changes of %q are noted as parked: %w", p.stream, err)
	}
	notes := map[string]keptDocument{}
	for _, document := range read {
		notes[document.Checkpoint.Stream] = document
	}
	return notes, nil
}

// purged is how many changes of each partition were counted out, by its record: where
// the checkpoint alone was restored from before a purge, that says less.
func (p *Parked) purged(ctx context.Context, which bson.E) (map[string]int64, error) {
	cursor, err := p.records.Find(ctx, bson.D{which}, options.Find().SetProjection(bson.D{{Key: "purged", Value: 1}}))
	var read []keptDocument
	if err == nil {
		err = cursor.All(ctx, &read)
	}
	if err != nil {
		return nil, fmt.Errorf("read how many changes of %q were purged: %w", p.stream, err)
	}
	purged := map[string]int64{}
	for _, document := range read {
		purged[document.Checkpoint.Stream] = document.Purged
	}
	return purged, nil
}

// coming are the ids of all that is coming, whose it may be.
func coming(notes map[string]keptDocument) bson.A {
	var all []checkpoint.Expected
	for _, note := range notes {
		if aside := note.Checkpoint.Parked.aside(); aside != nil {
			all = append(all, aside.Coming...)
		}
	}
	return ids(all)
}

func ids(of []checkpoint.Expected) bson.A {
	ids := bson.A{}
	for _, one := range of {
		ids = append(ids, one.ID)
	}
	return ids
}

// foundDocument is what there is of one partition, and which of it was named as coming,
// by whichever partition.
type foundDocument struct {
	Partition string   `bson:"_id"`
	N         int64    `bson:"n"`
	Oldest    string   `bson:"oldest"`
	Named     []string `bson:"named"`
}

// arrived are those that its own note has named: what another partition has named, this
// one may have counted.
func (f foundDocument) arrived(note *checkpoint.Aside) []string {
	var arrived []string
	for _, id := range f.Named {
		if note != nil && note.Expects(id) {
			arrived = append(arrived, id)
		}
	}
	return arrived
}

// found counts what there is and looks for what was named in one pass: a change that
// comes meanwhile is in both, or in neither.
func (p *Parked) found(ctx context.Context, which bson.E, named bson.A) (map[string]foundDocument, error) {
	isNamed := bson.D{{Key: "$in", Value: bson.A{"$_id", bson.D{{Key: "$literal", Value: named}}}}}
	cursor, err := p.changes.Aggregate(ctx, mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: "stream", Value: p.stream}, which}}},
		{{Key: "$group", Value: bson.D{
			{Key: "_id", Value: "$partition"},
			{Key: "n", Value: bson.D{{Key: "$sum", Value: int64(1)}}},
			{Key: "oldest", Value: bson.D{{Key: "$min", Value: "$position"}}},
			{Key: "named", Value: bson.D{{Key: "$push", Value: bson.D{{Key: "$cond", Value: bson.A{isNamed, "$_id", "$$REMOVE"}}}}}},
		}}},
	})
	var read []foundDocument
	if err == nil {
		err = cursor.All(ctx, &read)
	}
	if err != nil {
		return nil, fmt.Errorf("count the parked changes of %q: %w", p.stream, err)
	}
	found := map[string]foundDocument{}
	for _, document := range read {
		found[document.Partition] = document
	}
	return found, nil
}

// Recounted is the note of a partition that goes with what is found but for some changes,
// and their names; an empty one while a purge may be about to remove some of that, or
// where something is lost that is not in the ledger.
func (p *Parked) Recounted(ctx context.Context, partition string, but []checkpoint.Expected) (checkpoint.Aside, checkpoint.Naming, error) {
	noted, err := p.KeptAsideOf(ctx, partition)
	if err != nil || len(noted) == 0 || noted[0].Missing() > 0 || noted[0].Purging {
		return checkpoint.Aside{}, checkpoint.Naming{}, err
	}
	which := bson.E{Key: "$and", Value: bson.A{
		bson.D{{Key: "partition", Value: partition}}, bson.D{{Key: "_id", Value: bson.D{{Key: "$nin", Value: ids(but)}}}},
	}}
	found, err := p.found(ctx, which, bson.A{})
	if err != nil {
		return checkpoint.Aside{}, checkpoint.Naming{}, err
	}
	naming, err := p.named(ctx, noted[0], which)
	there := found[partition]
	return checkpoint.Aside{Count: there.N + noted[0].Purged, From: contract.Position(there.Oldest)}, naming, err
}

// Unclaimed returns some of the changes that are of none of these partitions, and none
// where there are none: a release without notes has parked them, or their partition is
// one of another number whose checkpoint is gone, with its note.
func (p *Parked) Unclaimed(ctx context.Context, partitions []string) ([]ParkedChange, error) {
	page, err := p.page(ctx, bson.D{{Key: "stream", Value: p.stream}, {Key: "partition", Value: bson.D{{Key: "$nin", Value: partitions}}}}) // or null, or absent
	if err != nil {
		return nil, fmt.Errorf("look for parked changes of %q that no checkpoint counts: %w", p.stream, err)
	}
	return page, nil
}

// Adopt makes changes those of a partition.
func (p *Parked) Adopt(ctx context.Context, partition string, ids ...string) error {
	_, err := p.changes.UpdateMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "partition", Value: partition}}}})
	if err != nil {
		return fmt.Errorf("say which partition of %q parked what: %w", p.stream, err)
	}
	return nil
}

// Settle notes what there is of a retired partition, unless somebody else has noted
// something since.
func (p *Parked) Settle(ctx context.Context, k KeptAside) error {
	settled := k.Settled()
	var noted any // null or absent
	if k.Note != nil {
		noted = k.Note.Count
	}
	which := append(byStream(k.Stream), bson.E{Key: "retired", Value: true}, bson.E{Key: "parked.count", Value: noted})
	naming, err := p.Naming(ctx, k)
	if err == nil {
		_, err = p.checkpoints.UpdateOne(ctx, which, noteUpdate(nil, &settled, naming))
	}
	if err != nil {
		return fmt.Errorf("note how many changes of %q are parked: %w", k.Stream, err)
	}
	return nil
}

// countOut notes that n changes of a partition, those, are about to be purged. With n
// below 0 as many were not, and those are there. A purge that dies after it leaves the
// note short by what it has not removed. That loses nothing, but hides as many losses,
// until the leader makes up for it once purgeTime is over. They are named no more before they are counted out: a
// process that dies in between leaves names that go with no number, and say nothing.
func (p *Parked) countOut(ctx context.Context, partition string, n int64, those []string) error {
	names := bson.E{Key: "$pullAll", Value: bson.D{{Key: "kept.ids", Value: those}}}
	if n < 0 {
		names = bson.E{Key: "$addToSet", Value: bson.D{{Key: "kept.ids", Value: bson.D{{Key: "$each", Value: those}}}}}
	}
	named := append(byStream(partition), bson.E{Key: "kept.ids", Value: bson.D{{Key: "$exists", Value: true}}})
	_, err := p.checkpoints.UpdateOne(ctx, named, bson.D{{Key: "$inc", Value: bson.D{{Key: "kept.purged", Value: n}}}, names})
	for _, in := range []*mongo.Collection{p.checkpoints, p.records} {
		if err != nil {
			break
		}
		_, err = in.UpdateOne(ctx, byStream(partition), bson.D{
			{Key: "$inc", Value: bson.D{{Key: "purged", Value: n}}},
			{Key: "$currentDate", Value: bson.D{{Key: "purgedAt", Value: true}}},
		})
	}
	if err != nil {
		return fmt.Errorf("note that %d changes of %q are purged: %w", n, partition, err)
	}
	return nil
}
