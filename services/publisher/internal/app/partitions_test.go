package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/app"
	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

func split(n int) func(*config.Config) { return func(c *config.Config) { c.Partitions = n } }

// patient leases outlive any pause of a loaded machine, so that partitions move
// only when instances come and go.
func patient(c *config.Config) { c.LeaseTTL, c.LeaseRenewDeadline = 3*time.Minute, 2*time.Minute }

// awaitOverview waits until the process's status is as wanted.
func (p *process) awaitOverview(t *testing.T, what string, wanted func(app.Overview) bool) {
	t.Helper()
	testserver.Eventually(t, what, func() bool {
		_, body := p.get(t, "/status")
		var o app.Overview
		if err := json.Unmarshal([]byte(body), &o); err != nil {
			t.Fatal(err)
		}
		return wanted(o)
	})
}

// leads wants an instance to publish count partitions.
func leads(count int) func(app.Overview) bool {
	return func(o app.Overview) bool {
		publishing := 0
		for _, stream := range o.Streams {
			if stream.State == "publishing" {
				publishing++
			}
		}
		return len(o.Led) == count && publishing == count
	}
}

func TestPartitions_InstancesShareThePartitionsAndLoseNothingOverIt(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	a := run(t, configured(servers, named("a"), split(4), patient))
	a.awaitOverview(t, "a to lead all partitions", leads(4))
	source.write(t, 200, 40)
	b := run(t, configured(servers, named("b"), split(4), patient))
	b.awaitOverview(t, "b to lead its half", leads(2))
	a.awaitOverview(t, "a to lead the other half", leads(2))
	source.write(t, 200, 40)
	if err := a.quit(); err != nil {
		t.Fatalf("Run = %v, want nil", err)
	}
	source.write(t, 200, 40)
	b.awaitOverview(t, "b to lead all partitions", leads(4))
	got := source.drain(t, servers)
	source.wantAll(t, got)
	if got.repeats != 0 {
		t.Errorf("%d messages came twice after moves in order, want none", got.repeats)
	}
	if _, body := b.get(t, "/metrics"); !strings.Contains(body, `publisher_leader{partition="3"} 1`) {
		t.Error("/metrics does not tell the partitions apart")
	}
	if code, _ := b.get(t, "/ready"); code != http.StatusOK {
		t.Errorf("/ready answers %d, want 200", code)
	}
}

// What is written after one partition has begun is none that another leaves out
// because it begins later.
func TestPartitions_BeginWhereTheFirstOfThemBegan(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	if _, err := source.InsertOne(t.Context(), bson.D{{Key: "aggregateId", Value: "left-out"}, {Key: "version", Value: 1}, {Key: "type", Value: "OrderPlaced"}}); err != nil {
		t.Fatal(err)
	}
	holdLease(t, servers, "-1of2")
	p := run(t, configured(servers, split(2), patient))
	p.awaitOverview(t, "the first partition to be led alone", leads(1))
	source.write(t, 100, 40)
	if _, err := state(t, servers, "leader_leases").DeleteOne(t.Context(), bson.D{{Key: "_id", Value: "publisher-1of2"}}); err != nil {
		t.Fatal(err)
	}
	p.awaitOverview(t, "both partitions to be led", leads(2))
	source.write(t, 100, 40)
	p.awaitOverview(t, "all that came since to be sent", func(o app.Overview) bool { return o.Sent == 200 })
	source.wantAll(t, source.drain(t, servers))
}

func TestPartitions_AChangeWithoutAggregateIsParkedByOnePartition(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, split(3))
	p := run(t, c)
	p.awaitOverview(t, "all partitions to be led", leads(3))
	if _, err := events(t, servers).InsertOne(t.Context(), bson.D{{Key: "type", Value: "OrderPlaced"}}); err != nil {
		t.Fatal(err)
	}
	p.awaitOverview(t, "all partitions to have read it", func(o app.Overview) bool {
		read, parked := int64(0), int64(0)
		for _, stream := range o.Streams {
			read += stream.Read
			parked += stream.Parked
		}
		return read == 3 && parked == 1
	})
	if listed, err := lines(t, c, "parked", "list"); err != nil || len(listed) != 1 {
		t.Errorf("listed %+v, %v, want one change", listed, err)
	}
}

func TestPartitions_TheirNumberIsChangedByACommandAndNotByASetting(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	one := run(t, configured(servers))
	one.await(t, "the publisher to lead", leading)
	source.write(t, 100, 20)
	one.await(t, "the events to be sent", sent(100))
	refused := run(t, configured(servers, named("b"), split(2)))
	<-refused.done
	if refused.err == nil || !strings.Contains(refused.err.Error(), "publisher repartition") {
		t.Errorf("Run = %v, want a refusal that says what to do", refused.err)
	}
	if err := runCommand(t, configured(servers, split(2)), io.Discard, "repartition"); err == nil {
		t.Error("the checkpoints are replaced under a leader")
	}
	if err := one.quit(); err != nil {
		t.Fatal(err)
	}
	source.write(t, 100, 20)
	if err := runCommand(t, configured(servers, split(2)), io.Discard, "repartition"); err != nil {
		t.Fatal(err)
	}
	two := run(t, configured(servers, split(2)))
	two.awaitOverview(t, "both partitions to be led", leads(2))
	source.write(t, 100, 20)
	source.wantAll(t, source.drain(t, servers))
}

// loseOne has a publisher send events in two partitions and stop, and deletes the
// checkpoint of one. It returns the collection of the checkpoints.
func loseOne(t *testing.T, servers testserver.Servers, source *source, c config.Config, lost string) *mongo.Collection {
	t.Helper()
	first := run(t, c)
	first.awaitOverview(t, "both partitions to be led", leads(2))
	source.write(t, 40, 10)
	source.wantAll(t, source.drain(t, servers))
	if err := first.quit(); err != nil {
		t.Fatal(err)
	}
	kept := state(t, servers, "resume_tokens")
	if _, err := kept.DeleteOne(t.Context(), bson.D{{Key: "_id", Value: lost}}); err != nil {
		t.Fatal(err)
	}
	return kept
}

