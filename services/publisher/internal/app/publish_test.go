package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/settings"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

func TestPublish_EventsArriveOnceAndInOrder(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	p := run(t, configured(servers))
	p.await(t, "the publisher to lead", leading)
	source := events(t, servers)
	for range 5 {
		source.write(t, 300, 40)
	}
	got := source.drain(t, servers)
	source.wantAll(t, got)
	if got.repeats != 0 {
		t.Errorf("%d messages came twice, want none", got.repeats)
	}
	shown := p.await(t, "all to be finished", func(s status.Status) bool { return s.Sent == 1500 && s.InFlight == 0 })
	if shown.Read != 1500 || shown.Parked != 0 || shown.Role != "leader" || shown.Leader != "a" || shown.CheckpointAt == nil {
		t.Errorf("status is %+v", shown)
	}
	p.await(t, "the lag to be known and small", func(s status.Status) bool { return s.LagSeconds != nil && *s.LagSeconds < 3 })
	p.await(t, "the watermark to be known", func(s status.Status) bool { return s.WatermarkAt != nil })
	source.write(t, 300, 40)
	p.await(t, "the rate to be known", func(s status.Status) bool { return s.SentPerSecond > 0 })
	for path, want := range map[string]string{
		"/metrics": "publisher_messages_sent_total 1",
		"/status":  "oplog_headroom_seconds",
		"/":        "<html",
	} {
		if code, body := p.get(t, path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s answers %d without %q", path, code, want)
		}
	}
	if err := p.quit(); err != nil {
		t.Errorf("Run = %v, want nil after a stop", err)
	}
}

func TestPublish_ARestartGoesOnWhereTheLastRunStopped(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	var terms []int64
	for range 3 {
		p := run(t, configured(servers))
		status := p.await(t, "the publisher to lead", leading)
		terms = append(terms, status.Term)
		source.write(t, 100, 10)
		p.await(t, "the events to be sent", sent(100))
		if err := p.quit(); err != nil {
			t.Fatalf("Run = %v, want nil", err)
		}
		source.write(t, 50, 10) // while nobody publishes
	}
	p := run(t, configured(servers))
	p.await(t, "the rest to be sent", sent(50))
	got := source.drain(t, servers)
	source.wantAll(t, got)
	if got.repeats != 0 {
		t.Errorf("%d messages came twice after stops in order, want none", got.repeats)
	}
	if terms[0] != 1 || terms[1] != 2 || terms[2] != 3 {
		t.Errorf("terms are %v, want 1, 2, 3", terms)
	}
}

func TestPublish_AStandbyTakesOverFromALeaderThatStops(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	leader := run(t, configured(servers, named("a")))
	leader.await(t, "a to lead", leading)
	standby := run(t, configured(servers, named("b")))
	standby.await(t, "b to stand by and know the leader", func(s status.Status) bool {
		return s.Role == "standby" && s.Leader == "a" && s.State == "standing by"
	})
	if code, _ := standby.get(t, "/ready"); code != http.StatusOK {
		t.Errorf("a standby answers /ready with %d, want 200", code)
	}
	source.write(t, 200, 20)
	leader.await(t, "the events to be sent", sent(200))
	if err := leader.quit(); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	standby.await(t, "b to lead", leading)
	source.write(t, 200, 20)
	standby.await(t, "the later events to be sent", sent(200))
	source.wantAll(t, source.drain(t, servers))
}

func TestPublish_ALeaderCutOffFromItsLeaseStopsAndItsFollowerLosesNothing(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	proxy, through := mongoProxy(t, servers)
	cut := run(t, configured(servers, named("a"), func(c *config.Config) { c.MongoURI, c.StateMongoURI = through, through }))
	cut.await(t, "a to lead", leading)
	follower := run(t, configured(servers, named("b")))
	source.write(t, 300, 30)
	cut.await(t, "the events to be sent", sent(300))
	proxy.Cut()
	source.write(t, 300, 30)
	cut.await(t, "a to step down", func(s status.Status) bool { return s.Role == "standby" })
	follower.await(t, "b to lead", leading)
	source.write(t, 300, 30)
	got := source.drain(t, servers)
	source.wantAll(t, got)
	proxy.Mend()
	cut.await(t, "a to see the leader", func(s status.Status) bool { return s.Leader == "b" })
}

