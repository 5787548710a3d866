package app_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// remedy matches a command in a sentence: its name, and what may be typed after it.
var remedy = regexp.MustCompile(`publisher (checkpoint (?:set|reset|accept)(?: --[a-z-]+| PLACE| TEXT)*)`)

// remedies are the commands that a text tells to run, as they are typed but for
// the words in capitals.
func remedies(text string, place string) [][]string {
	var all [][]string
	for _, found := range remedy.FindAllStringSubmatch(text, -1) {
		args := strings.Fields(found[1])
		for i := range args {
			switch args[i] {
			case "PLACE":
				args[i] = place
			case "TEXT":
				args[i] = "as the text says"
			}
		}
		if !slices.ContainsFunc(all, func(other []string) bool { return slices.Equal(other, args) }) {
			all = append(all, args)
		}
	}
	return all
}

// TestRemedies_EachOneThatIsPrintedWorksAsItIsTyped brings streams into each halt
// that a command can end, and types each command of its text.
func TestRemedies_EachOneThatIsPrintedWorksAsItIsTyped(t *testing.T) {
	t.Parallel()
	restored := func(t *testing.T, servers testserver.Servers, s *source) {
		t.Helper()
		before, _ := published(t, servers, s, 10)
		published(t, servers, s, 10)
		put(t, state(t, servers, "resume_tokens"), before)
	}
	lose := func(names ...string) func(*testing.T, testserver.Servers, *source) {
		return func(t *testing.T, servers testserver.Servers, s *source) {
			t.Helper()
			published(t, servers, s, 10)
			for _, name := range names {
				wipe(t, state(t, servers, name))
			}
		}
	}
	changed := func(collection, operator, field string, value any) func(*testing.T, testserver.Servers, *source) {
		return func(t *testing.T, servers testserver.Servers, s *source) {
			t.Helper()
			published(t, servers, s, 10)
			edit(t, state(t, servers, collection), operator, field, value)
		}
	}
	same := func(*config.Config) {}
	for name, tt := range map[string]struct {
		prepare func(*testing.T, testserver.Servers, *source)
		then    func(*config.Config)
		under   []string // what is lost under the leader that runs then
		want    int      // how many commands are printed
	}{
		"checkpoint missing":           {prepare: lose("resume_tokens"), then: same, want: 2},
		"checkpoint went back":         {prepare: restored, then: same, want: 2},
		"checkpoint without a place":   {prepare: changed("resume_tokens", "$unset", "token", ""), then: same, want: 2},
		"nothing but the ledger":       {prepare: lose("resume_tokens", "streams"), then: same, want: 2},
		"another cluster":              {prepare: changed("streams", "$set", "source.set", "elsewhere"), then: same, want: 2},
		"a place in the future":        {prepare: changed("resume_tokens", "$set", "position", "ffffff0000000001.82"), then: same, want: 1},
		"another collection":           {prepare: lose(), then: func(c *config.Config) { c.SourceCollection = "others" }, want: 2},
		"a filter":                     {prepare: lose(), then: func(c *config.Config) { c.SourceFilter = `{"fullDocument.type": "OrderPlaced"}` }, want: 2},
		"the record lost, underway":    {prepare: lose(), then: same, under: []string{"streams"}, want: 3},
		"everything lost, underway":    {prepare: lose(), then: same, under: []string{"streams", "resume_tokens", "stream_gaps"}, want: 2},
		"checkpoint missing, underway": {prepare: lose(), then: same, under: []string{"resume_tokens"}, want: 2},
		"another collection by then": {prepare: func(t *testing.T, servers testserver.Servers, s *source) {
			t.Helper()
			published(t, servers, s, 10)
			published(t, servers, s, 10)
			s.swap(t)
		}, then: same, want: 2},
	} {
		for i := range tt.want {
			t.Run(name+", remedy "+string(rune('1'+i)), func(t *testing.T) {
				t.Parallel()
				servers := testserver.Start(t)
				source := events(t, servers)
				tt.prepare(t, servers, source)
				c := configured(servers, tt.then)
				p := run(t, c)
				if tt.under != nil {
					p.await(t, "the publisher to lead", leading)
					for _, collection := range tt.under {
						wipe(t, state(t, servers, collection))
					}
					source.write(t, 10, 5) // so that it has something to save
				}
				shown := p.await(t, "the publisher to halt", func(s status.Status) bool { return s.State == "halted" })
				all := remedies(shown.LastError, time.Now().Add(-time.Second).Format(time.RFC3339))
				if len(all) != tt.want {
					t.Fatalf("%q has the commands %q, want %d", shown.LastError, all, tt.want)
				}
				// The halt is written down where commands look right after it is shown.
				var err error
				testserver.Eventually(t, "the halt to be written down", func() bool {
					_, err = say[command.MoveView](t, c, all[i]...)
					return err == nil || !strings.Contains(err.Error(), "is held by")
				})
				if err != nil {
					t.Fatalf("%q = %v", all[i], err)
				}
				p.await(t, "the stream to go on", leading)
			})
		}
	}
}

