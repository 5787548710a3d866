package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/e2e/internal/harness/cluster"
)

// damaged are documents of a read model that were altered, lost and doubled by hand.
func damaged(t *testing.T, documents *mongo.Collection) (ids []string) {
	t.Helper()
	versions, err := versionsIn(within(t), documents)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for id := range versions {
		all = append(all, id)
	}
	slices.Sort(all)
	for i, id := range all[:min(len(all), 30)] {
		key := bson.D{{Key: "_id", Value: id}}
		switch i % 3 {
		case 0:
			_, err = documents.UpdateOne(within(t), key, bson.D{{Key: "$set", Value: bson.D{{Key: "byHand", Value: true}}}})
		case 1:
			_, err = documents.DeleteOne(within(t), key)
		case 2:
			var twin bson.D
			if err = documents.FindOne(within(t), key).Decode(&twin); err == nil {
				id += "-twin"
				twin[0].Value = id
				_, err = documents.InsertOne(within(t), twin)
			}
		}
		if err != nil {
			t.Fatalf("damage %s: %v", id, err)
		}
		ids = append(ids, id)
	}
	return ids
}

// verified runs projector verify, and returns the aggregates that it says differ, and
// the commands that it offers. Behind these is what an operator decides for documents of
// which the source has nothing: for them it offers none.
func verified(t *testing.T, operator *cluster.Node, args ...string) (differ, commands []string, err error) {
	t.Helper()
	var doubtful []string
	output, err := operator.Command(within(t), append([]string{"verify"}, args...)...)
	for line := range strings.Lines(output) {
		var said struct {
			Aggregate string   `json:"aggregate"`
			Partly    string   `json:"partly"`
			Commands  []string `json:"commands"`
		}
		if json.Unmarshal([]byte(line), &said) != nil {
			continue // it says on stderr that it has failed
		}
		if said.Aggregate != "" {
			differ = append(differ, said.Aggregate)
		}
		if said.Partly != "" {
			doubtful = append(doubtful, said.Aggregate)
		}
		commands = append(commands, said.Commands...)
	}
	if len(doubtful) > 0 {
		commands = append(commands, fmt.Sprintf("projector rebuild --projection orders --force --aggregate %s --why twins --publisher %s",
			strings.Join(doubtful, " --aggregate "), args[slices.Index(args, "--publisher")+1]))
	}
	slices.Sort(differ)
	return slices.Compact(differ), commands, err
}

// Documents are altered, lost and doubled by hand. While events flow, one command finds
// these and no other, and what it offers mends them, although the leader and a
// projector are killed. Readers never see a document go back.
func TestVerify_FindsUnderLoadWhatIsWrongAndWhatItOffersMendsIt(t *testing.T) {
	t.Parallel()
	c := cluster.New(configure(t, func(c *cluster.Config) { c.Projections = versionFile(t, 2) }))
	closeAtEnd(t, c)
	if err := c.StartServers(within(t)); err != nil {
		t.Fatal(err)
	}
	r := watchedBy(t, c, openFirst)
	operator, leader := c.Projectors[1], c.Publishers[0]
	if _, err := operator.Command(within(t), "setup"); err != nil {
		t.Fatal(err)
	}
	if err := c.StartServices(); err != nil {
		t.Fatal(err)
	}
	r.awaitWork(t)
	r.write(t, 1500)
	r.awaitSecond(t, "before anything is wrong")
	model := r.witness.Client.Database(r.Names().ReadModelDatabase)
	publisher := publisherIn(t, leader)

	stop := r.writing(t, 50)
	if differ, _, err := verified(t, operator, "--publisher", publisher, "--rate", "0"); err != nil || len(differ) > 0 {
		t.Errorf("under load, with nothing wrong: got %v and %v, want no difference", differ, err)
	}
	want := damaged(t, model.Collection("orders_v2"))
	slices.Sort(want)
	differ, commands, err := verified(t, operator, "--publisher", publisher, "--rate", "0", "--wait", "2s")
	if err == nil || !slices.Equal(differ, want) {
		t.Errorf("what differs: got %v and %v, want %v", differ, err, want)
	}
	if len(commands) != 2 {
		t.Fatalf("offered: got %v, want a command for what the source has, and one for what it has not", commands)
	}
	mend := func() (failed error) {
		for _, command := range commands {
			words := strings.Fields(strings.ReplaceAll(strings.TrimPrefix(command, "projector "), "'verify found them different'", "different"))
			_, err := operator.Command(within(t), append(words, "--rate", "0")...)
			failed = errors.Join(failed, err)
		}
		return failed
	}
	mending := make(chan error, 1)
	go func() { mending <- mend() }()
	if leader, _, err = c.AwaitLeader(within(t), 0); err != nil {
		t.Fatal(err)
	}
	leader.Kill()
	c.Projectors[0].Kill()
	if err := <-mending; err != nil {
		t.Errorf("what is offered: %v", err)
	}
	if err := errors.Join(leader.Start(), c.Projectors[0].Start()); err != nil {
		t.Fatal(err)
	}
	stopReading := readers(t, model.Collection("orders"))
	await(t, "readers to see documents", func(ctx context.Context) (bool, string) {
		n, err := model.Collection("orders").EstimatedDocumentCount(ctx)
		return err == nil && n > 0, fmt.Sprint(n, err)
	})
	if err := mend(); err != nil {
		t.Errorf("what is offered, again: %v", err)
	}
	stop()
	r.awaitSecond(t, "after it was mended")
	stopReading()
	if differ, _, err := verified(t, operator, "--publisher", publisher); err != nil || len(differ) > 0 {
		t.Errorf("afterwards: got %v and %v, want no difference", differ, err)
	}
	if n, err := model.Collection("recomputed_documents").CountDocuments(within(t), bson.D{}); err != nil || n != 0 {
		t.Errorf("%d recomputed documents are left, %v", n, err)
	}
}
