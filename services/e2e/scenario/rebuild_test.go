package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/e2e/internal/harness/cluster"
)

// publisherIn writes a program that runs a publisher's command line in its environment.
func publisherIn(t *testing.T, n *cluster.Node) string {
	t.Helper()
	path, err := n.Script(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// readers look at the documents of a view again and again until stop, which reports
// every document that readers have seen go back or vanish.
func readers(t *testing.T, view *mongo.Collection) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	seen := map[string]int64{}
	reading.Go(func() {
		for ctx.Err() == nil {
			now, err := versionsIn(ctx, view)
			if err != nil {
				if ctx.Err() == nil {
					t.Errorf("read %q: %v", view.Name(), err)
				}
				return
			}
			for id, version := range seen {
				if now[id] < version {
					t.Errorf("readers have seen order %s at version %d, and then at %d", id, version, now[id])
					return
				}
			}
			seen = now
		}
	})
	return func() {
		cancel()
		reading.Wait()
		if len(seen) == 0 {
			t.Error("readers have seen nothing")
		}
	}
}

// versionsIn are the versions of the documents in a view, by their keys.
func versionsIn(ctx context.Context, view *mongo.Collection) (map[string]int64, error) {
	cursor, err := view.Find(ctx, bson.D{})
	if err != nil {
		return nil, err
	}
	var all []struct {
		ID    string `bson:"_id"`
		Relay struct {
			Version int64 `bson:"aggregateVersion"`
		} `bson:"_relay"`
	}
	err = cursor.All(ctx, &all)
	versions := make(map[string]int64, len(all))
	for i := range all {
		versions[all[i].ID] = all[i].Relay.Version
	}
	return versions, err
}

// Documents are altered and lost. One command has them built anew from the source, while
// events flow, the leader and a projector are killed, and the command itself: readers see
// old or new documents and none in between, and in the end what the source says.
func TestRebuild_OneCommandMendsAReadModelUnderLoad(t *testing.T) {
	t.Parallel()
	c := cluster.New(configure(t, func(c *cluster.Config) { c.Projections = versionFile(t, 2) }))
	closeAtEnd(t, c)
	if err := c.StartServers(within(t)); err != nil {
		t.Fatal(err)
	}
	r := watchedBy(t, c, openFirst)
	operator := c.Projectors[1]
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
	altered, err := model.Collection("orders_v2").UpdateMany(within(t), bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "status", Value: "lied about"}}}})
	if err != nil || altered.ModifiedCount == 0 {
		t.Fatalf("alter documents: %v and %v", altered, err)
	}
	lost, err := versionsIn(within(t), model.Collection("orders"))
	if err != nil {
		t.Fatal(err)
	}
	for id := range lost {
		if id[len(id)-1] != '7' {
			continue
		}
		if _, err := model.Collection("orders_v2").DeleteOne(within(t), bson.D{{Key: "_id", Value: id}}); err != nil {
			t.Fatal(err)
		}
	}

	stopReading := readers(t, model.Collection("orders"))
	stop := r.writing(t, 50)
	args := []string{"rebuild", "--projection", "orders", "--why", "documents were altered", "--publisher", publisherIn(t, c.Publishers[0]), "--rate", "300", "--grace", "0s"}
	rebuilding, kill := context.WithCancel(within(t))
	defer kill()
	first := make(chan error, 1)
	go func() {
		_, err := operator.Command(rebuilding, args...)
		first <- err
	}()
	filled := func(n int64) func(ctx context.Context) (bool, string) {
		return func(ctx context.Context) (bool, string) {
			got, err := model.Collection("orders_v3").EstimatedDocumentCount(ctx)
			return err == nil && got >= n, fmt.Sprintf("%d documents and %v", got, err)
		}
	}
	await(t, "the first documents of the new version", filled(10))
	leader, _, err := c.AwaitLeader(within(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	leader.Kill()
	c.Projectors[0].Kill()
	kill()
	if err := <-first; err == nil {
		t.Fatal("the command came to its end before it could be killed")
	}
	if err := errors.Join(leader.Start(), c.Projectors[0].Start()); err != nil {
		t.Fatal(err)
	}
	output, err := operator.Command(within(t), args...)
	if err != nil {
		t.Fatalf("the command, again: %v", err)
	}
	stop()
	r.awaitSecond(t, "after the rebuild")
	stopReading()
	if !strings.Contains(output, `"step":"done"`) || !strings.Contains(output, `"seconds_left"`) {
		t.Errorf("the command prints %s: want how far it is, and that it is done", output)
	}
	if names, err := model.ListCollectionNames(within(t), bson.D{{Key: "name", Value: bson.D{{Key: "$regex", Value: "^orders_v"}}}}); err != nil || strings.Join(names, " ") != "orders_v3" {
		t.Errorf("collections afterwards: got %v and %v, want orders_v3", names, err)
	}
}

// Where no machine has both command lines, an operator runs what the rebuild prints in the
// publisher's environment, and hands on what the publisher says of its resends.
func TestRebuild_WithoutThePublishersCommandLineGoesByItsReport(t *testing.T) {
	t.Parallel()
	c := cluster.New(configure(t, func(c *cluster.Config) { c.Projections = versionFile(t, 2) }))
	closeAtEnd(t, c)
	if err := c.StartServers(within(t)); err != nil {
		t.Fatal(err)
	}
	r := watchedBy(t, c, openFirst)
	operator, publisher := c.Projectors[1], c.Publishers[0]
	if _, err := operator.Command(within(t), "setup"); err != nil {
		t.Fatal(err)
	}
	if err := c.StartServices(); err != nil {
		t.Fatal(err)
	}
	r.awaitWork(t)
	r.write(t, 300)
	r.awaitSecond(t, "before anything is wrong")
	model := r.witness.Client.Database(r.Names().ReadModelDatabase)
	if _, err := model.Collection("orders_v2").UpdateMany(within(t), bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "status", Value: "lied about"}}}}); err != nil {
		t.Fatal(err)
	}

	said, err := operator.Command(within(t), "rebuild", "--projection", "orders", "--why", "documents were altered", "--grace", "0s")
	printed := regexp.MustCompile(`"(publisher resend --all [^"]+)"`).FindStringSubmatch(said)
	if err == nil || printed == nil {
		t.Fatalf("the command prints %s and ends with %v: want it unfinished, and what to run", said, err)
	}
	shell := func(line string) (string, error) {
		run := exec.CommandContext(within(t), "sh", "-c", line)
		run.Env = append(os.Environ(), "PATH="+filepath.Dir(publisherIn(t, publisher))+":"+filepath.Dir(publisherIn(t, operator))+":"+os.Getenv("PATH"))
		output, err := run.CombinedOutput()
		return string(output), err
	}
	if output, err := shell(printed[1]); err != nil {
		t.Fatalf("%s: %v, %s", printed[1], err, output)
	}
	const handOn = "publisher resend status --all --json | projector rebuild --projection orders --resent - --grace 0s"
	await(t, "the rebuild to be done once the resend is", func(context.Context) (bool, string) {
		output, err := shell(handOn)
		return err == nil && strings.Contains(output, `"step":"done"`), output
	})
	r.awaitSecond(t, "after the rebuild")
}
