package app_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/resend"
	"changerelay/services/publisher/internal/testserver"
)

// TestResend_ARoleThatMayNotSeeResendsPublishes has the server refuse what is asked of the
// resends, as it does for a role of a setup before there were any; Atlas has a code of its own.
func TestResend_ARoleThatMayNotSeeResendsPublishes(t *testing.T) {
	t.Parallel()
	for _, code := range []int{13, 8000} {
		t.Run(fmt.Sprint("code ", code), func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			err := testserver.Connect(t, servers.MongoURI).Database("admin").RunCommand(t.Context(), bson.D{
				{Key: "configureFailPoint", Value: "failCommand"},
				{Key: "mode", Value: "alwaysOn"},
				{Key: "data", Value: bson.D{
					{Key: "failCommands", Value: bson.A{"update", "find", "findAndModify"}},
					{Key: "namespace", Value: "change_relay.resends"},
					{Key: "errorCode", Value: code},
				}},
			}).Err()
			if err != nil {
				t.Fatal(err)
			}
			p := run(t, configured(servers))
			p.await(t, "the stream to begin", leading)
			events(t, servers).write(t, 1, 1)
			p.await(t, "the event to be sent", sent(1))
		})
	}
}

// resends runs publisher resend, and returns what it says.
func resends(t *testing.T, c config.Config, args ...string) (command.ResendView, error) {
	t.Helper()
	var stdout bytes.Buffer
	err := runCommand(t, c, &stdout, append([]string{"resend"}, args...)...)
	var view command.ResendView
	if decodeErr := json.NewDecoder(&stdout).Decode(&view); decodeErr != nil && err == nil {
		t.Fatalf("resend %q says %s: %v", args, stdout.String(), decodeErr)
	}
	return view, err
}

// awaitResend waits until the last resend is as wanted.
func awaitResend(t *testing.T, c config.Config, what string, wanted func(command.ResendView) bool) command.ResendView {
	t.Helper()
	var view command.ResendView
	testserver.Eventually(t, what, func() bool {
		var err error
		view, err = resends(t, c, "status")
		return err == nil && wanted(view)
	})
	return view
}

func ended(v command.ResendView) bool { return v.State == resend.Done }

