package command

import (
	"context"
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
// something else, or by nobody: those of each that has some, or cannot be looked at.
func leftMessages(ctx context.Context, cfg *config.Config, m *readmodel.Move) (problems []string) {
	ctx, cancel := context.WithTimeout(ctx, leftTime)
	defer cancel()
	for _, feed := range m.Left {
		left, err := leftIn(ctx, cfg, m, feed)
		switch {
		case err != nil:
			reason := strings.Join(strings.Fields(cfg.Redactor().Text(err.Error())), " ")
			problems = append(problems, fmt.Sprintf("nobody can say whether messages wait in %s, which would be left there: %s", feed, reason))
		case !left.None():
			problems = append(problems, fmt.Sprintf("%s wait in %s, and would be left there", left, feed))
		}
	}
	return problems
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
	return servicebus.LookForLeft(ctx, bus, o)
}
