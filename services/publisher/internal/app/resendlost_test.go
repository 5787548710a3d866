package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/resend"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// TestResend_OneWhoseDocumentsGoAwayIsIncomplete takes the collection or its documents
// away in the middle. What is left to read then is nothing, which is no end.
func TestResend_OneWhoseDocumentsGoAwayIsIncomplete(t *testing.T) {
	t.Parallel()
	remove := func(t *testing.T, s *source) {
		t.Helper()
		if _, err := s.DeleteMany(t.Context(), bson.D{{Key: "version", Value: bson.D{{Key: "$gt", Value: 1}}}}); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		away func(*testing.T, *source)
		says string
	}{
		"dropped": {func(t *testing.T, s *source) {
			t.Helper()
			if err := s.Drop(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, `there is no collection "events"`},
		"renamed":  {func(t *testing.T, s *source) { t.Helper(); s.rename(t, "events", "events_old") }, `there is no collection "events"`},
		"replaced": {func(t *testing.T, s *source) { t.Helper(); s.swap(t) }, `the collection "events" had the id`},
		"emptied":  {remove, "of 200 that were selected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			source := events(t, servers)
			c := configured(servers, onCollectionChange("report"))
			p := run(t, c)
			p.await(t, "the publisher to lead", leading)
			source.write(t, 200, 10)
			p.await(t, "the events to be sent", sent(200))
			if _, err := resends(t, c, "--all", "--why", "a test", "--rate", "10"); err != nil {
				t.Fatal(err)
			}
			awaitResend(t, c, "some to be sent again", func(v command.ResendView) bool { return v.Sent > 0 })
			if _, err := resends(t, c, "pause"); err != nil {
				t.Fatal(err)
			}
			tt.away(t, source)
			if _, err := resends(t, c, "resume"); err != nil {
				t.Fatal(err)
			}
			done := awaitResend(t, c, "the resend to end", func(v command.ResendView) bool { return v.State.Ended() })
			if done.State != resend.Incomplete || done.EndedAt.IsZero() || len(done.Short) != 1 || !strings.Contains(done.Short[0], tt.says) {
				t.Errorf("the resend has ended as %+v, want it incomplete, with %q", done, tt.says)
			}
			shown, err := say[command.StreamView](t, c, "status")
			if err != nil || !slices.ContainsFunc(shown.Warnings, func(w string) bool { return strings.Contains(w, "resend "+done.ID) && strings.Contains(w, tt.says) }) {
				t.Errorf("status warns of %q, %v, want it to name the resend and %q", shown.Warnings, err, tt.says)
			}
			source.write(t, 1, 1)
			if next, err := resends(t, c, "--all", "--why", "what was short"); err != nil || next.Number != 2 {
				t.Errorf("the next one is begun as %+v, %v", next, err)
			}
		})
	}
}

// TestResend_OfDocumentsIsDoneAlthoughSomeAreDeletedMeanwhile deletes some in the middle. The
// stream tells of that, so nothing is missing; a filter may leave out what is still there.
func TestResend_OfDocumentsIsDoneAlthoughSomeAreDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		selection []string
		state     resend.State
	}{
		"of everything": {[]string{"--all"}, resend.Done},
		"of a filter":   {[]string{"--where", `{"n":{"$gte":0}}`}, resend.Incomplete},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			c := configured(servers, documents)
			p := run(t, c)
			p.await(t, "the publisher to lead", leading)
			source := events(t, servers)
			for n := range 100 {
				if _, err := source.InsertOne(t.Context(), bson.D{{Key: "_id", Value: fmt.Sprintf("c%03d", n)}, {Key: "n", Value: n}}); err != nil {
					t.Fatal(err)
				}
			}
			p.await(t, "the documents to be sent", sent(100))
			if _, err := resends(t, c, append(tt.selection, "--why", "a test", "--rate", "10")...); err != nil {
				t.Fatal(err)
			}
			awaitResend(t, c, "some to be sent again", func(v command.ResendView) bool { return v.Sent > 0 })
			if _, err := resends(t, c, "pause"); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"c097", "c099"} {
				if _, err := source.DeleteOne(t.Context(), bson.D{{Key: "_id", Value: id}}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := resends(t, c, "resume"); err != nil {
				t.Fatal(err)
			}
			end := awaitResend(t, c, "the resend to end", func(v command.ResendView) bool { return v.State.Ended() })
			if end.State != tt.state || end.Sent != 98 || end.State == resend.Done && end.Removed != 2 {
				t.Errorf("the resend has ended as %+v, want it %s, with two removed", end, tt.state)
			}
		})
	}
}

