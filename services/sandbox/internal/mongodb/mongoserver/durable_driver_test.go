package mongoserver_test

import (
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/sandbox/internal/mongodb/engine"
)

// countingJournal keeps nothing. It counts how often somebody waits for its disk, and
// how much was appended when somebody last did.
type countingJournal struct{ appended, committed, commits atomic.Int64 }

func (j *countingJournal) Append([]byte) int64 { return j.appended.Add(1) }

func (j *countingJournal) Commit(position int64) error {
	j.committed.Store(max(position, j.committed.Load()))
	j.commits.Add(1)
	return nil
}

func (*countingJournal) Logged() int64        { return 0 }
func (*countingJournal) Cut() (uint64, error) { return 0, nil }
func (*countingJournal) Compact(uint64, func(func([]byte) error) error) error {
	return nil
}

// The statements of a command wait for the disk together, and none of them is
// acknowledged before.
func TestDurable_ACommandOfManyStatementsWaitsForTheDiskOnce(t *testing.T) {
	t.Parallel()
	j := &countingJournal{}
	e, err := engine.Recover(engine.Config{}, func(func([]byte) error) (engine.Journal, error) { return j, nil })
	must(t, err)
	h := startStoppable(t, e)
	coll := h.connect(t).Database("test").Collection("things")
	const many = 200
	var inserts, updates, deletes []mongo.WriteModel
	for i := range many {
		id := bson.D{{Key: "_id", Value: i}}
		inserts = append(inserts, mongo.NewInsertOneModel().SetDocument(id))
		updates = append(updates, mongo.NewUpdateOneModel().SetFilter(id).SetUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: i}}}}))
		deletes = append(deletes, mongo.NewDeleteOneModel().SetFilter(id))
	}
	for _, models := range [][]mongo.WriteModel{inserts, updates, deletes} {
		appended, commits := j.appended.Load(), j.commits.Load()
		_, err := coll.BulkWrite(t.Context(), models)
		must(t, err)
		if wrote, waited := j.appended.Load()-appended, j.commits.Load()-commits; wrote < 2 || waited >= wrote {
			t.Errorf("%T: waited for the disk %d times for %d records, want less often", models[0], waited, wrote)
		}
		if j.committed.Load() < j.appended.Load() {
			t.Errorf("%T: acknowledged with %d of %d records on disk", models[0], j.committed.Load(), j.appended.Load())
		}
	}
}