func TestPublish_AChangeThatCannotBeMappedIsParkedAndListed(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	p := run(t, c)
	p.await(t, "the publisher to lead", leading)
	source := events(t, servers)
	source.write(t, 10, 2)
	if _, err := source.InsertOne(t.Context(), bson.D{{Key: "type", Value: "OrderPlaced"}, {Key: "version", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	source.write(t, 10, 2)
	source.wantAll(t, source.drain(t, servers))
	p.await(t, "the change to be counted", func(s status.Status) bool { return s.Parked == 1 && s.InFlight == 0 })
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	var listed bytes.Buffer
	if err := runCommand(t, c, &listed, "parked", "list"); err != nil {
		t.Fatal(err)
	}
	var change struct{ Reason, Stream, Position string }
	if err := json.Unmarshal(listed.Bytes(), &change); err != nil || !strings.Contains(change.Reason, `"aggregateId"`) || change.Stream != "shop.events" {
		t.Errorf("listed %s (%v), want one change whose reason names the field", listed.Bytes(), err)
	}
	again := run(t, c)
	again.await(t, "the parked change to be counted after a restart", func(s status.Status) bool { return s.Parked == 1 })
}

func TestPublish_UnderThePolicyToStopAnUnmappableChangeHaltsTheStreamLoudly(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	p := run(t, configured(servers, func(c *config.Config) { c.OnUnmappable = "stop" }))
	p.await(t, "the publisher to lead", leading)
	source := events(t, servers)
	source.write(t, 10, 2)
	if _, err := source.InsertOne(t.Context(), bson.D{{Key: "type", Value: "OrderPlaced"}}); err != nil {
		t.Fatal(err)
	}
	shown := p.await(t, "the stream to halt", func(s status.Status) bool { return s.State == "halted" })
	if !strings.Contains(shown.LastError, "aggregateId") || shown.Sent != 10 || shown.Parked != 0 {
		t.Errorf("status is %+v, want the reason, and what came before sent", shown)
	}
	if code, _ := p.get(t, "/ready"); code != http.StatusServiceUnavailable {
		t.Errorf("/ready answers %d, want 503", code)
	}
	if code, _ := p.get(t, "/live"); code != http.StatusOK {
		t.Errorf("/live answers %d, want 200", code)
	}
	if _, body := p.get(t, "/metrics"); !strings.Contains(body, `publisher_halted{reason="change cannot be sent"} 1`) {
		t.Error("/metrics does not say that publishing is halted")
	}
}

func TestPublish_LostHistoryHaltsTheStreamLoudly(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	client := testserver.Connect(t, servers.MongoURI)
	err := client.Database("admin").RunCommand(t.Context(), bson.D{
		{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: "alwaysOn"},
		{Key: "data", Value: bson.D{
			{Key: "failCommands", Value: bson.A{"getMore"}},
			{Key: "errorCode", Value: 286},
		}},
	}).Err()
	if err != nil {
		t.Fatal(err)
	}
	p := run(t, configured(servers))
	shown := p.await(t, "the stream to halt", func(s status.Status) bool { return s.State == "halted" })
	if !strings.Contains(shown.LastError, "history lost") {
		t.Errorf("last error is %q, want it to say that history is lost", shown.LastError)
	}
	// What it does from here on is to wait: a minute between attempts.
	reads := shown.Read
	if again := p.status(t); again.State != "halted" || again.Read != reads {
		t.Errorf("status is %+v, want it to stay halted", again)
	}
}

func TestPublish_AnUnreachableSourceIsWaitedForAndSaidSo(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	proxy, through := mongoProxy(t, servers)
	proxy.Cut()
	p := run(t, configured(servers, func(c *config.Config) { c.MongoURI, c.StateMongoURI = through, through }))
	shown := p.await(t, "the status to say why", func(s status.Status) bool { return s.LastError != "" })
	if shown.State != "starting" {
		t.Errorf("state is %q, want starting", shown.State)
	}
	if code, _ := p.get(t, "/ready"); code != http.StatusServiceUnavailable {
		t.Errorf("/ready answers %d, want 503", code)
	}
	if code, _ := p.get(t, "/live"); code != http.StatusOK {
		t.Errorf("/live answers %d, want 200: a restart would not help", code)
	}
	proxy.Mend()
	if status := p.await(t, "the publisher to lead", leading); status.LastError != "" {
		t.Errorf("last error is %q after the source came back, want none", status.LastError)
	}
}

func TestPublish_AnUnreachableTopicIsWaitedForAndNothingIsLost(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	proxy, through := busProxy(t, servers)
	proxy.Cut()
	source := events(t, servers)
	p := run(t, configured(servers, func(c *config.Config) { c.ServiceBusConnection = through }))
	p.await(t, "the publisher to lead", func(s status.Status) bool { return s.Term > 0 })
	source.write(t, 900, 30) // more than may be in flight
	shown := p.await(t, "the outage to be said", func(s status.Status) bool { return s.State == "blocked" })
	if shown.LastError == "" || shown.OutageClass != "transient" || shown.Sent != 0 || shown.InFlight > 500 {
		t.Errorf("status is %+v, want the reason, nothing sent, and a bounded window", shown)
	}
	proxy.Mend()
	source.wantAll(t, source.drain(t, servers))
	shown = p.await(t, "the outage to be over", func(s status.Status) bool { return s.State == "publishing" && s.LastError == "" })
	if len(shown.Troubles) == 0 || shown.Troubles[0].Error == "" {
		t.Errorf("troubles are %+v after the outage, want them to tell of it", shown.Troubles)
	}
}

func TestPublish_ALeaderConnectsToTheTopicBeforeItsFirstChange(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	proxy, through := busProxy(t, servers)
	p := run(t, configured(servers, func(c *config.Config) { c.ServiceBusConnection = through }))
	p.await(t, "the topic to be connected", func(s status.Status) bool { return proxy.Connections() == 1 && leading(s) })
	source := events(t, servers)
	source.write(t, 20, 3)
	source.wantAll(t, source.drain(t, servers))
	if got := proxy.Connections(); got != 1 {
		t.Errorf("%d connections after the first changes, want the one there was", got)
	}
}

func TestPublish_AMissingTopicBlocksLoudlyAndMovesNothing(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	p := run(t, configured(servers, func(c *config.Config) { c.ServiceBusTopic = "nowhere" }))
	p.await(t, "the publisher to lead", func(s status.Status) bool { return s.Term > 0 })
	source := events(t, servers)
	source.write(t, 20, 3)
	shown := p.await(t, "the outage to be said", func(s status.Status) bool { return s.State == "blocked" })
	if !strings.Contains(shown.LastError, `"nowhere"`) || shown.OutageClass != "blocked" {
		t.Errorf("status is %+v, want the topic named", shown)
	}
	if code, _ := p.get(t, "/ready"); code != http.StatusServiceUnavailable {
		t.Errorf("/ready answers %d, want 503", code)
	}
	if err := p.quit(); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	right := run(t, configured(servers))
	right.awaitHalt(t, "stream settings changed", "SERVICEBUS_TOPIC", "publisher checkpoint accept --why TEXT")
	if _, err := say[command.MoveView](t, configured(servers), "checkpoint", "accept", "--why", "the name was wrong"); err != nil {
		t.Fatal(err)
	}
	right.await(t, "the events to be sent with the right topic", sent(20))
	source.wantAll(t, source.drain(t, servers))
}

func TestPublish_OfTwoProcessesWithOneUniqueIDTheOlderStopsWithAnError(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	unique := func(c *config.Config) { c.InstanceIDUnique = true }
	older := run(t, configured(servers, unique))
	older.await(t, "the older to lead", leading)
	newer := run(t, configured(servers, unique))
	newer.await(t, "the newer to lead", leading)
	<-older.done
	if older.err == nil || !strings.Contains(older.err.Error(), "another process uses this instance's id") {
		t.Errorf("Run = %v, want it to say that the id is used twice", older.err)
	}
}

func TestPublish_ASupersededLeaderThatHoldsTheLeaseClaimsANewTerm(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	p := run(t, configured(servers))
	p.await(t, "the publisher to lead", leading)
	source.write(t, 50, 5)
	p.await(t, "the events to be sent", sent(50))
	// A stale instance claims late, once.
	tokens := testserver.Connect(t, servers.MongoURI).Database("change_relay").Collection("resume_tokens")
	if _, err := tokens.UpdateByID(t.Context(), "shop.events", bson.D{{Key: "$inc", Value: bson.D{{Key: "term", Value: int64(1)}}}}); err != nil {
		t.Fatal(err)
	}
	source.write(t, 50, 5)
	p.await(t, "a term above the stale one", func(s status.Status) bool { return s.Term == 3 && s.State == "publishing" })
	source.write(t, 50, 5)
	source.wantAll(t, source.drain(t, servers))
}

func TestPublish_TwoStreamsThatShareALeaseAreToldApart(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	orders := run(t, configured(servers, named("orders")))
	orders.await(t, "the first stream to be led", leading)
	customers := run(t, configured(servers, named("customers"), func(c *config.Config) {
		c.SourceCollection, c.StreamName = "customers", "shop.customers"
	}))
	shown := customers.await(t, "the conflict to be said", func(s status.Status) bool { return s.LastError != "" })
	for _, want := range []string{`"shop.events"`, `"shop.customers"`, "LEASE_NAME"} {
		if !strings.Contains(shown.LastError, want) {
			t.Errorf("last error is %q, without %s", shown.LastError, want)
		}
	}
	if code, _ := customers.get(t, "/ready"); code != http.StatusServiceUnavailable {
		t.Errorf("/ready answers %d, want 503: this stream is not published", code)
	}
	if code, _ := orders.get(t, "/ready"); code != http.StatusOK {
		t.Errorf("/ready of the leader answers %d, want 200", code)
	}
}

func TestPublish_AStopIsBoundedWhenNothingAnswers(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	mongo, throughMongo := mongoProxy(t, servers)
	bus, throughBus := busProxy(t, servers)
	p := run(t, configured(servers, func(c *config.Config) {
		c.MongoURI, c.StateMongoURI, c.ServiceBusConnection = throughMongo, throughMongo, throughBus
		c.ShutdownTimeout = 6 * time.Second
	}))
	p.await(t, "the publisher to lead", leading)
	mongo.Cut()
	bus.Cut()
	p.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	select {
	case <-p.done:
	case <-ctx.Done():
		t.Error("not stopped 4s after the whole budget")
	}
}

func TestPublish_NoSecretIsInAnyOutput(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	const password, key = "canary-password", "canary-key"
	bus := strings.Replace(servers.ServiceBus, "SAS_KEY_VALUE", key, 1)
	proxy, through := mongoProxy(t, servers)
	proxy.Cut()
	uri := strings.Replace(through.Reveal(), "mongodb://", "mongodb://user:"+password+"@", 1) + "&authMechanism=PLAIN"
	p := run(t, configured(servers, func(c *config.Config) {
		c.MongoURI, c.StateMongoURI, c.ServiceBusConnection = settings.Secret(uri), settings.Secret(uri), settings.Secret(bus)
	}))
	p.await(t, "an error to be said", func(s status.Status) bool { return s.LastError != "" })
	outputs := map[string]string{"the log": p.log.String()}
	for _, path := range []string{"/status", "/metrics", "/ready?full=1", "/live?full=1", "/"} {
		_, outputs[path] = p.get(t, path)
	}
	for where, text := range outputs {
		if strings.Contains(text, password) || strings.Contains(text, key) {
			t.Errorf("%s contains a secret: %s", where, text)
		}
	}
}

func TestPublish_TheLogIsRedactedWhateverIsWritten(t *testing.T) {
	servers := testserver.Get(t)
	const canary, clientSecret = "canary-signature", "canary~client~secret"
	t.Setenv("AZURE_CLIENT_SECRET", clientSecret) // the SDK reads it by itself
	p := run(t, configured(servers, func(c *config.Config) {
		c.StateDatabase = testserver.Name(t)
		c.LeaseName = "lease of " + canary + clientSecret // stands for an error that quotes secrets
		c.ServiceBusConnection += settings.Secret("SharedAccessSignature=" + canary)
	}))
	testserver.Eventually(t, "the lease to be logged", func() bool { return strings.Contains(p.log.String(), "lease of ") })
	for _, secret := range []string{canary, clientSecret} {
		if strings.Contains(p.log.String(), secret) {
			t.Errorf("the log contains %q: %s", secret, p.log)
		}
	}
}
