package scenario

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
)

// refusal is a way in which a topic takes no messages.
type refusal struct {
	// begin brings a relay up before its refusing topic, or one that will refuse
	// soon, and returns what mends that.
	begin func(*testing.T) (r *relay, mend func())
	// says is what the publisher must say about it.
	says string
}

// Whatever a topic refuses messages for, the leader says so on every channel, is
// not ready, keeps the checkpoint where it is, and goes on by itself.
func TestTopic_ATopicThatRefusesIsSaidLoudlyAndLosesNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]refusal{
		"missing":      {missingTopic, "could not be found"},
		"disabled":     {disabledTopic, "disabled"},
		"full":         {fullTopic, "maximum entity size"},
		"unauthorised": {unauthorisedTopic, "nauthorized"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, mend := tt.begin(t)
			r.write(t, 500)
			leader := r.awaitRefused(t, tt.says, 0)
			r.wantLoud(t, leader)
			saved := r.awaitRestingCheckpoint(t)
			r.write(t, 300)
			r.awaitRefused(t, tt.says, r.retries(t)+2)
			if got := r.checkpoint(within(t), t); got != saved {
				t.Errorf("checkpoint while the topic refuses: got %q, want it to stay at %q", got, saved)
			}
			mend()
			await(t, "the leader to publish again", func(ctx context.Context) (bool, string) {
				_, s, found := r.Leader(ctx)
				return found && s.State == "publishing" && s.LastError == "", s.LastError
			})
			r.judge(t)
		})
	}
}

// awaitRefused waits until the leader says that its sends are refused, after
// that many of them.
func (r *relay) awaitRefused(t *testing.T, says string, retries int64) *cluster.Node {
	t.Helper()
	var leader *cluster.Node
	await(t, "the leader to say that the topic refuses", func(ctx context.Context) (bool, string) {
		n, s, found := r.Leader(ctx)
		leader = n
		return found && s.State == "blocked" && s.OutageClass == "blocked" && s.Retries >= retries && strings.Contains(s.LastError, says),
			fmt.Sprintf("%s, %s: %s", s.State, s.OutageClass, s.LastError)
	})
	return leader
}

// wantLoud wants the refusal in probe, metrics, and log.
func (r *relay) wantLoud(t *testing.T, leader *cluster.Node) {
	t.Helper()
	code, _, err := leader.Get(within(t), "/ready")
	if err != nil || code != http.StatusServiceUnavailable {
		t.Errorf("/ready: got %d, %v, want 503", code, err)
	}
	_, metrics, err := leader.Get(within(t), "/metrics")
	if want := `publisher_outage_seconds{class="blocked"}`; err != nil || !strings.Contains(string(metrics), want) {
		t.Errorf("/metrics: got no %s, %v", want, err)
	}
	if !strings.Contains(leader.Log(), "sending paused") {
		t.Error("log: got nothing about sending")
	}
}

func (r *relay) retries(t *testing.T) int64 {
	t.Helper()
	_, s, found := r.Leader(within(t))
	if !found {
		t.Fatal("leader: got none")
	}
	return s.Retries
}

// awaitRestingCheckpoint waits until all that was accepted is in the checkpoint,
// and returns where that is.
func (r *relay) awaitRestingCheckpoint(t *testing.T) string {
	t.Helper()
	saved := ""
	await(t, "the checkpoint to rest", func(ctx context.Context) (bool, string) {
		_, s, found := r.Leader(ctx)
		saved = r.checkpoint(ctx, t)
		return found && s.InFlight > 0 && s.Position == saved, saved
	})
	return saved
}

// checkpoint is the position that is saved.
func (r *relay) checkpoint(ctx context.Context, t *testing.T) string {
	t.Helper()
	found, err := r.witness.State().Collection("resume_tokens").FindOne(ctx, bson.D{}).Raw()
	if err != nil {
		t.Fatal(err)
	}
	position, _ := found.Lookup("position").StringValueOK()
	return position
}

func disabledTopic(t *testing.T) (*relay, func()) {
	t.Helper()
	r := startBy(t, nil, witness.OpenSettling)
	r.write(t, 300)
	status := func(s admin.EntityStatus) {
		changeTopic(t, r, func(p *admin.TopicProperties) { p.Status = &s })
	}
	status(admin.EntityStatusDisabled)
	return r, func() { status(admin.EntityStatusActive) }
}

