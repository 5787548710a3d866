package servicebus

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"changerelay/services/projector/internal/doctor"
)

var (
	// ErrNotPermitted means that the identity may not read the properties.
	ErrNotPermitted = errors.New("not permitted")
	// ErrNoEntity means that topic or subscription are not there.
	ErrNoEntity = errors.New("there is no such entity")
)

// Examine reads what the doctor judges of the subscription and its topic. It
// needs an identity that may manage the topic, which no running projector has.
func Examine(ctx context.Context, cfg Config, o azcore.ClientOptions) (doctor.Subscription, error) {
	client, err := adminClient(cfg, &admin.ClientOptions{ClientOptions: o})
	if err != nil {
		return doctor.Subscription{}, err
	}
	topic, err := client.GetTopic(ctx, cfg.Topic, nil)
	if err != nil {
		return doctor.Subscription{}, permitted(fmt.Errorf("read topic %q: %w", cfg.Topic, err))
	}
	if topic == nil {
		return doctor.Subscription{}, fmt.Errorf("read topic %q: %w", cfg.Topic, ErrNoEntity)
	}
	got, err := client.GetSubscription(ctx, cfg.Topic, cfg.Subscription, nil)
	if err != nil {
		return doctor.Subscription{}, permitted(fmt.Errorf("read subscription %q: %w", cfg.Subscription, err))
	}
	if got == nil {
		return doctor.Subscription{}, fmt.Errorf("read subscription %q of topic %q: %w", cfg.Subscription, cfg.Topic, ErrNoEntity)
	}
	s := doctor.Subscription{
		Topic: doctor.Topic{
			Name:         cfg.Topic,
			Deduplicates: orZero(topic.RequiresDuplicateDetection),
			Window:       doctor.Duration(orZero(topic.DuplicateDetectionHistoryTimeWindow)),
			TimeToLive:   doctor.Duration(orZero(topic.DefaultMessageTimeToLive)),
		},
		Name:             cfg.Subscription,
		Active:           orZero(got.Status) == admin.EntityStatusActive,
		RequiresSession:  orZero(got.RequiresSession),
		Lock:             doctor.Duration(orZero(got.LockDuration)),
		MaxDeliveries:    int(orZero(got.MaxDeliveryCount)),
		TimeToLive:       doctor.Duration(orZero(got.DefaultMessageTimeToLive)),
		DeadLettersStale: orZero(got.DeadLetteringOnMessageExpiration),
		DeletedWhenIdle:  doctor.Duration(orZero(got.AutoDeleteOnIdle)),
		ForwardTo:        orZero(got.ForwardTo),
		ForwardDeadTo:    orZero(got.ForwardDeadLetteredMessagesTo),
	}
	counts, err := client.GetSubscriptionRuntimeProperties(ctx, cfg.Topic, cfg.Subscription, nil)
	if err != nil {
		return s, permitted(fmt.Errorf("count the messages of subscription %q: %w", cfg.Subscription, err))
	}
	if counts != nil {
		s.DeadLetters = int(counts.DeadLetterMessageCount)
	}
	s.Rules, err = rules(ctx, client, cfg)
	return s, err
}

func adminClient(cfg Config, options *admin.ClientOptions) (*admin.Client, error) {
	if cfg.ConnectionString != "" {
		client, err := admin.NewClientFromConnectionString(cfg.ConnectionString, options)
		if err != nil {
			// The client's text may quote the connection string.
			return nil, errors.New("the Service Bus connection string is not valid")
		}
		return client, nil
	}
	return admin.NewClient(cfg.Namespace, cfg.Credential, options)
}

// permitted marks a refusal as one.
func permitted(err error) error {
	if e, ok := errors.AsType[*azcore.ResponseError](err); ok && (e.StatusCode == http.StatusUnauthorized || e.StatusCode == http.StatusForbidden) {
		return fmt.Errorf("%w: %w", ErrNotPermitted, err)
	}
	return err
}

func rules(ctx context.Context, client *admin.Client, cfg Config) ([]doctor.Rule, error) {
	var all []doctor.Rule
	for pages := client.NewListRulesPager(cfg.Topic, cfg.Subscription, nil); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, permitted(fmt.Errorf("list the rules of subscription %q: %w", cfg.Subscription, err))
		}
		for _, r := range page.Rules {
			rule := doctor.Rule{Name: r.Name, Everything: everything(r.Filter), Acts: r.Action != nil}
			if filter, is := r.Filter.(*admin.SQLFilter); is {
				rule.SQL = filter.Expression
			}
			all = append(all, rule)
		}
	}
	return all, nil
}

// everything tells whether a filter is one of the two ways to let all through.
func everything(f admin.RuleFilter) bool {
	switch f := f.(type) {
	case *admin.TrueFilter:
		return true
	case *admin.SQLFilter:
		return strings.ReplaceAll(f.Expression, " ", "") == "1=1"
	}
	return false
}

// orZero is what p points to, or nothing.
func orZero[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}
