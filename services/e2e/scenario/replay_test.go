package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/services/e2e/internal/harness/cluster"
)

// entities is a sandbox configuration with duplicate detection and the lock duration of the projectors'
// subscription to be filled in, and a further subscription that copies all.
const entities = `{"UserConfig": {"Namespaces": [{"Name": "sbemulatorns", "Queues": [], "Topics": [{
  "Name": "changes",
  "Properties": {"DuplicateDetectionHistoryTimeWindow": "PT10M", "RequiresDuplicateDetection": %t, "EnablePartitioning": true},
  "Subscriptions": [
    {"Name": "projector", "Properties": {"LockDuration": "%s", "MaxDeliveryCount": 10, "RequiresSession": true}},
    {"Name": "observer", "Properties": {"MaxDeliveryCount": 10}},
    {"Name": "copies", "Properties": {"MaxDeliveryCount": 10}}
  ]}]}], "Logging": {"Type": "Console"}}}`

// locksOf has the sandbox give session locks of that ISO 8601 duration.
func locksOf(t *testing.T, duration string) func(*cluster.Config) {
	t.Helper()
	return entitiesOf(t, true, duration)
}

// entitiesOf is locksOf with or without the topic's duplicate detection.
func entitiesOf(t *testing.T, detecting bool, duration string) func(*cluster.Config) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "Config.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, entities, detecting, duration), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(cfg *cluster.Config) {
		cfg.SandboxArgs = cluster.SandboxAnywhere("--config", file)
	}
}

// Every message again, in any order, over a topic that does not drop repeats: the
// read model must not change.
func TestReplay_AReplayOfEveryMessageChangesNothing(t *testing.T) {
	t.Parallel()
	r := start(t, entitiesOf(t, false, "PT30S"))
	r.write(t, 1200)
	if err := r.witness.AwaitDrain(within(t)); err != nil {
		t.Fatal(err)
	}
	client, err := azservicebus.NewClientFromConnectionString(r.Endpoints().ServiceBus, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	copies := r.copies(t, client, 1200)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(copies), func(i, k int) { copies[i], copies[k] = copies[k], copies[i] })
	r.sendAgain(t, client, copies)
	await(t, "the projectors to have seen it all again", func(ctx context.Context) (bool, string) {
		completed := int64(0)
		for _, p := range r.Projectors {
			if s, err := p.ProjectorStatus(ctx); err == nil {
				completed += s.Completed
			}
		}
		return completed >= 2400, fmt.Sprint(completed)
	})
	v := r.judge(t)
	if got, want := len(v.Sends), 2400; got != want {
		t.Errorf("messages on the topic: got %d, want %d, each twice", got, want)
	}
}

// copies takes n messages from the subscription that copies all.
func (r *relay) copies(t *testing.T, client *azservicebus.Client, n int) []*azservicebus.ReceivedMessage {
	t.Helper()
	receiver, err := client.NewReceiverForSubscription(r.Names().Topic, "copies", &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	if err != nil {
		t.Fatal(err)
	}
	var all []*azservicebus.ReceivedMessage
	for len(all) < n {
		some, err := receiver.ReceiveMessages(within(t), n-len(all), nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	return all
}

// sendAgain sends messages as they are.
func (r *relay) sendAgain(t *testing.T, client *azservicebus.Client, messages []*azservicebus.ReceivedMessage) {
	t.Helper()
	sender, err := client.NewSender(r.Names().Topic, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if err := sender.SendMessage(within(t), m.Message(), nil); err != nil {
			t.Fatal(err)
		}
	}
}

// A projector that freezes with sessions in its hands, loses them to another and
// then goes on where it stood: what it still writes must not count.
func TestReplay_AFrozenProjectorMovesNothingBack(t *testing.T) {
	t.Parallel()
	r := start(t, locksOf(t, "PT5S"))
	stop := r.writing(t, rate)
	frozen, other := r.Projectors[0], r.Projectors[1]
	await(t, "the projector to hold sessions", func(ctx context.Context) (bool, string) {
		s, err := frozen.ProjectorStatus(ctx)
		return err == nil && s.Applied > 200 && s.Sessions > 0, "none"
	})
	if err := frozen.Pause(); err != nil {
		t.Fatal(err)
	}
	stop()
	await(t, "the other projector to have taken over what there was", func(ctx context.Context) (bool, string) {
		written, applied := r.witness.Ledger.Counts()
		s, err := other.ProjectorStatus(ctx)
		return err == nil && s.Sessions == 0 && applied == written, fmt.Sprintf("%d of %d", applied, written)
	})
	if err := frozen.Resume(); err != nil {
		t.Fatal(err)
	}
	stop = r.writing(t, rate)
	await(t, "the thawed projector to work on", func(ctx context.Context) (bool, string) {
		before, err := frozen.ProjectorStatus(ctx)
		return err == nil && before.Applied > 400, fmt.Sprint(before.Applied)
	})
	stop()
	r.judge(t)
}
