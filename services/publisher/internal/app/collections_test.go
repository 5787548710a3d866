package app_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

func onCollectionChange(policy string) func(*config.Config) {
	return func(c *config.Config) { c.OnCollectionChange = policy }
}

func list(names ...string) func(*config.Config) {
	return func(c *config.Config) { c.SourceCollection, c.SourceCollections = "", names }
}

// swap renames a collection that was filled elsewhere onto the source's, as
// $out, a restore or a blue/green deployment does.
func (s *source) swap(t *testing.T) {
	t.Helper()
	other := s.Database().Collection("events_new")
	if _, err := other.InsertOne(t.Context(), bson.D{{Key: "aggregateId", Value: "moved"}, {Key: "version", Value: 1}, {Key: "type", Value: "Moved"}}); err != nil {
		t.Fatal(err)
	}
	rename := bson.D{{Key: "renameCollection", Value: "shop.events_new"}, {Key: "to", Value: "shop.events"}, {Key: "dropTarget", Value: true}}
	if err := s.Database().Client().Database("admin").RunCommand(t.Context(), rename).Err(); err != nil {
		t.Fatal(err)
	}
}

func TestCollection_OneThatIsReplacedStopsTheStreamUntilThatIsAccepted(t *testing.T) {
	t.Parallel()
	for name, watch := range map[string]func(*config.Config){
		"of one collection": func(*config.Config) {}, "of a list": list("events", "others"), "of a database": list("*"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			source := events(t, servers)
			c := configured(servers, watch)
			p := run(t, c)
			p.await(t, "the publisher to lead", leading)
			source.write(t, 40, 5)
			p.await(t, "the events to be sent", func(s status.Status) bool { return s.Sent >= 40 && s.InFlight == 0 })
			source.swap(t)
			p.awaitHalt(t, "source collection replaced", "publisher checkpoint accept", `rename of the collection "events_new" to "events"`)
			source.write(t, 10, 5)
			if _, err := say[command.MoveView](t, c, "checkpoint", "accept", "--why", "it was meant"); err != nil {
				t.Fatal(err)
			}
			p.await(t, "what is written since to be sent", func(s status.Status) bool { return leading(s) && s.Sent >= 50 && s.InFlight == 0 })
		})
	}
}

func TestCollection_OneThatWasReplacedMeanwhileIsFoundByItsID(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	published(t, servers, source, 20)
	published(t, servers, source, 20) // the first began before there was a collection
	source.swap(t)
	p := run(t, configured(servers))
	status := p.awaitHalt(t, "source collection replaced", "publisher checkpoint accept")
	if !strings.Contains(status.LastError, `the collection "events" had the id`) || status.Read != 0 {
		t.Errorf("status is %+v, want it found before anything is read", status)
	}
}

func TestCollection_AChangeThatDoesNotStopTheStreamIsInTheLedger(t *testing.T) {
	t.Parallel()
	drop := func(t *testing.T, s *source) {
		t.Helper()
		if err := s.Drop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		watch  func(*config.Config)
		policy string
		change func(*testing.T, *source)
		cause  string
		says   string
	}{
		"a drop":                   {func(*config.Config) {}, "stop-replaced", drop, "source collection changed", `drop of the collection "events"`},
		"a drop of one of several": {list("events", "others"), "stop-replaced", drop, "source collection changed", `drop of the collection "events"`},
		"a drop in a database":     {list("*"), "stop-replaced", drop, "source collection changed", `drop of the collection "events"`},
		"a replacement":            {func(*config.Config) {}, "report", func(t *testing.T, s *source) { t.Helper(); s.swap(t) }, "source collection replaced", `"events_new" to "events"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			source := events(t, servers)
			source.write(t, 1, 1) // so that the collection has an id when the stream begins
			c := configured(servers, tt.watch, onCollectionChange(tt.policy))
			p := run(t, c)
			p.await(t, "the publisher to lead", leading)
			source.write(t, 40, 5)
			p.await(t, "the events to be sent", sent(40))
			tt.change(t, source)
			shown := p.await(t, "it to be written down", func(s status.Status) bool { return s.GapCounts["report"] == 1 })
			if gap := shown.Gaps[0]; gap.Cause != tt.cause || !strings.Contains(gap.Error, tt.says) || gap.From == "" || gap.ToTime.IsZero() {
				t.Errorf("the ledger says %+v, want %q", gap, tt.says)
			}
			source.write(t, 10, 5)
			p.await(t, "what is written since to be sent", sent(50))
			if err := p.quit(); err != nil {
				t.Fatal(err)
			}
			again := run(t, c) // and the collection's new id is known
			again.await(t, "the publisher to lead again", leading)
		})
	}
}

func TestCollection_ADropStopsTheStreamWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	c := configured(servers, onCollectionChange("stop"))
	p := run(t, c)
	p.await(t, "the publisher to lead", leading)
	source.write(t, 40, 5)
	if err := source.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	shown := p.awaitHalt(t, "source collection changed", "publisher checkpoint accept")
	if shown.Sent != 40 {
		t.Errorf("%d events were sent, want those before the drop", shown.Sent)
	}
	if _, err := say[command.MoveView](t, c, "checkpoint", "accept", "--why", "it was meant"); err != nil {
		t.Fatal(err)
	}
	source.write(t, 10, 5)
	p.await(t, "what is written since to be sent", func(s status.Status) bool { return leading(s) && s.Sent >= 50 })
}