// TestResend_WhoseRecordIsGoneIsInTheLedger empties the collection under one.
func TestResend_WhoseRecordIsGoneIsInTheLedger(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	p := run(t, c)
	p.await(t, "the stream to begin", leading)
	events(t, servers).write(t, 200, 10)
	p.await(t, "all to be sent", sent(200))
	if _, err := resends(t, c, "--all", "--rate", "20", "--group", "mine", "--why", "a rebuild"); err != nil {
		t.Fatal(err)
	}
	awaitResend(t, c, "it to send something", func(v command.ResendView) bool { return v.Sent > 0 && v.State == resend.Running })
	wipe(t, state(t, servers, "resends"))
	p.await(t, "the loss to be shown", func(s status.Status) bool { return s.GapCounts["lost"] == 1 })
	if got := lostEntries(t, servers); len(got) != 1 || !strings.Contains(got[0].Error, "publisher resend --all --group 'mine' --why TEXT") {
		t.Errorf("the ledger says %+v, want how to send all of it again", got)
	}
}

// putBack has a collection be an earlier copy of it.
func putBack(t *testing.T, collection *mongo.Collection, documents []bson.Raw) {
	t.Helper()
	ids := bson.A{}
	for _, document := range documents {
		id := document.Lookup("_id")
		ids = append(ids, id)
		if _, err := collection.ReplaceOne(t.Context(), bson.D{{Key: "_id", Value: id}}, document); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := collection.DeleteMany(t.Context(), bson.D{{Key: "_id", Value: bson.D{{Key: "$nin", Value: ids}}}}); err != nil {
		t.Fatal(err)
	}
}

func documentsOf(t *testing.T, collection *mongo.Collection) []bson.Raw {
	t.Helper()
	cursor, err := collection.Find(t.Context(), bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	var all []bson.Raw
	if err := cursor.All(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestResend_WhatAnOlderCopyBringsBackOrLacksIsInTheLedger puts resends back to where the
// first was running, while the second waits, and while the first has come further.
func TestResend_WhatAnOlderCopyBringsBackOrLacksIsInTheLedger(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		meanwhile func(*testing.T, config.Config)
		want      []string
	}{
		"another one is paused": {func(t *testing.T, c config.Config) {
			t.Helper()
			for _, args := range [][]string{{"cancel"}, {"--all", "--rate", "2", "--group", "second", "--why", "a test"}} {
				if _, err := resends(t, c, args...); err != nil {
					t.Fatal(err)
				}
			}
			awaitResend(t, c, "the second to send something", func(v command.ResendView) bool { return v.Sent > 0 })
			if _, err := resends(t, c, "pause"); err != nil {
				t.Fatal(err)
			}
		}, []string{"had ended or had come further", "--group 'second'"}},
		"it has come further": {func(t *testing.T, c config.Config) {
			t.Helper()
			awaitResend(t, c, "it to send more", func(v command.ResendView) bool { return v.Sent > 4 })
		}, []string{"had ended or had come further"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			c := configured(servers)
			p := run(t, c)
			p.await(t, "the stream to begin", leading)
			events(t, servers).write(t, 100, 10)
			p.await(t, "all to be sent", sent(100))
			if _, err := resends(t, c, "--all", "--rate", "2", "--group", "first", "--why", "a test"); err != nil {
				t.Fatal(err)
			}
			awaitResend(t, c, "it to send something", func(v command.ResendView) bool { return v.Sent > 0 })
			before := documentsOf(t, state(t, servers, "resends"))
			tt.meanwhile(t, c)
			kept := state(t, servers, "resends")
			p.await(t, "it to be shown", func(s status.Status) bool {
				putBack(t, kept, before) // again where what was under way is saved over it
				return s.GapCounts["lost"] == int64(len(tt.want))
			})
			var said []string
			for _, entry := range lostEntries(t, servers) {
				said = append(said, entry.Error)
			}
			for _, want := range tt.want {
				if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, want) }) {
					t.Errorf("the ledger says %q, want an entry with %q", said, want)
				}
			}
		})
	}
}
