package app_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// TestStatus_AStandbySaysSinceWhenItKnowsNothingOfTheLeader cuts a standby alone off:
// what it knows of the leader is old from then on, and is known again afterwards.
func TestStatus_AStandbySaysSinceWhenItKnowsNothingOfTheLeader(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	leader := run(t, configured(servers, named("a")))
	leader.await(t, "a to lead", leading)
	proxy, through := mongoProxy(t, servers)
	standby := run(t, configured(servers, named("b"), func(c *config.Config) { c.StateMongoURI = through }))
	standby.await(t, "b to know the leader", func(s status.Status) bool {
		return s.Leader == "a" && s.State == "standing by" && s.LeaseUnreadSince == nil
	})
	proxy.Cut()
	first := standby.await(t, "b to say that it knows nothing", func(s status.Status) bool { return s.LeaseUnreadSince != nil })
	if again := standby.status(t); again.LeaseUnreadSince == nil || !again.LeaseUnreadSince.Equal(*first.LeaseUnreadSince) {
		t.Errorf("got %v and then %v, want the time at which it began", first.LeaseUnreadSince, again.LeaseUnreadSince)
	}
	proxy.Mend()
	standby.await(t, "b to know it again", func(s status.Status) bool { return s.LeaseUnreadSince == nil && s.Ready })
}

// TestStatus_SaysSinceWhenChangesAreParked parks one, as its aggregate's id is none.
func TestStatus_SaysSinceWhenChangesAreParked(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	p := run(t, configured(servers, named("a")))
	if s := p.await(t, "it to lead", leading); s.ParkedSince != nil {
		t.Errorf("parked since %v before anything was", s.ParkedSince)
	}
	if _, err := source.InsertOne(t.Context(), bson.D{{Key: "aggregateId", Value: ""}, {Key: "version", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	first := p.await(t, "the change to be parked", func(s status.Status) bool { return s.ParkedSince != nil && s.Parked == 1 })
	if again := p.status(t); again.ParkedSince == nil || !again.ParkedSince.Equal(*first.ParkedSince) {
		t.Errorf("got %v and then %v, want the time at which it began", first.ParkedSince, again.ParkedSince)
	}
}
