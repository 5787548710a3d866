package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	mongodriver "go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/e2e/internal/campaign/modes"
	"changerelay/services/e2e/internal/check/report"
)

// restores are mistakes of which the relay does not come back by itself, so that nothing
// else is made with them: they are made where they are named, and are none of all.
func restores() []fault {
	const s = time.Second
	return []fault{{readDatabase, 1, 3 * s, 6 * s, restoreReadModel}}
}

const readDatabase = "operator: read database of before"

// restores says that the campaign makes such mistakes.
func (c *Config) restores() bool {
	return c.Operators != "" && slices.ContainsFunc(chosen(c.Operators), func(f fault) bool { return f.name == readDatabase })
}

// restoreReadModel puts the read database, and nothing else, back to what it was when the
// fault began, while projectors write to it.
func restoreReadModel(ctx context.Context, c *campaign, _ *rand.Rand) (string, func(context.Context) error, error) {
	release, free := c.take("read database")
	if !free {
		return "", nil, errNobody
	}
	from := &backup{at: time.Now()}
	var err error
	if from.documents, err = dump(ctx, c.witness.ReadModel()); err != nil {
		release()
		return "", nil, errNobody
	}
	return "read database put back to what it was", func(ctx context.Context) error {
		defer release()
		if err := from.restore(ctx, c.witness.ReadModel()); err != nil {
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.restored == nil {
			c.restored = from
		}
		return nil
	}, nil
}

// backup is a copy of a database.
type backup struct {
	at        time.Time             // when it was begun
	documents map[string][]bson.Raw // by collection
}

// restore makes a database what its copy says, collection by collection.
func (b *backup) restore(ctx context.Context, database *mongodriver.Database) error {
	for name, documents := range b.documents {
		if err := restore(ctx, database.Collection(name), documents); err != nil {
			return err
		}
	}
	return nil
}

// dump copies all collections of a database.
func dump(ctx context.Context, database *mongodriver.Database) (map[string][]bson.Raw, error) {
	names, err := database.ListCollectionNames(ctx, bson.D{{Key: "type", Value: "collection"}})
	if err != nil {
		return nil, err
	}
	all := make(map[string][]bson.Raw)
	for _, name := range names {
		var documents []bson.Raw
		cursor, err := database.Collection(name).Find(ctx, bson.D{})
		if err == nil {
			err = cursor.All(ctx, &documents)
		}
		if err != nil {
			return nil, err
		}
		all[name] = documents
	}
	return all, nil
}

// restore makes a collection what a copy of it says.
func restore(ctx context.Context, to *mongodriver.Collection, documents []bson.Raw) error {
	ids := bson.A{}
	var changes []mongodriver.WriteModel
	for _, d := range documents {
		ids = append(ids, d.Lookup("_id"))
		same := bson.D{{Key: "_id", Value: d.Lookup("_id")}}
		changes = append(changes, mongodriver.NewReplaceOneModel().SetFilter(same).SetReplacement(d).SetUpsert(true))
	}
	if _, err := to.DeleteMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$nin", Value: ids}}}}); err != nil || len(changes) == 0 {
		return err
	}
	_, err := to.BulkWrite(ctx, changes)
	return err
}

// lack is what the read model lacks: how many events, of which aggregates, and how many
// of these are halted, which an alert names.
type lack struct {
	events             int64
	aggregates, halted int
	silent             []string
}

func (l *lack) figures() []report.Figure {
	return []report.Figure{
		{Name: "events that the read model lacked before its repair", Value: float64(l.events), Unit: report.Count},
		{Name: "aggregates of which it lacked some", Value: float64(l.aggregates), Unit: report.Count},
		{Name: "of these halted, for a later event has told", Value: float64(l.halted), Unit: report.Count},
	}
}

// putBackRightly repairs a read database that was put back under projectors: with nobody
// writing to it, it is put back again, and all since then is published again. It says
// whether there was anything to repair.
func (c *campaign) putBackRightly(ctx context.Context) (bool, error) {
	c.mu.Lock()
	from := c.restored
	c.restored = nil
	c.mu.Unlock()
	if from == nil {
		return false, nil
	}
	found, err := c.look(ctx)
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	c.lacking = found
	c.mu.Unlock()
	c.say("the read model lacks %d events of %d aggregates, of which %d are halted; others are %q", found.events, found.aggregates, found.halted, found.silent)
	// Nothing waits in the subscription by now, so nothing comes before what is published again.
	for _, n := range c.services() {
		if err := c.halt(ctx, n); err != nil {
			return false, err
		}
	}
	if err := from.restore(ctx, c.witness.ReadModel()); err != nil {
		return false, err
	}
	const slack = 2 * time.Second
	if !sleepUntil(ctx, time.Now().Add(time.Duration(modes.ShortestWindow)+slack)) { // until the topic knows no id any more
		return false, context.Cause(ctx)
	}
	args := []string{"checkpoint", "set", from.at.Add(-slack).UTC().Format(time.RFC3339), "--why", "chaos: the read database was restored"}
	output, err := c.decide(ctx, c.cluster.Publishers[0], nil, args...)
	if err != nil {
		c.wrong("%q: %s", args, firstLine(output))
	}
	c.remedied("remedy, of a restored read database", "the read database is put back with all services stopped, and what came since is published again", fmt.Sprintf("done: %t", err == nil))
	return true, c.cluster.StartServices()
}

// look counts what the read model lacks.
func (c *campaign) look(ctx context.Context) (*lack, error) {
	missing, err := c.witness.Lacking(ctx)
	if err != nil {
		return nil, err
	}
	found := &lack{aggregates: len(missing)}
	for aggregate, n := range missing {
		found.events += n
		halted, err := c.witness.ReadModel().Collection(halts).CountDocuments(ctx, bson.D{{Key: "_id", Value: aggregate}})
		if err != nil {
			return nil, fmt.Errorf("look for halts: %w", err)
		}
		if found.halted += int(halted); halted == 0 && len(found.silent) < 3 {
			found.silent = append(found.silent, aggregate)
		}
	}
	return found, nil
}