// fullTopic has a subscription that nobody reads, and room for a megabyte.
func fullTopic(t *testing.T) (*relay, func()) {
	t.Helper()
	r := startBy(t, nil, witness.OpenSettling)
	client := managing(t, r.Endpoints())
	if _, err := client.CreateSubscription(within(t), r.Names().Topic, "unread", nil); err != nil {
		t.Fatal(err)
	}
	changeTopic(t, r, func(p *admin.TopicProperties) { p.MaxSizeInMegabytes = new(int32(1)) })
	r.write(t, 3000)
	return r, func() {
		if _, err := client.DeleteSubscription(within(t), r.Names().Topic, "unread", nil); err != nil {
			t.Fatal(err)
		}
	}
}

// missingTopic deletes the topic before anything was sent, and makes another one
// as it was.
func missingTopic(t *testing.T) (*relay, func()) {
	t.Helper()
	c := cluster.New(configure(t, nil))
	closeAtEnd(t, c)
	if err := c.StartServers(within(t)); err != nil {
		t.Fatal(err)
	}
	client, names := managing(t, c.Endpoints()), c.Names()
	topic, err := client.GetTopic(within(t), names.Topic, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.DeleteTopic(within(t), names.Topic, nil); err != nil {
		t.Fatal(err)
	}
	r := watchedBy(t, c, witness.OpenSettling)
	if err := c.StartServices(); err != nil {
		t.Fatal(err)
	}
	r.awaitWork(t)
	return r, func() {
		_, err := client.CreateTopic(within(t), names.Topic, &admin.CreateTopicOptions{Properties: &topic.TopicProperties})
		if err != nil {
			t.Fatal(err)
		}
		for name, sessions := range map[string]bool{names.Observer: false, names.Subscription: true} {
			_, err := client.CreateSubscription(within(t), names.Topic, name, &admin.CreateSubscriptionOptions{
				Properties: &admin.SubscriptionProperties{RequiresSession: &sessions},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// unauthorisedTopic takes the right to send away from the publishers' key. Keys
// are said when the sandbox starts, so it is killed for that, and comes back.
func unauthorisedTopic(t *testing.T) (*relay, func()) {
	t.Helper()
	root := t.TempDir()
	addresses := []string{"--data", filepath.Join(root, "data"), "--check-sas"}
	for _, flag := range []string{"--mongo", "--servicebus", "--management", "--http"} {
		addresses = append(addresses, flag, freeAddress(t))
	}
	var last *cluster.Cluster
	servers := func(rights string) *cluster.Cluster {
		if last != nil {
			last.Close()
		}
		cfg := configure(t, func(c *cluster.Config) {
			c.SandboxArgs = append([]string{"--sas-key", "relay:" + rights + "=relays+key/=="}, addresses...)
			c.Dir = filepath.Join(root, rights)
		})
		if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
			t.Fatal(err)
		}
		last = cluster.New(cfg)
		closeAtEnd(t, last)
		if err := last.StartSandbox(within(t)); err != nil {
			t.Fatal(err)
		}
		return last
	}
	backend := servers("Send").Endpoints()
	services := cluster.New(configure(t, func(c *cluster.Config) {
		c.Backend = &backend
		key := strings.NewReplacer("RootManageSharedAccessKey", "relay", "SAS_KEY_VALUE", "relays+key/==")
		c.PublisherEnv = map[string]string{"SERVICEBUS_CONNECTION_STRING": key.Replace(backend.ServiceBus)}
	}))
	closeAtEnd(t, services)
	if err := services.LayOut(); err != nil {
		t.Fatal(err)
	}
	r := watchedBy(t, services, witness.OpenSettling)
	if err := services.StartServices(); err != nil {
		t.Fatal(err)
	}
	r.awaitWork(t)
	r.write(t, 300)
	if err := r.witness.AwaitDrain(within(t)); err != nil {
		t.Fatal(err)
	}
	servers("Listen")
	return r, func() { servers("Send,Listen") }
}