func TestCopy_IsGivenUpByNameAlone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ago  time.Duration
		lost string // of the state; empty for nothing
	}{
		"forward": {0, ""}, "back": {time.Hour, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			source := events(t, servers)
			for range 4 {
				source.write(t, 1000, 100)
			}
			copies := configured(servers, func(c *config.Config) { c.StartAt, c.SnapshotRate = "snapshot", 1000 })
			stopped := run(t, copies)
			stopped.await(t, "a part to be copied", func(s status.Status) bool { return s.Copy != nil && s.Copy.Copied >= 500 })
			if err := stopped.quit(); err != nil {
				t.Fatal(err)
			}
			before := only(t, state(t, servers, "resume_tokens"))
			place := time.Now().Add(-tt.ago).Truncate(time.Second)
			set := []string{"checkpoint", "set", "--why", "test", place.Format(time.RFC3339)}
			for _, more := range [][]string{nil, {"--dry-run"}, {"--force"}} {
				if _, err := say[command.MoveView](t, copies, append(slices.Clone(set), more...)...); err == nil || !strings.Contains(err.Error(), "--give-up-copy") {
					t.Fatalf("checkpoint set %q in the middle of a copy = %v, want it refused with the flag", more, err)
				}
			}
			if after := only(t, state(t, servers, "resume_tokens")); after.String() != before.String() {
				t.Fatalf("the checkpoint is %s, was %s", after, before)
			}
			if _, err := say[command.MoveView](t, copies, append(slices.Clone(set), "--give-up-copy")...); err != nil {
				t.Fatal(err)
			}
			entry := entered(t, servers, "set")
			from, known := entry.Lookup("fromTime").TimeOK()
			if !known || from.Unix() != 0 || !entry.Lookup("toTime").Time().Equal(place) || !strings.Contains(entry.Lookup("error").StringValue(), "of about 4000 documents") {
				t.Errorf("the ledger says %s, want all up to %v", entry, place)
			}
			run(t, configured(servers)).await(t, "the stream to go on without the copy", func(s status.Status) bool { return leading(s) && s.Copy == nil })
		})
	}
}

func TestCopy_OfACollectionThatIsNotThereIsInTheLedger(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	p := run(t, configured(servers, func(c *config.Config) { c.StartAt, c.SourceCollection = "snapshot", "evnets" }))
	shown := p.await(t, "the stream to follow", func(s status.Status) bool { return leading(s) && s.GapCounts["report"] == 1 })
	if gap := shown.Gaps[0]; gap.Cause != "copy of a missing collection" || !strings.Contains(gap.Error, `"evnets"`) || gap.ToTime.IsZero() {
		t.Errorf("the ledger says %+v", gap)
	}
	if err := events(t, servers).Database().CreateCollection(t.Context(), "empty"); err != nil {
		t.Fatal(err)
	}
	there := run(t, configured(servers, func(c *config.Config) {
		c.StartAt, c.SourceCollection, c.StreamName, c.LeaseName = "snapshot", "empty", "shop.empty", "empty"
	}))
	if shown := there.await(t, "the copy of an empty collection to end", func(s status.Status) bool { return leading(s) && s.Copy == nil }); len(shown.Gaps) != 0 {
		t.Errorf("gaps are %+v, want none: the collection is there", shown.Gaps)
	}
}

