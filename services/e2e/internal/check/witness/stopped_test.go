package witness

import (
	"context"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestAtStop_FindsLockedSessionsAndOpenStreams(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	found := func(killed bool) map[string]int {
		t.Helper()
		counts := map[string]int{}
		violations, err := s.AtStop(t.Context(), killed)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range violations {
			counts[f.Name] = f.Count
		}
		return counts
	}
	if got := found(false); got[SessionsLocked] != 0 || got[StreamsOpen] != 0 || len(got) != 2 {
		t.Errorf("with nothing left: found %v", got)
	}
	stream, err := s.Client.Database(s.names.SourceDatabase).Collection(s.names.SourceCollection).Watch(t.Context(), bson.A{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close(context.WithoutCancel(t.Context()))
	if got := found(false); got[StreamsOpen] != 1 {
		t.Errorf("with a change stream open: found %v", got)
	}
	if got := found(true); len(got) != 1 {
		t.Errorf("after a kill: found %v, want nothing said of streams", got)
	}
	client, err := azservicebus.NewClientFromConnectionString(s.endpoints.ServiceBus, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.WithoutCancel(t.Context()))
	if _, err := client.AcceptSessionForSubscription(t.Context(), s.names.Topic, s.names.Subscription, "held", nil); err != nil {
		t.Fatal(err)
	}
	if got := lookOnce(t, s); got != 1 {
		t.Errorf("with a session held: found %d locked", got)
	}
	of := s.names.Subscription
	s.Witness.names.Subscription, s.subscriptions = s.names.Observer, nil
	s.AwaitBeside(of)
	if got := lookOnce(t, s); got != 1 {
		t.Errorf("with a session of another subscription held: found %d locked", got)
	}
}

func TestAtRest_ASubscriptionThatIsNotThereIsNotEmpty(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.AwaitBeside("nowhere")
	if n, err := s.queued(t.Context()); err == nil {
		t.Errorf("queued: got %d, want an error", n)
	}
	if sessions, _, err := s.held(t.Context()); err == nil {
		t.Errorf("locked: got %d, want an error", sessions.Count)
	}
}

// lookOnce looks without waiting for the locked sessions to be free.
func lookOnce(t *testing.T, s *stage) int {
	t.Helper()
	sessions, _, err := s.held(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sessions.Count
}
