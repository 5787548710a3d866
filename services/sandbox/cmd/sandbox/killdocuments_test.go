package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// fate is what is known of a document.
type fate int

const (
	// unknown: a write was under way when the sandbox was killed.
	unknown fate = iota
	present
	absent
)

// documents keeps what must be true of a collection.
type documents struct {
	token bson.Raw

	mu    sync.Mutex // guards what follows
	fates map[string]fate
	// inserted are those whose insert was acknowledged, deleted or not.
	inserted map[string]bool
	// pairs are _ids that one transaction has written.
	pairs [][2]string
	// counted is the last acknowledged value of each counter; tried is how
	// often it was raised, acknowledged or not.
	counted, tried map[string]int
}

func newDocuments() *documents {
	return &documents{fates: map[string]fate{}, inserted: map[string]bool{}, counted: map[string]int{}, tried: map[string]int{}}
}

func things(client *mongo.Client) *mongo.Collection {
	return client.Database("test").Collection("things")
}

// watch notes where the history begins.
func (d *documents) watch(t *testing.T, client *mongo.Client) {
	t.Helper()
	stream, err := things(client).Watch(t.Context(), mongo.Pipeline{})
	must(t, err)
	d.token = stream.ResumeToken()
	must(t, stream.Close(t.Context()))
}

// work writes until the first error.
func (d *documents) work(ctx context.Context, client *mongo.Client, l *load, name string, random *rand.Rand) {
	var mine []string
	for n := 0; ctx.Err() == nil; n++ {
		id := fmt.Sprintf("%s write %04d", name, n)
		var err error
		switch kind := random.IntN(10); {
		case kind < 5:
			err = d.insert(ctx, client, id)
			mine = append(mine, id)
		case kind < 7:
			err = d.count(ctx, client, fmt.Sprint("counter ", random.IntN(3)))
		case kind < 8 && len(mine) > 0:
			err = d.remove(ctx, client, mine[random.IntN(len(mine))])
		default:
			err = d.pair(ctx, client, id)
		}
		if err != nil {
			return
		}
		l.acknowledged()
	}
}

func (d *documents) insert(ctx context.Context, client *mongo.Client, id string) error {
	d.set(unknown, id)
	_, err := things(client).InsertOne(ctx, bson.D{{Key: "_id", Value: id}})
	if err == nil {
		d.set(present, id)
	}
	return err
}

func (d *documents) remove(ctx context.Context, client *mongo.Client, id string) error {
	d.set(unknown, id)
	_, err := things(client).DeleteOne(ctx, bson.D{{Key: "_id", Value: id}})
	if err == nil {
		d.set(absent, id)
	}
	return err
}

// pair inserts two documents in one transaction.
func (d *documents) pair(ctx context.Context, client *mongo.Client, id string) error {
	pair := [2]string{id + " left", id + " right"}
	d.set(unknown, pair[:]...)
	d.mu.Lock()
	d.pairs = append(d.pairs, pair)
	d.mu.Unlock()
	if err := insertTogether(ctx, client, pair); err != nil {
		return err
	}
	d.set(present, pair[:]...)
	return nil
}

func insertTogether(ctx context.Context, client *mongo.Client, pair [2]string) error {
	session, err := client.StartSession()
	if err != nil {
		return err
	}
	defer session.EndSession(ctx) // which aborts nothing once the sandbox is dead and ctx over
	if err := session.StartTransaction(); err != nil {
		return err
	}
	inside := mongo.NewSessionContext(ctx, session)
	for _, id := range pair {
		if _, err := things(client).InsertOne(inside, bson.D{{Key: "_id", Value: id}}); err != nil {
			<-ctx.Done() // what came is the kill: the transaction is not to be aborted over a dead connection
			return err
		}
	}
	return session.CommitTransaction(ctx)
}

// count raises a counter, which begins at its first.
func (d *documents) count(ctx context.Context, client *mongo.Client, name string) error {
	d.mu.Lock()
	d.tried[name]++
	d.mu.Unlock()
	var after struct{ N int }
	err := things(client).FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: name}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}},
		options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)).Decode(&after)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		d.counted[name] = max(d.counted[name], after.N)
	}
	return err
}

func (d *documents) set(f fate, ids ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		d.fates[id] = f
		if f == present {
			d.inserted[id] = true
		}
	}
}

// expect compares the collection with what was acknowledged.
func (d *documents) expect(t *testing.T, client *mongo.Client) {
	t.Helper()
	cursor, err := things(client).Find(t.Context(), bson.D{})
	must(t, err)
	var docs []struct {
		ID string `bson:"_id"`
		N  int
	}
	must(t, cursor.All(t.Context(), &docs))
	there := map[string]bool{}
	for _, doc := range docs {
		there[doc.ID] = true
		_, isCounter := d.tried[doc.ID]
		_, isKnown := d.fates[doc.ID]
		if isCounter == isKnown {
			t.Errorf("got document %q, which nobody wrote", doc.ID)
		}
		if isCounter && (doc.N < d.counted[doc.ID] || doc.N > d.tried[doc.ID]) {
			t.Errorf("%s: got %d, want %d to %d", doc.ID, doc.N, d.counted[doc.ID], d.tried[doc.ID])
		}
	}
	for id, f := range d.fates {
		if f == present && !there[id] {
			t.Errorf("got no document %q, whose insert was acknowledged", id)
		}
		if f == absent && there[id] {
			t.Errorf("got document %q, whose deletion was acknowledged", id)
		}
	}
	for name := range d.counted {
		if !there[name] {
			t.Errorf("got no document %q, which was acknowledged", name)
		}
	}
	for _, pair := range d.pairs {
		if there[pair[0]] != there[pair[1]] {
			t.Errorf("got half of a transaction: %q and %q", pair[0], pair[1])
		}
	}
	d.settle(there)
}

// settle knows, after a look, what became of the writes that were under way.
func (d *documents) settle(there map[string]bool) {
	for id, f := range d.fates {
		switch {
		case f == unknown && there[id]:
			d.fates[id] = present
		case f == unknown:
			d.fates[id] = absent
		}
	}
}

// expectEvents reads the change stream over all lives.
func (d *documents) expectEvents(t *testing.T, client *mongo.Client) {
	t.Helper()
	stream, err := things(client).Watch(t.Context(), mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(d.token))
	must(t, err)
	defer stream.Close(context.Background())
	missing := map[string]bool{}
	for id := range d.inserted {
		missing[id] = true
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	for len(missing) > 0 {
		if !stream.Next(ctx) {
			t.Fatalf("got the end of the stream with %d events missing: %v", len(missing), stream.Err())
		}
		delete(missing, stream.Current.Lookup("documentKey", "_id").StringValue())
	}
}

func (d *documents) report(t *testing.T) {
	t.Helper()
	t.Logf("MongoDB: %d inserts acknowledged, %d transactions tried, counters at %v", len(d.inserted), len(d.pairs), d.counted)
	if len(d.inserted) == 0 || len(d.pairs) == 0 || len(d.counted) == 0 {
		t.Error("want some of each, or nothing was tested")
	}
}
