package traffic

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/cluster/clustertest"
	"changerelay/services/e2e/internal/harness/poll"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// events is the collection that traffic goes to.
func events(t *testing.T, uri string) *mongo.Collection {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	names := cluster.DefaultNames()
	return client.Database(names.SourceDatabase).Collection(names.SourceCollection)
}

func TestTraffic_OneLoadFollowsAnother(t *testing.T) {
	t.Parallel()
	servers := clustertest.Sandbox(t)
	there := events(t, servers.MongoURI)
	for run := range int64(2) {
		before, err := there.CountDocuments(t.Context(), bson.D{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- Write(ctx, Config{MongoURI: servers.MongoURI, Rate: 1000, Aggregates: 10, Seed: 1}, &bytes.Buffer{})
		}()
		err = poll.Until(t.Context(), "events of the load", func(ctx context.Context) (bool, string) {
			n, err := there.CountDocuments(ctx, bson.D{})
			return err == nil && n >= before+100, "too few"
		})
		stop()
		if ended := <-done; ended != nil || err != nil {
			t.Errorf("load %d: got %v, %v, want that it writes and stops as asked", run, ended, err)
		}
	}
}

func TestTraffic_OnlyAFreshSystemIsJudged(t *testing.T) {
	t.Parallel()
	servers := clustertest.Sandbox(t)
	if _, err := events(t, servers.MongoURI).InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	cfg := Config{MongoURI: servers.MongoURI, ServiceBus: servers.ServiceBus, Rate: 10, Aggregates: 1, Duration: time.Second, Timeout: time.Minute}
	if err := Check(t.Context(), cfg, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "has 1 events already") {
		t.Errorf("check: got %v, want that the source is not fresh", err)
	}
}

// Nobody carries the events anywhere: the judgement says so.
func TestTraffic_WhatIsLostIsFound(t *testing.T) {
	t.Parallel()
	servers, names := clustertest.Sandbox(t), cluster.DefaultNames()
	w, err := witness.Open(t.Context(), servers, names, witness.Orders)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(context.Background()) })
	var out bytes.Buffer
	c := check{cfg: Config{Rate: 1000, Aggregates: 1, Seed: 1, Duration: 200 * time.Millisecond}, names: names, witness: w, out: &out}
	if err := c.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.judge(t.Context()); !errors.Is(err, ErrFaults) {
		t.Errorf("judgement: got %v, want %v", err, ErrFaults)
	}
	for _, want := range []string{" " + witness.LostBeforeTopic, " " + witness.LostBeforeReadModel} {
		if strings.Contains(out.String(), " 0"+want) || !strings.Contains(out.String(), want) {
			t.Errorf("report: got %s, want some%s", &out, want)
		}
	}
}

// A history without an entry shows nothing, least of all that nothing is wrong.
func TestTraffic_WhatWasNeverSeenHasNotPassed(t *testing.T) {
	t.Parallel()
	v := witness.Verdict{Events: validate.Source{"a": {1}}, Violations: []witness.Violation{{Name: witness.OutOfOrder}}}
	var out bytes.Buffer
	c := check{out: &out}
	if err := c.tell(v, nil); err != nil {
		t.Errorf("with all seen: got %v", err)
	}
	v.Unseen = map[string]bool{witness.OutOfOrder: true}
	if err := c.tell(v, nil); !errors.Is(err, ErrFaults) || !strings.Contains(out.String(), "none was ever seen") {
		t.Errorf("with none seen: got %v and %s, want %v", err, &out, ErrFaults)
	}
	if err := c.tell(witness.Verdict{}, nil); !errors.Is(err, ErrFaults) {
		t.Errorf("with no events: got %v, want %v", err, ErrFaults)
	}
	v.Unseen = nil
	if err := c.tell(v, []witness.Violation{{Name: witness.StillQueued, Findings: validate.Findings{Count: 1}}}); !errors.Is(err, ErrFaults) {
		t.Errorf("with a message left: got %v, want %v", err, ErrFaults)
	}
}