// drainMessages receives from the plain subscription until it has an event of each
// aggregate that is written last, and returns all in each aggregate's order.
func (s *source) drainMessages(t *testing.T, servers testserver.Servers) []contract.Event {
	t.Helper()
	left := map[string]bool{}
	for id, written := range s.written {
		left[id], s.written[id] = true, append(written, len(written)+1)
		last := bson.D{{Key: "aggregateId", Value: id}, {Key: "version", Value: len(written) + 1}, {Key: "type", Value: "Ended"}, {Key: "data", Value: bson.D{}}}
		if _, err := s.InsertOne(t.Context(), last); err != nil {
			t.Fatal(err)
		}
	}
	client, err := azservicebus.NewClientFromConnectionString(servers.ServiceBus, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(context.WithoutCancel(t.Context())) }()
	receiver, err := client.NewReceiverForSubscription(testserver.Topic, "observer",
		&azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	if err != nil {
		t.Fatal(err)
	}
	var all []*azservicebus.ReceivedMessage
	for len(left) > 0 {
		some, err := receiver.ReceiveMessages(t.Context(), 500, nil)
		if err != nil {
			t.Fatalf("received %d: %v", len(all), err)
		}
		for _, m := range some {
			if *m.Subject == "Ended" {
				delete(left, *m.SessionID)
			}
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b *azservicebus.ReceivedMessage) int { return cmp.Compare(*a.SequenceNumber, *b.SequenceNumber) })
	events := make([]contract.Event, 0, len(all))
	for _, m := range all {
		event, err := contract.Decode(contract.Message{
			ID: m.MessageID, SessionID: *m.SessionID, PartitionKey: *m.PartitionKey, Subject: *m.Subject,
			ContentType: *m.ContentType, Properties: m.ApplicationProperties, Body: m.Body,
		}, contract.DecodeOptions{})
		if err != nil {
			t.Fatalf("message %s: %v", m.MessageID, err)
		}
		events = append(events, event)
	}
	return events
}

// wantRebuilt wants a receiver to have every event that was written which begins
// each aggregate from nothing: it takes the next version, whether live or resent,
// passes over live ones that are ahead, and finds nothing resent missing.
func (s *source) wantRebuilt(t *testing.T, all []contract.Event) (resent int) {
	t.Helper()
	reached, ids := map[string]int{}, map[string]string{}
	for _, event := range all {
		version := int(event.Version.Number)
		place := fmt.Sprint(event.AggregateID, "/", version)
		if known := ids[place]; known != "" && known != event.ID {
			t.Errorf("%s has the ids %s and %s", place, known, event.ID)
		}
		ids[place] = event.ID
		if event.Resend.ID != "" {
			resent++
		} else if reached[event.AggregateID] == 0 {
			continue // it is rebuilt from what is resent
		}
		switch next := reached[event.AggregateID] + 1; {
		case version == next:
			reached[event.AggregateID] = version
		case version > next && event.Resend.ID != "":
			t.Fatalf("version %d of %s is resent before version %d", version, event.AggregateID, next)
		}
	}
	for id, written := range s.written {
		if reached[id] != len(written) {
			t.Errorf("rebuilt is %s up to version %d, want %d", id, reached[id], len(written))
		}
	}
	return resent
}

// live are the versions of each aggregate that were sent as they came, each once.
func live(all []contract.Event) received {
	r := received{versions: map[string][]int{}}
	seen := map[string]bool{}
	for _, event := range all {
		if event.Resend.ID == "" && !seen[event.ID] {
			seen[event.ID] = true
			r.versions[event.AggregateID] = append(r.versions[event.AggregateID], int(event.Version.Number))
		}
	}
	return r
}

// TestResend_BesideLiveWritesAndOverTheDeathOfItsLeader has each send wait, writes
// to the aggregates that are sent again all the while, and cuts the leader off on
// the way, as a kill would. The topic drops duplicates.
func TestResend_BesideLiveWritesAndOverTheDeathOfItsLeader(t *testing.T) {
	t.Parallel()
	for name, partitions := range map[string]int{"whole": 1, "partitions": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			source := events(t, servers)
			mongo, throughMongo := mongoProxy(t, servers)
			bus, throughBus := busProxy(t, servers)
			small := func(c *config.Config) { c.Partitions, c.MaxInFlight = partitions, 200 }
			killed := run(t, configured(servers, small, named("a"), func(c *config.Config) {
				c.MongoURI, c.StateMongoURI, c.ServiceBusConnection = throughMongo, throughMongo, throughBus
			}))
			c := configured(servers, small, named("b"))
			if partitions == 1 {
				killed.await(t, "the publisher to lead", leading)
			} else {
				killed.awaitOverview(t, "all partitions to be led", leads(partitions))
			}
			source.write(t, 600, 20)
			testserver.Fault(t, servers, `{"kind":"servicebus.delay","path":"changes","delay":"10ms","of":["send"]}`)
			testserver.Eventually(t, "a resend to begin", func() bool {
				_, err := resends(t, c, "--all", "--group", "orders-2", "--why", "a bug", "--rate", "0")
				return err == nil
			})
			// What is written faster than it is resent would never end.
			left := 60
			while := func(wanted func(command.ResendView) bool) func(command.ResendView) bool {
				return func(v command.ResendView) bool {
					source.write(t, min(left, 1)*40, 20)
					left = max(left-1, 0)
					return wanted(v)
				}
			}
			awaitResend(t, c, "a part to be sent again", while(func(v command.ResendView) bool { return v.Sent >= 100 }))
			mongo.Cut()
			bus.Cut()
			run(t, c)
			done := awaitResend(t, c, "the resend to end", while(ended))
			if done.Failed != 0 || done.Group != "orders-2" || done.Why != "a bug" || done.EndedAt.IsZero() {
				t.Errorf("the resend is shown as %+v, want it whole", done)
			}
			all := source.drainMessages(t, servers)
			source.wantAll(t, live(all))
			if resent := source.wantRebuilt(t, all); resent < 600 {
				t.Errorf("%d messages were resent, want each event at least once", resent)
			}
		})
	}
}

