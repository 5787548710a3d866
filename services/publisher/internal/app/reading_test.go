package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// TestResuming_IsSaidWhileTheSourceLooksForThePlace breaks the cursor of a
// publisher whose source needs long to find a place from then on.
func TestResuming_IsSaidWhileTheSourceLooksForThePlace(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	p := run(t, configured(servers))
	p.await(t, "the publisher to lead", leading)
	end := testserver.Fault(t, servers, `{"kind":"mongodb.delay","commands":["aggregate"],"delay":"30m"}`)
	testserver.Fault(t, servers, `{"kind":"mongodb.cut"}`)
	source.write(t, 10, 2)
	p.await(t, "the stream to be resumed", func(s status.Status) bool { return s.State == "resuming" && s.ResumingSince != nil })
	if _, body := p.get(t, "/metrics"); !strings.Contains(body, "publisher_resuming_seconds ") {
		t.Error("/metrics does not have publisher_resuming_seconds")
	}
	end()
	testserver.Fault(t, servers, `{"kind":"mongodb.cut"}`) // the attempt that was held up
	source.wantAll(t, source.drain(t, servers))
	shown := p.await(t, "the stream to be read", func(s status.Status) bool {
		return s.State == "publishing" && s.ResumingSince == nil && s.UnreadSince == nil
	})
	if _, body := p.get(t, "/metrics"); strings.Contains(body, "publisher_resuming_seconds ") {
		t.Errorf("/metrics has publisher_resuming_seconds in state %s", shown.State)
	}
	testserver.Fault(t, servers, `{"kind":"mongodb.delay","commands":["aggregate"],"delay":"30m"}`)
	testserver.Fault(t, servers, `{"kind":"mongodb.cut"}`)
	p.await(t, "the stream to be resumed", func(s status.Status) bool { return s.State == "resuming" })
	if err := p.quit(); err != nil { // not after half an hour
		t.Errorf("Run = %v, want nil", err)
	}
}

// TestReading_ASourceThatIsGoneIsNotPublishedFrom cuts a leader off from the source
// alone, not from the state database.
func TestReading_ASourceThatIsGoneIsNotPublishedFrom(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	proxy, through := mongoProxy(t, servers)
	p := run(t, configured(servers, func(c *config.Config) { c.MongoURI = through }))
	p.await(t, "the publisher to lead", leading)
	proxy.Cut()
	shown := p.await(t, "the state to say so", func(s status.Status) bool { return s.State == "not reading" })
	if shown.Role != "leader" || shown.UnreadSince == nil || shown.LastError == "" {
		t.Errorf("status is %+v, want a leader that says since when and why it does not read", shown)
	}
	if _, body := p.get(t, "/metrics"); !strings.Contains(body, "publisher_source_unread_seconds ") {
		t.Error("/metrics does not have publisher_source_unread_seconds")
	}
	if code, _ := p.get(t, "/live"); code != http.StatusOK {
		t.Errorf("/live answers %d, want 200: a restart would not help", code)
	}
	proxy.Mend()
	p.await(t, "the source to be read again", leading)
}

// TestReading_ACopyWhoseSourceFallsSilentIsNotPublishing has the source answer everything
// but what only a copy asks.
func TestReading_ACopyWhoseSourceFallsSilentIsNotPublishing(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	source.write(t, 10, 2)
	end := testserver.Fault(t, servers, `{"kind":"mongodb.delay","commands":["explain"],"delay":"30m"}`)
	p := run(t, configured(servers, func(c *config.Config) { c.StartAt = "snapshot" }))
	shown := p.await(t, "the state to say so", func(s status.Status) bool { return s.State == "not reading" })
	if shown.Copy == nil || shown.UnreadSince == nil || !strings.Contains(shown.LastError, "does not answer") {
		t.Errorf("status is %+v, want a copy that says since when and why it does not read", shown)
	}
	end()
	testserver.Fault(t, servers, `{"kind":"mongodb.cut"}`) // the attempt that was held up
	p.await(t, "the copy to end", func(s status.Status) bool { return leading(s) && s.Copy == nil && s.UnreadSince == nil })
	source.wantAll(t, source.drain(t, servers))
}

// TestReading_ADocumentThatComesTooSlowlyIsSaid has a copy begin with a document that takes
// longer over the link than a chunk may.
func TestReading_ADocumentThatComesTooSlowlyIsSaid(t *testing.T) {
	t.Parallel()
	for name, index := range map[string]bson.D{
		"without an index": {{Key: "other", Value: 1}},
		"along an index":   {{Key: "aggregateId", Value: 1}, {Key: "version", Value: 1}, {Key: "_id", Value: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			source := events(t, servers)
			if _, err := source.Indexes().CreateOne(t.Context(), driver.IndexModel{Keys: index}); err != nil {
				t.Fatal(err)
			}
			_, err := source.InsertOne(t.Context(), bson.D{
				{Key: "_id", Value: "large"},
				{Key: "aggregateId", Value: "a"},
				{Key: "version", Value: 1},
				{Key: "type", Value: "OrderPlaced"},
				{Key: "data", Value: strings.Repeat("x", 1_800_000)},
			})
			if err != nil {
				t.Fatal(err)
			}
			proxy, through := mongoProxy(t, servers)
			proxy.Narrow(36_000)
			p := run(t, configured(servers, func(c *config.Config) { c.StartAt, c.MongoURI = "snapshot", through }))
			shown := p.await(t, "the first attempt to end", func(s status.Status) bool {
				return s.Copy != nil && s.LastError != "" && !strings.Contains(s.LastError, "does not answer")
			})
			for _, want := range []string{"large", "1800", "45s", "41 KB/s"} {
				if !strings.Contains(shown.LastError, want) || !strings.Contains(p.log.String(), want) {
					t.Errorf("last error is %q, and there or in the log is no %q", shown.LastError, want)
				}
			}
		})
	}
}

// TestReading_AFullWindowIsNotASourceThatStandsStill fills the window with changes that the
// topic does not answer, and writes nothing behind the next.
func TestReading_AFullWindowIsNotASourceThatStandsStill(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	p := run(t, configured(servers, func(c *config.Config) { c.MaxInFlight, c.SendTimeout = 2, 2*time.Minute }))
	p.await(t, "the publisher to lead", leading)
	testserver.Fault(t, servers, `{"kind":"servicebus.delay","path":"changes","delay":"100s","of":["send"]}`)
	source.write(t, 3, 3)
	written := time.Now()
	shown := p.await(t, "what is waited for to be said", func(s status.Status) bool {
		return s.LastError != "" && time.Since(written) > 40*time.Second
	})
	if shown.State != "publishing" || !shown.Ready || !strings.Contains(shown.LastError, "MAX_IN_FLIGHT") || shown.InFlight != 2 {
		t.Errorf("%d changes are in flight, and it is %s (ready %v) with the error %q, want one that names the full window",
			shown.InFlight, shown.State, shown.Ready, shown.LastError)
	}
}