// TestPartitions_ACommandIsAboutThoseThatAreHalted loses the checkpoint of one of
// two, and types each command that the halt prints.
func TestPartitions_ACommandIsAboutThoseThatAreHalted(t *testing.T) {
	t.Parallel()
	const healthy, lost = "shop.events-0of2", "shop.events-1of2"
	for _, i := range []int{0, 1} {
		t.Run("remedy "+string(rune('1'+i)), func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			source := events(t, servers)
			c := configured(servers, split(2), patient)
			kept := loseOne(t, servers, source, c, lost)
			p := run(t, c)
			var why string
			p.awaitOverview(t, "one to halt, and one to publish", func(o app.Overview) bool {
				halted, publishing := 0, 0
				for _, stream := range o.Streams {
					switch stream.State {
					case "halted":
						halted, why = halted+1, stream.LastError
					case "publishing":
						publishing++
					}
				}
				return halted == 1 && publishing == 1
			})
			term := func() int64 {
				found, err := kept.FindOne(t.Context(), bson.D{{Key: "_id", Value: healthy}}).Raw()
				if err != nil {
					t.Fatal(err)
				}
				return found.Lookup("term").AsInt64()
			}
			before := term()
			all := remedies(why, time.Now().Add(-time.Second).Format(time.RFC3339))
			if len(all) != 2 {
				t.Fatalf("%q has the commands %q, want 2", why, all)
			}
			var err error
			testserver.Eventually(t, "the halt to be written down", func() bool {
				_, err = say[command.MoveView](t, c, all[i]...)
				return err == nil || !strings.Contains(err.Error(), "is held by")
			})
			if err != nil {
				t.Fatalf("%q = %v", all[i], err)
			}
			p.awaitOverview(t, "both to publish", leads(2))
			if after := term(); after != before {
				t.Errorf("the healthy partition is in term %d, was in %d", after, before)
			}
			if _, err := say[command.MoveView](t, c, "checkpoint", "accept", "--why", "x", "--partition", "2"); err == nil || !strings.Contains(err.Error(), "0 to 1") {
				t.Errorf("--partition 2 = %v, want it refused", err)
			}
			if _, err := say[command.MoveView](t, c, "checkpoint", "accept", "--why", "x", "--partition", "0"); err == nil || !strings.Contains(err.Error(), "is held by") {
				t.Errorf("--partition 0 = %v, want it refused: it is led", err)
			}
		})
	}
}

// TestPartitions_WhatHasAPlaceIsAcceptedBesideWhatHasNone loses the checkpoint of one of
// two, sets that of the other back, and types the first command of each halt.
func TestPartitions_WhatHasAPlaceIsAcceptedBesideWhatHasNone(t *testing.T) {
	t.Parallel()
	const lost, behind = "shop.events-0of2", "shop.events-1of2"
	servers := testserver.Start(t)
	source := events(t, servers)
	c := configured(servers, split(2), patient)
	kept := loseOne(t, servers, source, c, lost)
	earlier := bson.D{{Key: "$set", Value: bson.D{{Key: "term", Value: int64(0)}}}}
	if _, err := kept.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: behind}}, earlier); err != nil {
		t.Fatal(err)
	}
	p := run(t, c)
	why := map[string]string{}
	p.awaitOverview(t, "both to halt", func(o app.Overview) bool {
		for _, stream := range o.Streams {
			if stream.State == "halted" {
				why[stream.Stream] = stream.LastError
			}
		}
		return len(why) == 2
	})
	for i, name := range []string{behind, lost} {
		all := remedies(why[name], time.Now().Add(-time.Second).Format(time.RFC3339))
		if len(all) == 0 {
			t.Fatalf("%s: %q has no command", name, why[name])
		}
		var said strings.Builder
		var err error
		testserver.Eventually(t, "the halt to be written down", func() bool {
			said.Reset()
			_, err = program(c).Do(t.Context(), all[0], io.Discard, &said)
			return err == nil || !strings.Contains(err.Error(), "is held by")
		})
		if err != nil {
			t.Fatalf("%s: %q = %v", name, all[0], err)
		}
		if told := strings.Contains(said.String(), lost+" has no place to accept") && strings.Contains(said.String(), "checkpoint reset --partition 0 --why TEXT"); told != (name == behind) {
			t.Errorf("%s: %q says %q, want the other one named where it is not decided", name, all[0], said.String())
		}
		p.awaitOverview(t, name+" to publish, and what is not decided to stay halted", func(o app.Overview) bool {
			states := map[string]string{}
			for _, stream := range o.Streams {
				states[stream.Stream] = stream.State
			}
			return states[name] == "publishing" && (i > 0 || states[lost] == "halted")
		})
	}
}

// TestPartitions_OfAnotherNumberThanWasLostAreNoFirstStart leaves nothing but the
// ledger of a stream without partitions, and starts it with some.
func TestPartitions_OfAnotherNumberThanWasLostAreNoFirstStart(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	published(t, servers, events(t, servers), 10)
	wipe(t, state(t, servers, "streams"))
	wipe(t, state(t, servers, "resume_tokens"))
	p := run(t, configured(servers, split(2), patient))
	p.awaitOverview(t, "both partitions to halt", func(o app.Overview) bool {
		halted := slices.DeleteFunc(o.Streams, func(s status.Status) bool { return !strings.Contains(s.LastError, "stream record lost") })
		return len(halted) == 2
	})
}