// TestResend_AggregatesAloneWithTheIDsThatTheyHad sends one of several aggregates
// again, whose ids are numbers.
func TestResend_AggregatesAloneWithTheIDsThatTheyHad(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	p := run(t, c)
	p.await(t, "the publisher to lead", leading)
	source := events(t, servers)
	for _, id := range []int{7, 8} {
		for version := range 3 {
			_, err := source.InsertOne(t.Context(), bson.D{
				{Key: "aggregateId", Value: id}, {Key: "version", Value: version + 1}, {Key: "type", Value: "OrderPlaced"}, {Key: "data", Value: bson.D{}},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		source.written[fmt.Sprint(id)] = []int{1, 2, 3}
	}
	p.await(t, "the events to be sent", sent(6))
	began, err := resends(t, c, "--aggregate", "7", "--why", "a test")
	if err != nil || began.Documents == nil || *began.Documents != 3 || len(began.Warnings) > 0 {
		t.Fatalf("the resend is begun as %+v, %v, want one of three documents", began, err)
	}
	awaitResend(t, c, "the resend to end", ended)
	all := source.drainMessages(t, servers)
	delete(source.written, "8")
	if resent := source.wantRebuilt(t, all); resent != 3 || len(all) != 11 {
		t.Errorf("%d of %d messages were resent, want 3 of 11", resent, len(all))
	}
	for _, event := range all {
		if event.Resend != (contract.Resend{}) && (event.AggregateID != "7" || event.Resend != contract.Resend{ID: began.ID}) {
			t.Errorf("resent is %s, %+v, want aggregate 7 for everybody", event.AggregateID, event.Resend)
		}
	}
}

// TestResend_WhatAnOperatorMayGetWrongIsRefused has mistakes that begin nothing.
func TestResend_WhatAnOperatorMayGetWrongIsRefused(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	if _, err := resends(t, c, "--all", "--why", "a test"); err == nil {
		t.Error("a resend of an unknown stream is begun")
	}
	if _, err := resends(t, c, "status", "--since", "2026-01-01T00:00:00Z"); err == nil || !strings.Contains(err.Error(), "nothing is known") {
		t.Errorf("the resends of an unknown stream since a time: got %v", err)
	}
	p := run(t, c)
	p.await(t, "the publisher to lead", leading)
	events(t, servers).write(t, 4, 2)
	p.await(t, "the events to be sent", sent(4))
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"nothing matches":     {[]string{"--where", `{"type":"No"}`}, "matches nothing"},
		"an unknown one":      {[]string{"--aggregate", "order-000", "--aggregate", "order-9"}, "nothing of aggregate order-9"},
		"no filter":           {[]string{"--where", `{"type"`}, "no filter"},
		"an unknown operator": {[]string{"--where", `{"type":{"$no":1}}`}, "$no"},
		"in the future":       {[]string{"--since", "2099-01-01T00:00:00Z"}, "matches nothing"},
		"no time":             {[]string{"--since", "yesterday"}, "RFC 3339"},
		"nothing":             {nil, "needs one of"},
		"two of them":         {[]string{"--all", "--aggregate", "order-000"}, "needs one of"},
		"a strange group":     {[]string{"--all", "--group", "a\nb"}, "group"},
		"what is none":        {[]string{"pause"}, "no resend"},
	} {
		if len(tt.args) == 0 || tt.args[0] != "pause" {
			tt.args = append(tt.args, "--why", "a test")
		}
		if _, err := resends(t, c, tt.args...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, tt.want)
		}
	}
	if _, err := resends(t, c, "--all"); err == nil || !strings.Contains(err.Error(), "--why") {
		t.Errorf("without a reason: got %v", err)
	}
	unnumbered := c
	unnumbered.FieldVersion = "-"
	if _, err := resends(t, unnumbered, "--all", "--why", "a test"); err == nil || !strings.Contains(err.Error(), "numbers no events") {
		t.Errorf("of events without versions: got %v", err)
	}
	if dry, err := resends(t, c, "--all", "--dry-run"); err != nil || !dry.DryRun || *dry.Documents != 4 {
		t.Errorf("a dry run says %+v, %v", dry, err)
	}
	if _, err := resends(t, c, "status"); err == nil {
		t.Error("there is a resend after nothing but mistakes")
	}
}

// TestResend_OneWhoseCommandDiedWhileItBeganIsWarnedOf has a resend left as a command leaves it
// that is killed before the publisher may take it up.
func TestResend_OneWhoseCommandDiedWhileItBeganIsWarnedOf(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	p := run(t, c)
	p.await(t, "the publisher to lead", leading)
	events(t, servers).write(t, 1, 1)
	p.await(t, "the event to be sent", sent(1))
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	began, err := resends(t, c, "--all", "--why", "a test")
	if err != nil {
		t.Fatal(err)
	}
	records := testserver.Connect(t, servers.MongoURI).Database(c.StateDatabase).Collection("resends")
	for ago, warned := range map[time.Duration]int{-time.Hour: 0, time.Hour: 1} {
		left := bson.D{{Key: "$set", Value: bson.D{{Key: "state", Value: resend.Beginning}, {Key: "beganAt", Value: time.Now().Add(-ago)}}}}
		if _, err := records.UpdateOne(t.Context(), bson.D{{Key: "resend", Value: began.ID}}, left); err != nil {
			t.Fatal(err)
		}
		shown, err := resends(t, c, "status")
		if err != nil || shown.State != resend.Beginning || len(shown.Warnings) != warned {
			t.Errorf("begun %s ago: shown is %+v, %v, want %d warnings", ago, shown, err, warned)
		}
	}
	if _, err := resends(t, c, "cancel"); err != nil {
		t.Errorf("cancel: %v", err)
	}
	if _, err := resends(t, c, "--all", "--why", "a test"); err != nil {
		t.Errorf("another one: %v", err)
	}
}

// TestResend_ATimeLeavesOutOnlyWhatIsKnownToBeOfAnother selects by a time in the middle of a
// second, of which an ObjectId does not say more, and documents that have no time at all.
func TestResend_ATimeLeavesOutOnlyWhatIsKnownToBeOfAnother(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	c := configured(servers, func(c *config.Config) { c.HealField = "when" })
	run(t, c).await(t, "the publisher to lead", leading)
	second := time.Unix(1_700_000_000, 0).UTC()
	for version, when := range []any{
		second, second.Add(900 * time.Millisecond), bson.NewObjectIDFromTimestamp(second), bson.NewObjectIDFromTimestamp(second.Add(time.Second)),
		"yesterday", nil,
	} {
		if _, err := source.InsertOne(t.Context(), bson.D{
			{Key: "aggregateId", Value: "a"}, {Key: "version", Value: version}, {Key: "type", Value: "Placed"}, {Key: "when", Value: when},
		}); err != nil {
			t.Fatal(err)
		}
	}
	for bound, want := range map[string]int64{"--until": 2, "--since": 3} {
		dry, err := resends(t, c, bound, second.Add(500*time.Millisecond).Format(time.RFC3339Nano), "--dry-run")
		if err != nil || *dry.Documents != want {
			t.Errorf("%s the middle of the second: got %+v, %v, want %d documents", bound, dry, err, want)
		}
		if len(dry.Warnings) != 1 || !strings.Contains(dry.Warnings[0], "2 of the documents have neither") {
			t.Errorf("%s warns %q, want of the two without a time", bound, dry.Warnings)
		}
	}
	if dry, err := resends(t, c, "--all", "--dry-run"); err != nil || *dry.Documents != 6 || len(dry.Warnings) > 0 {
		t.Errorf("of all: got %+v, %v, want 6 documents and no warning", dry, err)
	}
}

// TestResend_OneAtATimeIsPausedResumedAndCancelled pauses one in the middle. While
// nobody leads it waits, and says so.
func TestResend_OneAtATimeIsPausedResumedAndCancelled(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	c := configured(servers)
	p := run(t, c)
	p.await(t, "the publisher to lead", leading)
	source.write(t, 2000, 100) // more than are resent while the test decides
	p.await(t, "the events to be sent", sent(2000))
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	began, err := resends(t, c, "--all", "--why", "a test", "--rate", "20")
	if err != nil || len(began.Warnings) != 1 || !strings.Contains(began.Warnings[0], "nobody leads") {
		t.Fatalf("the resend is begun as %+v, %v, want a warning that nobody leads", began, err)
	}
	if _, err := resends(t, c, "--all", "--why", "a test"); err == nil || !strings.Contains(err.Error(), "has not ended") {
		t.Errorf("a second one: got %v, want it refused", err)
	}
	p = run(t, c)
	awaitResend(t, c, "some to be sent again", func(v command.ResendView) bool { return v.Sent > 0 && v.SecondsLeft != nil })
	if paused, err := resends(t, c, "pause", "--why", "too fast"); err != nil || paused.State != resend.Paused {
		t.Fatalf("paused is %+v, %v", paused, err)
	}
	if _, err := resends(t, c, "pause"); err == nil {
		t.Error("it is paused twice")
	}
	if resumed, err := resends(t, c, "resume"); err != nil || resumed.State != resend.Running {
		t.Fatalf("resumed is %+v, %v", resumed, err)
	}
	at, err := resends(t, c, "status")
	if err != nil {
		t.Fatal(err)
	}
	awaitResend(t, c, "more to be sent again", func(v command.ResendView) bool { return v.Sent > at.Sent })
	cancelled, err := resends(t, c, "cancel", "--why", "enough")
	if err != nil || cancelled.State != resend.Cancelled || cancelled.EndedAt.IsZero() {
		t.Fatalf("cancelled is %+v, %v", cancelled, err)
	}
	for _, decision := range []string{"resume", "pause", "cancel"} {
		if _, err := resends(t, c, decision); err == nil {
			t.Errorf("%s of one that is cancelled is done", decision)
		}
	}
	if _, err := resends(t, c, "--aggregate", "order-000", "--why", "a test"); err != nil {
		t.Fatal(err)
	}
	if done := awaitResend(t, c, "the other one to end", ended); done.Number != 2 || done.Sent != 20 {
		t.Errorf("the second one is %+v, want 20 sent", done)
	}
	_, metrics := p.get(t, "/metrics")
	if !strings.Contains(metrics, "\npublisher_messages_resent_total ") {
		t.Errorf("the metrics do not count what was resent:\n%s", metrics)
	}
	var listed bytes.Buffer
	if err := runCommand(t, c, &listed, "resend", "status", "--all", "--json"); err != nil || bytes.Count(listed.Bytes(), []byte("\n")) != 2 {
		t.Errorf("status --all says %s, %v, want both", listed.String(), err)
	}
}

// TestResend_OfDocumentsIsTheirPresentState places each above the changes that it has.
func TestResend_OfDocumentsIsTheirPresentState(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, documents)
	p := run(t, c)
	p.await(t, "the publisher to lead", leading)
	source := events(t, servers)
	for n := range 5 {
		if _, err := source.InsertOne(t.Context(), bson.D{{Key: "_id", Value: fmt.Sprint("c", n)}, {Key: "n", Value: n}}); err != nil {
			t.Fatal(err)
		}
	}
	p.await(t, "the documents to be sent", sent(5))
	if _, err := resends(t, c, "--where", `{"n":{"$gte":3}}`, "--why", "a test"); err != nil {
		t.Fatal(err)
	}
	awaitResend(t, c, "the resend to end", ended)
	if _, err := source.UpdateByID(t.Context(), "c3", bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 30}}}}); err != nil {
		t.Fatal(err)
	}
	sequences, resent := map[string]string{}, map[string]int{}
	for i, m := range receive(t, servers, 8) {
		id, sequence := *m.SessionID, m.ApplicationProperties["cloudEvents_sequence"].(string)
		if sequence <= sequences[id] {
			t.Errorf("message %d of %s has the sequence %s, not above %s", i, id, sequence, sequences[id])
		}
		sequences[id] = sequence
		if m.ApplicationProperties["cloudEvents_resend"] != nil {
			resent[id]++
		}
	}
	if len(resent) != 2 || resent["c3"] != 1 || resent["c4"] != 1 {
		t.Errorf("resent are %v, want c3 and c4", resent)
	}
}

