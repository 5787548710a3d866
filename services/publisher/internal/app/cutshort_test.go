package app_test

import (
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// rename gives the collection another name.
func (s *source) rename(t *testing.T, from, to string) {
	t.Helper()
	rename := bson.D{{Key: "renameCollection", Value: "shop." + from}, {Key: "to", Value: "shop." + to}}
	if err := s.Database().Client().Database("admin").RunCommand(t.Context(), rename).Err(); err != nil {
		t.Fatal(err)
	}
}

// TestCopy_OfACollectionThatGoesAwayIsNotComplete takes the collection away in the
// middle of a copy, and has another one in its place, or none.
func TestCopy_OfACollectionThatGoesAwayIsNotComplete(t *testing.T) {
	t.Parallel()
	index := driver.IndexModel{Keys: bson.D{{Key: "aggregateId", Value: 1}, {Key: "version", Value: 1}, {Key: "_id", Value: 1}}}
	for name, tt := range map[string]struct {
		anew bool
		then func(t *testing.T, s *source, c config.Config) (whole bool)
	}{
		"renamed, and back": {then: func(t *testing.T, s *source, _ config.Config) bool {
			t.Helper()
			s.rename(t, "events_old", "events")
			return true
		}},
		"renamed, and given up": {then: func(t *testing.T, _ *source, c config.Config) bool {
			t.Helper()
			if _, err := say[command.MoveView](t, c, "checkpoint", "accept", "--why", "it is not needed"); err != nil {
				t.Fatal(err)
			}
			return false
		}},
		"another in its place, and back": {anew: true, then: func(t *testing.T, s *source, _ config.Config) bool {
			t.Helper()
			if err := s.Drop(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.rename(t, "events_old", "events")
			return true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			source := events(t, servers)
			if _, err := source.Indexes().CreateOne(t.Context(), index); err != nil {
				t.Fatal(err)
			}
			for range 4 {
				source.write(t, 1000, 100)
			}
			c := configured(servers, func(c *config.Config) { c.StartAt, c.SnapshotRate = "snapshot", 1000 })
			p := run(t, c)
			p.await(t, "a part to be copied", func(s status.Status) bool { return s.Copy != nil && s.Copy.Copied >= 500 })
			source.rename(t, "events", "events_old")
			if tt.anew {
				if _, err := source.Indexes().CreateOne(t.Context(), index); err != nil {
					t.Fatal(err)
				}
			}
			shown := p.awaitHalt(t, "source collection replaced", "of about 4000 documents")
			if !slices.ContainsFunc(shown.Gaps, func(g mongostate.Gap) bool {
				return g.Decision == "stop" && strings.Contains(g.Error, "of about 4000 documents")
			}) {
				t.Errorf("the ledger says %+v, want how much was copied", shown.Gaps)
			}
			if err := p.quit(); err != nil {
				t.Fatal(err)
			}
			whole := tt.then(t, source, c)
			next := run(t, c)
			next.await(t, "the stream to follow", func(s status.Status) bool { return leading(s) && s.Copy == nil })
			if whole {
				source.wantAll(t, source.drain(t, servers))
			} else if entry := entered(t, servers, "report"); !strings.Contains(entry.Lookup("error").StringValue(), "of about 4000 documents: there is no collection") {
				t.Errorf("the ledger says %s, want how much was copied", entry)
			}
		})
	}
}
