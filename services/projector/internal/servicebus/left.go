package servicebus

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/rs/zerolog"
)

// Left is what waits in a subscription, without its dead letters.
type Left struct {
	// Messages are those in the subscription, deferred ones among them, and Scheduled
	// those that its topic is to take later. Where the identity may not count them,
	// Sessions are those that have some of the former, and nobody knows of the latter.
	Messages  int64 `json:"messages,omitempty"`
	Scheduled int64 `json:"scheduled,omitempty"`
	Sessions  int   `json:"sessions,omitempty"`
}

// None tells that nothing waits.
func (l Left) None() bool { return l == Left{} }

// String says how much waits.
func (l Left) String() string {
	switch {
	case l.Scheduled > 0:
		return fmt.Sprintf("%d messages, and %d scheduled ones,", l.Messages, l.Scheduled)
	case l.Messages > 0:
		return fmt.Sprintf("%d messages", l.Messages)
	}
	return fmt.Sprintf("messages of %d sessions", l.Sessions)
}

// mostLeft bounds the sessions that are counted.
const mostLeft = 1000

// LookForLeft counts what waits in the subscription. It asks the management API, and
// where that does not answer, or may not, the subscription itself. ErrNoEntity where it
// is not there.
func LookForLeft(ctx context.Context, cfg Config, o azcore.ClientOptions) (Left, error) {
	counted, err := countLeft(ctx, cfg, o)
	if err == nil || errors.Is(err, ErrNoEntity) || ctx.Err() != nil {
		return counted, err
	}
	client, err := (&Subscription{cfg: cfg, log: zerolog.Nop()}).dial(func() {}, func() {})
	if err != nil {
		return Left{}, err
	}
	defer func() { _ = client.Close(context.WithoutCancel(ctx)) }()
	var left Left
	for pager := client.NewListSessionsForSubscriptionPager(cfg.Topic, cfg.Subscription, nil); pager.More() && left.Sessions < mostLeft; {
		page, err := pager.NextPage(ctx)
		if e, ok := errors.AsType[*azservicebus.Error](err); ok && e.Code == azservicebus.CodeNotFound {
			return Left{}, fmt.Errorf("list the sessions of subscription %q: %w: %w", cfg.Subscription, ErrNoEntity, err)
		}
		if err != nil {
			return Left{}, fmt.Errorf("list the sessions of subscription %q: %w", cfg.Subscription, err)
		}
		left.Sessions += len(page.Sessions)
	}
	return left, nil
}

func countLeft(ctx context.Context, cfg Config, o azcore.ClientOptions) (Left, error) {
	client, err := adminClient(cfg, &admin.ClientOptions{ClientOptions: o})
	if err != nil {
		return Left{}, err
	}
	counts, err := client.GetSubscriptionRuntimeProperties(ctx, cfg.Topic, cfg.Subscription, nil)
	if err != nil {
		return Left{}, permitted(fmt.Errorf("count the messages of subscription %q: %w", cfg.Subscription, err))
	}
	if counts == nil {
		return Left{}, fmt.Errorf("count the messages of subscription %q of topic %q: %w", cfg.Subscription, cfg.Topic, ErrNoEntity)
	}
	topic, err := client.GetTopicRuntimeProperties(ctx, cfg.Topic, nil)
	if err != nil {
		return Left{}, permitted(fmt.Errorf("count the scheduled messages of topic %q: %w", cfg.Topic, err))
	}
	left := Left{Messages: counts.TotalMessageCount - int64(counts.DeadLetterMessageCount)}
	if topic != nil {
		left.Scheduled = int64(topic.ScheduledMessageCount)
	}
	return left, nil
}