// TestResend_ATermThatSendsHasTakenItFromEarlierOnes has one that is paused, so that
// nobody carries it out meanwhile.
func TestResend_ATermThatSendsHasTakenItFromEarlierOnes(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	c := configured(servers)
	p := run(t, c)
	p.await(t, "the publisher to lead", leading)
	source.write(t, 4, 2)
	p.await(t, "the events to be sent", sent(4))
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--all", "--why", "a test"}, {"pause"}} {
		if _, err := resends(t, c, args...); err != nil {
			t.Fatal(err)
		}
	}
	next := run(t, c)
	shown := next.await(t, "the next one to lead", leading)
	source.write(t, 2, 2)
	next.await(t, "the events to be sent", sent(2))
	if view, err := resends(t, c, "status"); err != nil || view.Partitions[0].Term != shown.Term || view.State != resend.Paused {
		t.Errorf("the resend is %+v, %v, want it of term %d", view, err, shown.Term)
	}
}

// TestResend_ThatTheLeaderCannotCarryOutIsSaid begins a resend with settings that the leader
// does not have, and then has one lead that does.
func TestResend_ThatTheLeaderCannotCarryOutIsSaid(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	source := events(t, servers)
	filtered := run(t, configured(servers, func(c *config.Config) { c.SourceFilter = `{"fullDocument.type": {"$exists": true}}` }))
	filtered.await(t, "the publisher to lead", leading)
	source.write(t, 10, 2)
	filtered.await(t, "all to be sent", sent(10))
	if _, err := resends(t, c, "--all", "--why", "a test"); err != nil {
		t.Fatal(err)
	}
	warned := func(v command.ResendView) bool {
		return strings.Contains(strings.Join(v.Warnings, " "), `the leader of "shop.events" cannot go on with it: open resend`)
	}
	view := awaitResend(t, c, "what is wrong to be said", warned)
	if view.State != resend.Running || view.Sent != 0 || !strings.Contains(view.Warnings[0], "SOURCE_FILTER") {
		t.Errorf("it is %+v, want it waiting for a leader without SOURCE_FILTER", view)
	}
	if err := filtered.quit(); err != nil {
		t.Fatal(err)
	}
	if err := runCommand(t, c, io.Discard, "checkpoint", "accept", "--why", "a test"); err != nil {
		t.Fatal(err)
	}
	run(t, c)
	if view := awaitResend(t, c, "the resend to be done", ended); view.Sent != 10 || warned(view) {
		t.Errorf("it is %+v, want all sent again and nothing warned of", view)
	}
}
