package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/management"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/servicebus"
)

// How long it may take to count what a move leaves.
const (
	leftTime   = 30 * time.Second
	manageTime = 5 * time.Second // of it, for each try at the management API
)

// leftMessages are what a move leaves in subscriptions whose messages are then applied to
// something else, or by nobody: those of each that has some, or cannot be looked at, and
// the way back to them.
func leftMessages(ctx context.Context, cfg *config.Config, m *readmodel.Move) (problems []string) {
	ctx, cancel := context.WithTimeout(ctx, leftTime)
	defer cancel()
	add := func(format string, args ...any) {
		problems = append(problems, cfg.Redactor().Text(strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")))
	}
	waiting := func(feed readmodel.Feed, lacking string) (seen bool) {
		left, err := leftIn(ctx, cfg, m, feed)
		switch {
		case err != nil:
			add("nobody can say whether messages wait in %s, which %s: %s", feed, lacking, err)
		case !left.None():
			add("%s wait in %s, and %s", left, feed, lacking)
		}
		return err == nil
	}
	dead := func(feed readmodel.Feed, former bool, way string) {
		found := deadEvents(ctx, feed, &foundDead{})
		switch {
		case former && errors.Is(found.unseen, servicebus.ErrNoEntity): // and its dead letters with it
		case found.unseen != nil:
			add("nobody can say whether messages are dead-lettered in %s: %s", feed, found.unseen)
		case found.letters > 0:
			add("%d messages of %d aggregates are dead-lettered in %s: %s", found.letters, len(found.aggregates), feed, way)
		}
	}
	for _, feed := range m.Left {
		way := wayBack(feed)
		if keeper, keeps := m.Keeper(feed); keeps {
			way = fmt.Sprintf("projector dlq redrive before the move; after it they are the group %q's, which keeps other collections, and what is moved lacks them until projector rebuild", keeper)
		}
		if waiting(feed, "would be left there: what is moved lacks them afterwards until projector rebuild") {
			dead(feed, false, way)
		}
	}
	if keeper, keeps := m.Keeper(m.To); keeps {
		lacking := fmt.Sprintf("would not be applied to %q, which the group %q keeps: those lack them afterwards until projector rebuild", m.Kept, keeper)
		if waiting(m.To, lacking) {
			dead(m.To, false, fmt.Sprintf("projector dlq redrive by the group %q before the move: they %s", keeper, lacking))
		}
	}
	for _, feed := range m.Former {
		if feed.Beside(m.To) {
			dead(feed, true, wayBack(feed))
		}
	}
	return problems
}

// wayBack is how dead letters of a subscription are applied that feeds nobody else.
func wayBack(feed readmodel.Feed) string {
	return fmt.Sprintf("projector dlq redrive in the environment that is left, before the move; or after it in this one, with SERVICEBUS_TOPIC=%s SERVICEBUS_SUBSCRIPTION=%s for that command alone",
		feed.Topic, feed.Subscription)
}

func leftIn(ctx context.Context, cfg *config.Config, m *readmodel.Move, feed readmodel.Feed) (servicebus.Left, error) {
	if !feed.Beside(m.To) {
		return servicebus.Left{}, fmt.Errorf("it is in the namespace %q, and the environment names %q", feed.Namespace, m.To.Namespace)
	}
	bus, err := cfg.Bus().Reach()
	if err != nil {
		return servicebus.Left{}, err
	}
	bus.Topic, bus.Subscription = feed.Topic, feed.Subscription
	o, err := management.Options(cfg.ServiceBusManagementURL, cfg.ServiceBusConnectionString.Reveal())
	if err != nil {
		return servicebus.Left{}, err
	}
	o.Retry = policy.RetryOptions{MaxRetries: -1, TryTimeout: manageTime}
	left, err := servicebus.LookForLeft(ctx, bus, o)
	if strings.EqualFold(feed.Topic, m.To.Topic) {
		left.Scheduled = 0 // they come to the new subscription, too
	}
	return left, err
}
