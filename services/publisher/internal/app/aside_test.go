package app_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/app"
	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// TestAside_AReplicaWithOtherSettingsLeavesTheLeadToOneThatFits has a replica halt
// for its own settings, beside one that has those of the stream.
func TestAside_AReplicaWithOtherSettingsLeavesTheLeadToOneThatFits(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]func(*config.Config){
		"another mode": documents,
		"a filter":     func(c *config.Config) { c.SourceFilter = `{"fullDocument.type": "OrderPlaced"}` },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			source := events(t, servers)
			published(t, servers, source, 20)
			misfit := configured(servers, named("misfit"), wrong)
			aside := run(t, misfit)
			aside.await(t, "the misfit to stand aside", func(s status.Status) bool { return s.State == "halted" && s.Role == "standby" })
			fit := run(t, configured(servers))
			fit.await(t, "the one that fits to lead", leading)
			source.write(t, 20, 5)
			fit.await(t, "the events to be sent", sent(20))
			if err := fit.quit(); err != nil {
				t.Fatal(err)
			}
			again := run(t, configured(servers, named("b")))
			again.await(t, "the next that fits to lead", leading)
			shown := aside.status(t)
			if shown.Takeovers != 1 || shown.State != "halted" || !strings.Contains(shown.LastError, "publisher checkpoint accept") {
				t.Errorf("the misfit is %+v, want it halted, and to have led once", shown)
			}
			if code, _ := aside.get(t, "/ready"); code != http.StatusServiceUnavailable {
				t.Errorf("/ready answers %d, want 503", code)
			}
			if _, metrics := aside.get(t, "/metrics"); !strings.Contains(metrics, "publisher_halted{") {
				t.Error("/metrics does not say that it is halted")
			}
			if err := again.quit(); err != nil {
				t.Fatal(err)
			}
			if _, err := say[command.MoveView](t, misfit, "checkpoint", "accept", "--why", "test"); err != nil {
				t.Fatal(err)
			}
			aside.await(t, "the misfit to lead with what was accepted", leading)
		})
	}
}

