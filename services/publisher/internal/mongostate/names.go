package mongostate

import (
	"context"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/checkpoint"
)

// namesDocument is what a checkpoint has of checkpoint.Names. It is apart from the note,
// which a release without names replaces as a whole.
type namesDocument struct {
	IDs    []string `bson:"ids"`
	Purged int64    `bson:"purged"`
}

func (d *namesDocument) names() *checkpoint.Names {
	if d == nil || d.IDs == nil {
		return nil
	}
	return &checkpoint.Names{IDs: d.IDs, Purged: d.Purged}
}

// noteUpdate is the update that makes a note, sets other fields, and leaves the place as
// it is.
func noteUpdate(set bson.D, aside *checkpoint.Aside, naming checkpoint.Naming) mongo.Pipeline {
	if aside != nil {
		set = append(set, bson.E{Key: "parked", Value: literal(documentOfAside(*aside))})
	}
	switch {
	case naming.All != nil:
		all := namesDocument{IDs: append([]string{}, naming.All.IDs...), Purged: naming.All.Purged}
		set = append(set, bson.E{Key: "kept", Value: literal(all)})
	case !naming.None():
		set = append(set, bson.E{Key: "kept", Value: renamed(naming)})
	}
	return mongo.Pipeline{{{Key: "$set", Value: set}}}
}

// renamed is the expression of names without some and with others; there are none where
// there were none.
func renamed(naming checkpoint.Naming) bson.D {
	out := slices.Concat([]string{}, naming.Drop, naming.Add)
	stay := bson.D{{Key: "$filter", Value: bson.D{
		{Key: "input", Value: "$kept.ids"},
		{Key: "cond", Value: bson.D{{Key: "$not", Value: bson.A{bson.D{{Key: "$in", Value: bson.A{"$$this", literal(out)}}}}}}},
	}}}
	add := append([]string{}, naming.Add...)
	all := bson.D{{Key: "$concatArrays", Value: bson.A{stay, literal(add)}}}
	return bson.D{{Key: "$cond", Value: bson.A{
		bson.D{{Key: "$isArray", Value: "$kept.ids"}},
		bson.D{
			{Key: "ids", Value: bson.D{{Key: "$slice", Value: bson.A{all, -checkpoint.MaxNames}}}},
			{Key: "purged", Value: "$kept.purged"},
		},
		"$kept",
	}}}
}

// compare finds out which of those that are named are gone: of what was named before it
// was looked for, and is still, so that it was not purged meanwhile.
func (k *KeptAside) compare(before *checkpoint.Names, now checkpointDocument, present map[string]bool) {
	names, note := now.Kept.names(), now.Parked.aside()
	k.Unnamed = true
	if k.Note == nil || note == nil || names == nil || names.Purged != k.Purged {
		return
	}
	k.Unnamed = int64(len(names.IDs)) < min(note.Count-k.Purged, checkpoint.MaxNames)
	if before == nil {
		return
	}
	for _, id := range before.IDs {
		if !present[id] && slices.Contains(names.IDs, id) {
			k.Gone = append(k.Gone, id)
		}
	}
}

// present are the changes that are named in notes and are there, whose they may be.
func (p *Parked) present(ctx context.Context, notes map[string]keptDocument) (map[string]bool, error) {
	named := []string{}
	for _, note := range notes {
		if names := note.Checkpoint.Kept.names(); names != nil {
			named = append(named, names.IDs...)
		}
	}
	present := map[string]bool{}
	if len(named) == 0 {
		return present, nil
	}
	found, err := p.ids(ctx, bson.E{Key: "_id", Value: bson.D{{Key: "$in", Value: named}}})
	for _, id := range found {
		present[id] = true
	}
	return present, err
}

// ids are those of changes of the stream.
func (p *Parked) ids(ctx context.Context, which bson.E, more ...options.Lister[options.FindOptions]) ([]string, error) {
	cursor, err := p.changes.Find(ctx, bson.D{{Key: "stream", Value: p.stream}, which},
		append(more, options.Find().SetProjection(bson.D{{Key: "_id", Value: 1}}))...)
	var read []struct {
		ID string `bson:"_id"`
	}
	if err == nil {
		err = cursor.All(ctx, &read)
	}
	if err != nil {
		return nil, fmt.Errorf("look for parked changes of %q: %w", p.stream, err)
	}
	ids := make([]string, len(read))
	for i := range read {
		ids[i] = read[i].ID
	}
	return ids, nil
}

// Naming is how what is found of a partition is named, with a note that is made of it.
// Beside a purge nothing is named anew that it may be about to remove.
func (p *Parked) Naming(ctx context.Context, k KeptAside) (checkpoint.Naming, error) {
	switch {
	case k.Purging:
		return checkpoint.Naming{Drop: k.Gone}, nil
	case !k.Unnamed && k.Missing() == 0 && k.Found == k.Noted() && len(k.Arrived) == 0:
		return checkpoint.Naming{}, nil
	}
	return p.named(ctx, k, bson.E{Key: "partition", Value: k.Stream})
}

// named names the last of some changes. A purge that has begun since k was read has
// another number purged, and so the names say nothing.
func (p *Parked) named(ctx context.Context, k KeptAside, which bson.E) (checkpoint.Naming, error) {
	ids, err := p.ids(ctx, which, options.Find().SetSort(bson.D{{Key: "position", Value: -1}}).SetLimit(checkpoint.MaxNames))
	slices.Reverse(ids)
	return checkpoint.Naming{All: &checkpoint.Names{IDs: ids, Purged: k.Purged}}, err
}
