package app_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"changerelay/services/publisher/internal/app"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/testserver"
)

// TestAside_AReplicaWithOtherSettingsLeavesTheLeadToOneThatFits has a replica halt
// for its own settings, beside one that has those of the stream.
func TestAside_AReplicaWithOtherSettingsLeavesTheLeadToOneThatFits(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]func(*app.Config){
		"another mode": documents,
		"a filter":     func(c *app.Config) { c.SourceFilter = `{"fullDocument.type": "OrderPlaced"}` },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			source := events(t, servers)
			published(t, servers, source, 20)
			misfit := config(servers, named("misfit"), wrong)
			aside := run(t, misfit)
			aside.await(t, "the misfit to stand aside", func(s app.Status) bool { return s.State == "halted" && s.Role == "standby" })
			fit := run(t, config(servers))
			fit.await(t, "the one that fits to lead", leading)
			source.write(t, 20, 5)
			fit.await(t, "the events to be sent", sent(20))
			if err := fit.quit(); err != nil {
				t.Fatal(err)
			}
			again := run(t, config(servers, named("b")))
			again.await(t, "the next that fits to lead", leading)
			status := aside.status(t)
			if status.Takeovers != 1 || status.State != "halted" || !strings.Contains(status.LastError, "publisher checkpoint accept") {
				t.Errorf("the misfit is %+v, want it halted, and to have led once", status)
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
			if _, err := say[app.MoveView](t, misfit, "checkpoint", "accept", "--why", "test"); err != nil {
				t.Fatal(err)
			}
			aside.await(t, "the misfit to lead with what was accepted", leading)
		})
	}
}

// TestAside_AHaltThatIsWrittenLateIsNotThatOfTheNextLeader writes what one that was
// frozen over a takeover writes.
func TestAside_AHaltThatIsWrittenLateIsNotThatOfTheNextLeader(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	_, judged := published(t, servers, events(t, servers), 20)
	run(t, config(servers)).await(t, "the next to lead", leading)
	streams := mongostate.New(testserver.Connect(t, servers.MongoURI), "change_relay").Streams()
	if err := streams.Halt(t.Context(), "shop.events", judged.Lookup("confirmed").AsInt64(), "late"); err != nil {
		t.Fatal(err)
	}
	view, err := say[app.StreamView](t, config(servers), "status")
	if err != nil || view.Halted != "" {
		t.Errorf("status = %+v, %v, want no halt of who leads", view, err)
	}
	if _, err := say[app.MoveView](t, config(servers), "checkpoint", "set", "--why", "x", "2026-01-01T00:00:00Z"); err == nil || !strings.Contains(err.Error(), "is held by") {
		t.Errorf("checkpoint set = %v, want it refused beside a leader", err)
	}
}

// TestAside_APartitionIsLeftToAnInstanceThatFits has the share of an instance that
// fits nowhere go to another.
func TestAside_APartitionIsLeftToAnInstanceThatFits(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	c := config(servers, split(2))
	first := run(t, c)
	first.awaitOverview(t, "both partitions to be led", leads(2))
	source.write(t, 20, 5)
	first.awaitOverview(t, "the events to be sent", func(o app.Overview) bool { return o.Sent >= 20 })
	if err := first.quit(); err != nil {
		t.Fatal(err)
	}
	aside := run(t, config(servers, split(2), named("misfit"), documents))
	aside.awaitOverview(t, "the misfit to stand aside", func(o app.Overview) bool { return o.State == "halted" && len(o.Led) == 0 })
	run(t, c).awaitOverview(t, "the one that fits to lead both", leads(2))
}

// TestAside_PartitionsGoToTheInstancesThatFitThem has two instances of which each
// fits one partition alone.
func TestAside_PartitionsGoToTheInstancesThatFitThem(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	first := run(t, config(servers, split(2), patient))
	first.awaitOverview(t, "both partitions to be led", leads(2))
	source.write(t, 20, 5)
	first.awaitOverview(t, "the events to be sent", func(o app.Overview) bool { return o.Sent >= 20 })
	if err := first.quit(); err != nil {
		t.Fatal(err)
	}
	other := config(servers, split(2), patient, named("x"), documents)
	if _, err := say[app.MoveView](t, other, "checkpoint", "accept", "--partition", "0", "--force", "--why", "test"); err != nil {
		t.Fatal(err)
	}
	for _, turn := range [][2]string{{"x", "y"}, {"y", "x"}} {
		instances := map[string]app.Config{"x": other, "y": config(servers, split(2), patient, named("y"))}
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
