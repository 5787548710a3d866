package witness

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/services/e2e/internal/check/validate"
)

// deadLettered looks into the subscriptions' dead-letter queues. Messages of another
// source count in a sandbox only: another topic may not be ours alone.
func (w *Witness) deadLettered(ctx context.Context) (validate.Findings, error) {
	var found validate.Findings
	left := make(map[string]skipped) // that have to be among the dead letters
	if w.projection.OnError == "deadletter" {
		maps.Copy(left, w.skipped)
	}
	client, err := azservicebus.NewClientFromConnectionString(w.endpoints.ServiceBus, nil)
	if err != nil {
		return found, fmt.Errorf("look for dead letters: %w", err)
	}
	defer client.Close(context.WithoutCancel(ctx))
	w.mu.Lock()
	others := slices.Clone(w.others)
	w.mu.Unlock()
	for _, subscription := range slices.Concat(w.subscriptions, others) {
		of := left
		if subscription != w.names.Subscription && !slices.Contains(others, subscription) {
			of = nil // other groups have no such projection
		}
		if err := w.deadLetteredOf(ctx, client, subscription, of, &found); err != nil {
			return found, fmt.Errorf("look for dead letters: %w", err)
		}
	}
	for id, e := range left {
		found.Add("message %s of %s, version %d, is not among them", id, e.aggregate, e.version)
	}
	return found, nil
}

func (w *Witness) deadLetteredOf(ctx context.Context, client *azservicebus.Client, subscription string, left map[string]skipped, found *validate.Findings) error {
	receiver, err := client.NewReceiverForSubscription(w.names.Topic, subscription, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	if err != nil {
		return err
	}
	for {
		messages, err := receiver.PeekMessages(ctx, deadAtOnce, nil) // goes on behind those before
		if err != nil || len(messages) == 0 {
			return err
		}
		w.judgeDead(messages, left, found)
	}
}

// deadAtOnce is how many dead letters are asked for at once.
const deadAtOnce = 100

// judgeDead finds those of the messages that count, and takes those out of left that have to
// be there.
func (w *Witness) judgeDead(messages []*azservicebus.ReceivedMessage, left map[string]skipped, found *validate.Findings) {
	for _, m := range messages {
		source, known := m.ApplicationProperties["cloudEvents_source"]
		if w.endpoints.SandboxStatusURL == "" && known && !slices.Contains(w.names.Sources(), fmt.Sprint(source)) {
			continue
		}
		if _, due := left[m.MessageID]; due && text(m.DeadLetterReason) == notApplied {
			delete(left, m.MessageID)
			continue
		}
		found.Add("message %s: %s", m.MessageID, text(m.DeadLetterReason))
	}
}

func text(s *string) string {
	if s == nil {
		return "no reason given"
	}
	return *s
}
