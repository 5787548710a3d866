package emulatorconfig

import (
	"errors"
	"fmt"
	"time"

	"changerelay/services/sandbox/internal/servicebus/broker"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

// Config is a namespace to be set up.
type Config struct {
	Namespace string
	Queues    []Queue
	Topics    []Topic
}

// Queue to be made.
type Queue struct {
	Name       string
	Properties entity.QueueProperties
}

// Topic to be made, with its subscriptions.
type Topic struct {
	Name          string
	Properties    entity.TopicProperties
	Subscriptions []Subscription
}

// Subscription to be made. Without rules it takes every message.
type Subscription struct {
	Name       string
	Properties entity.SubscriptionProperties
	Rules      []entity.Rule
}

// Default is the namespace of a sandbox that is given no file: one partitioned
// topic, as the services want it, and a plain subscription to watch it by.
func Default() Config {
	return Config{
		Topics: []Topic{{
			Name: "changes",
			Properties: entity.TopicProperties{
				EnablePartitioning:                  true,
				RequiresDuplicateDetection:          true,
				DuplicateDetectionHistoryTimeWindow: 10 * time.Minute,
			},
			Subscriptions: []Subscription{
				{
					Name: "projector",
					Properties: entity.SubscriptionProperties{
						RequiresSession: true, LockDuration: 30 * time.Second, MaxDeliveryCount: 10,
					},
				},
				{
					Name:       "observer",
					Properties: entity.SubscriptionProperties{LockDuration: 30 * time.Second, MaxDeliveryCount: 10},
				},
			},
		}},
	}
}

// Apply makes the entities that the namespace does not have. Those it has,
// from an earlier run whose data was kept, stay as they are.
func (c Config) Apply(b *broker.Broker) error {
	for _, q := range c.Queues {
		if _, err := b.CreateQueue(q.Name, q.Properties); err != nil && !exists(err) {
			return fmt.Errorf("create queue %q: %w", q.Name, err)
		}
	}
	for _, t := range c.Topics {
		if _, err := b.CreateTopic(t.Name, t.Properties); err != nil && !exists(err) {
			return fmt.Errorf("create topic %q: %w", t.Name, err)
		}
		for _, s := range t.Subscriptions {
			if _, err := b.CreateSubscription(t.Name, s.Name, s.Properties, s.Rules...); err != nil && !exists(err) {
				return fmt.Errorf("create subscription %q of topic %q: %w", s.Name, t.Name, err)
			}
		}
	}
	return nil
}

func exists(err error) bool {
	var refusal *entity.Error
	return errors.As(err, &refusal) && refusal.Condition == entity.ConditionEntityExists
}