// TestAside_AHaltThatIsWrittenLateIsNotThatOfTheNextLeader writes what one that was
// frozen over a takeover writes, which may be the process that leads again.
func TestAside_AHaltThatIsWrittenLateIsNotThatOfTheNextLeader(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	_, judged := published(t, servers, events(t, servers), 20)
	run(t, configured(servers)).await(t, "the next to lead", leading)
	kept := mongostate.New(testserver.Connect(t, servers.MongoURI), "change_relay")
	held, seen := only(t, state(t, servers, "leader_leases")), judged.Lookup("confirmed").AsInt64()
	leader := lease.Holder{ID: held.Lookup("leaderId").StringValue(), Incarnation: held.Lookup("incarnation").StringValue()}
	for _, err := range []error{
		kept.Streams().Halt(t.Context(), "shop.events", seen, "late"),
		kept.Lease(held.Lookup("_id").StringValue()).Halt(t.Context(), leader, seen, "late"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	view, err := say[command.StreamView](t, configured(servers), "status")
	if err != nil || view.Halted != "" {
		t.Errorf("status = %+v, %v, want no halt of who leads", view, err)
	}
	if _, err := say[command.MoveView](t, configured(servers), "checkpoint", "set", "--why", "x", "2026-01-01T00:00:00Z"); err == nil || !strings.Contains(err.Error(), "is held by") {
		t.Errorf("checkpoint set = %v, want it refused beside a leader", err)
	}
}

// TestAside_APartitionIsLeftToAnInstanceThatFits has the share of an instance that
// fits nowhere go to another.
func TestAside_APartitionIsLeftToAnInstanceThatFits(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	c := configured(servers, split(2))
	first := run(t, c)
	first.awaitOverview(t, "both partitions to be led", leads(2))
	source.write(t, 20, 5)
	first.awaitOverview(t, "the events to be sent", func(o app.Overview) bool { return o.Sent >= 20 })
	if err := first.quit(); err != nil {
		t.Fatal(err)
	}
	aside := run(t, configured(servers, split(2), named("misfit"), documents))
	aside.awaitOverview(t, "the misfit to stand aside", func(o app.Overview) bool { return o.State == "halted" && len(o.Led) == 0 })
	run(t, c).awaitOverview(t, "the one that fits to lead both", leads(2))
}

// TestAside_OneThatFitsNoneTakesOneAlone has an instance that fits nowhere join one
// that leads everything: what it has learned from one partition spares the others.
func TestAside_OneThatFitsNoneTakesOneAlone(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	first := run(t, configured(servers, split(2), patient))
	first.awaitOverview(t, "both partitions to be led", leads(2))
	source.write(t, 20, 5)
	first.awaitOverview(t, "the events to be sent", func(o app.Overview) bool { return o.Sent >= 20 })
	run(t, configured(servers, split(2), patient, named("misfit"), documents))
	testserver.Eventually(t, "the misfit to leave both alone", func() bool {
		n, err := state(t, servers, "publisher_instances").CountDocuments(t.Context(), bson.D{{Key: "aside", Value: bson.A{0, 1}}})
		return err == nil && n == 1
	})
	first.awaitOverview(t, "both partitions to be led again", leads(2))
	if n := strings.Count(first.log.String(), "partition given up for another instance"); n != 1 {
		t.Errorf("%d partitions were given up for it, want one", n)
	}
}

// TestAside_PartitionsGoToTheInstancesThatFitThem has two instances of which each
// fits one partition alone.
func TestAside_PartitionsGoToTheInstancesThatFitThem(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	first := run(t, configured(servers, split(2), patient))
	first.awaitOverview(t, "both partitions to be led", leads(2))
	source.write(t, 20, 5)
	first.awaitOverview(t, "the events to be sent", func(o app.Overview) bool { return o.Sent >= 20 })
	if err := first.quit(); err != nil {
		t.Fatal(err)
	}
	other := configured(servers, split(2), patient, named("x"), func(c *config.Config) { c.SourceFilter = `{"fullDocument.type": "OrderPlaced"}` })
	if _, err := say[command.MoveView](t, other, "checkpoint", "accept", "--partition", "0", "--force", "--why", "test"); err != nil {
		t.Fatal(err)
	}
	for _, turn := range [][2]string{{"x", "y"}, {"y", "x"}} {
		instances := map[string]config.Config{"x": other, "y": configured(servers, split(2), patient, named("y"))}
		fits := map[string]int{"x": 0, "y": 1}
		var running []*process
		for _, name := range turn {
			p := run(t, instances[name])
			running = append(running, p)
			p.awaitOverview(t, name+" to lead what fits it, and nothing else", func(o app.Overview) bool {
				aside := o.Streams[1-fits[name]]
				return slices.Equal(o.Led, []int{fits[name]}) && o.Streams[fits[name]].State == "publishing" && (len(running) == 2 || aside.State == "halted")
			})
		}
		for _, p := range running {
			if err := p.quit(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestAside_AHaltBeforeTheClaimIsInTheRecord has a publisher that starts find its
// stream without a checkpoint: any machine is to see that it waits.
func TestAside_AHaltBeforeTheClaimIsInTheRecord(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	published(t, servers, events(t, servers), 20)
	wipe(t, state(t, servers, "resume_tokens"))
	run(t, configured(servers)).awaitHalt(t, "checkpoint missing")
	view, err := say[command.StreamView](t, configured(servers), "status")
	if err != nil || !strings.Contains(view.Halted, "checkpoint missing") {
		t.Errorf("status says %q, %v, want why the publisher waits", view.Halted, err)
	}
}

// TestAside_AHaltBecauseTheStateIsGoneIsInTheLease has a leader find out by its next
// save, with no look before it: nothing but its lease can say that it waits.
func TestAside_AHaltBecauseTheStateIsGoneIsInTheLease(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	c := configured(servers, func(c *config.Config) {
		c.LeaseTTL, c.LeaseRenewDeadline, c.LeaseHeartbeat = 3*time.Hour, 2*time.Hour, time.Hour
	})
	p := run(t, c)
	p.await(t, "the publisher to lead", leading)
	for _, name := range []string{"resume_tokens", "streams", "stream_gaps"} {
		wipe(t, state(t, servers, name))
	}
	place := time.Now().Add(-time.Minute).Format(time.RFC3339)
	source.write(t, 20, 5)
	p.awaitHalt(t, "stream record lost")
	if _, err := say[command.MoveView](t, c, "checkpoint", "set", "--new", "--why", "test", place); err != nil {
		t.Errorf("checkpoint set = %v, want it to need no --force beside a leader that waits", err)
	}
	p.await(t, "what came since to be sent", sent(20))
}

// TestAside_AnotherClusterThatIsKnownByItsCollectionsAloneIsLeft has a replica read
// another cluster, whose id and replica set tell nothing.
func TestAside_AnotherClusterThatIsKnownByItsCollectionsAloneIsLeft(t *testing.T) {
	t.Parallel()
	servers, elsewhere := testserver.Start(t), testserver.Start(t)
	refuse(t, servers, "replSetGetConfig")
	refuse(t, elsewhere, "replSetGetConfig")
	source := events(t, servers)
	for _, at := range []testserver.Servers{servers, elsewhere} {
		if err := events(t, at).Database().CreateCollection(t.Context(), "events"); err != nil {
			t.Fatal(err)
		}
	}
	published(t, servers, source, 20)
	misfit := run(t, configured(servers, named("misfit"), func(c *config.Config) { c.MongoURI = configured(elsewhere).MongoURI }))
	shown := misfit.await(t, "the misfit to stand aside", func(s status.Status) bool { return s.State == "halted" && s.Role == "standby" })
	if !strings.Contains(shown.LastError, "source collection replaced") || !strings.Contains(shown.LastError, "MONGODB_URI") {
		t.Errorf("last error is %q, want what may be wrong", shown.LastError)
	}
	if n, err := state(t, servers, "stream_gaps").CountDocuments(t.Context(), bson.D{{Key: "cause", Value: "source collection replaced"}, {Key: "decision", Value: "stop"}}); err != nil || n != 1 {
		t.Errorf("%d entries of the ledger say so, %v, want one", n, err)
	}
	for _, look := range []string{"once", "twice"} { // the first has ended by the second
		edit(t, state(t, servers, "streams"), "$set", "began.how", look)
		misfit.await(t, "the misfit to look "+look, func(s status.Status) bool { return s.Began != nil && s.Began.How == look })
	}
	fit := run(t, configured(servers))
	fit.await(t, "the one that fits to lead", leading)
	source.write(t, 20, 5)
	fit.await(t, "the events to be sent", sent(20))
	if status := misfit.status(t); status.Takeovers != 1 || status.State != "halted" {
		t.Errorf("the misfit is %+v, want it halted, and to have led once", status)
	}
}