func TestCommand_APositionThatIsCutOffIsRefused(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	checkpoint, _ := published(t, servers, events(t, servers), 20)
	whole := checkpoint.Lookup("position").StringValue()
	for n := 1; n < len(whole)-17; n++ {
		if _, err := say[any](t, configured(servers), "checkpoint", "set", "--why", "test", whole[:len(whole)-n]); err == nil {
			t.Errorf("checkpoint set takes the position without its last %d characters", n)
		}
	}
	if got := only(t, state(t, servers, "resume_tokens")); got.String() != checkpoint.String() {
		t.Errorf("the checkpoint is %s, was %s", got, checkpoint)
	}
	moved, err := say[command.MoveView](t, configured(servers), "checkpoint", "set", "--why", "test", whole)
	if err != nil || moved.After.Options == "" {
		t.Errorf("set of the whole position = %+v, %v, want it under the recorded options", moved, err)
	}
	if moved, err := say[command.MoveView](t, configured(servers), "checkpoint", "set", "--why", "test", time.Now().Add(-time.Minute).Format(time.RFC3339)); err != nil || moved.After.Options != "" {
		t.Errorf("set to a time = %+v, %v, want no options: they are those of a token", moved, err)
	}
}

func TestCollection_OneThatWasReplacedMeanwhileIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	published(t, servers, source, 20)
	published(t, servers, source, 20)
	source.swap(t)
	source.write(t, 10, 5)
	p := run(t, configured(servers))
	p.awaitHalt(t, "source collection replaced")
	if _, err := say[command.MoveView](t, configured(servers), "checkpoint", "accept", "--why", "it was meant"); err != nil {
		t.Fatal(err)
	}
	p.await(t, "what is written since to be sent", func(s status.Status) bool { return leading(s) && s.Sent >= 10 && s.GapCounts["accept"] == 1 })
}

func TestCollection_OneThatIsMadeUnderALeaderIsKnownFromThenOn(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	p := run(t, configured(servers))
	p.await(t, "the publisher to lead", leading)
	source.write(t, 20, 5)
	testserver.Eventually(t, "the id of the collection to be kept", func() bool {
		ids, err := only(t, state(t, servers, "streams")).Lookup("source", "collections").Array().Values()
		return err == nil && len(ids) == 1
	})
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	source.swap(t)
	run(t, configured(servers)).awaitHalt(t, "source collection replaced")
}

// TestStream_OfAWholeDatabaseIsKnownByItsCollections has a role that does not see
// the cluster's id, as the sandbox has none.
func TestStream_OfAWholeDatabaseIsKnownByItsCollections(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	for _, name := range []string{"one", "two"} {
		if err := source.Database().CreateCollection(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	c := configured(servers, list("*"))
	first := run(t, c)
	first.await(t, "the publisher to lead", leading)
	if err := first.quit(); err != nil {
		t.Fatal(err)
	}
	if err := source.Database().Collection("one").Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := source.Database().CreateCollection(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	second := run(t, c)
	second.await(t, "the publisher to lead: collections come and go", leading)
	if err := second.quit(); err != nil {
		t.Fatal(err)
	}
	others := bson.A{}
	for _, name := range []string{"one", "two"} {
		others = append(others, bson.D{{Key: "name", Value: name}, {Key: "id", Value: "of another cluster"}})
	}
	edit(t, state(t, servers, "streams"), "$set", "source.collections", others)
	run(t, c).awaitHalt(t, "another source", "no collection is the one that it was")
}
