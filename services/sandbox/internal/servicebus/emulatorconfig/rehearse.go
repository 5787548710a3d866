package emulatorconfig

import (
	"fmt"

	"changerelay/services/sandbox/internal/servicebus/broker"
)

// rehearse makes the entities in a namespace of its own, so that what only the
// broker can refuse (names, filters, ranges, repeats) is known by its path too.
func (c Config) rehearse() []error {
	b, err := broker.New(broker.Config{})
	if err != nil {
		return []error{err}
	}
	var problems []error
	note := func(path string, err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", path, err))
		}
	}
	const root = "UserConfig.Namespaces[0]"
	for i, q := range c.Queues {
		_, err := b.CreateQueue(q.Name, q.Properties)
		note(fmt.Sprintf("%s.Queues[%d]", root, i), err)
	}
	for i, t := range c.Topics {
		path := fmt.Sprintf("%s.Topics[%d]", root, i)
		if _, err := b.CreateTopic(t.Name, t.Properties); err != nil {
			note(path, err)
			continue
		}
		for j, s := range t.Subscriptions {
			_, err := b.CreateSubscription(t.Name, s.Name, s.Properties, s.Rules...)
			note(fmt.Sprintf("%s.Subscriptions[%d]", path, j), err)
		}
	}
	return problems
}
