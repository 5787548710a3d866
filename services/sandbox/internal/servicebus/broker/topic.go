package broker

import (
	"strings"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// CreateTopic fills defaults in and returns the topic as made.
func (b *Broker) CreateTopic(name string, p entity.TopicProperties) (entity.Topic, error) {
	p = p.WithDefaults(b.cfg.MaxMessageBytes)
	if err := p.Check(); err != nil {
		return entity.Topic{}, err
	}
	p.MaxSizeInMegabytes = sizeOfAll(p.MaxSizeInMegabytes, p.EnablePartitioning)
	b.mu.Lock()
	if err := b.checkNewInlet("topic", name); err != nil {
		b.mu.Unlock()
		return entity.Topic{}, err
	}
	in := b.addTopic(name, b.lastID+1, p, time.Now())
	b.log.topic(in)
	made := in.topicInfo()
	return made, b.unlockAndCommit()
}

func (b *Broker) addTopic(name string, id uint64, p entity.TopicProperties, now time.Time) *inlet {
	in := &inlet{
		b: b, id: id, name: name, topic: true, partitioned: p.EnablePartitioning,
		outlets: map[string]*outlet{}, dates: dates{created: now, updated: now},
	}
	in.waiting = newStore(b, id, name, in, &in.gate, terms{timeToLive: entity.Forever}, false)
	in.applyTopic(p)
	b.inlets[strings.ToLower(name)] = in
	b.watchIdle(in, nil)
	return in
}

func (in *inlet) applyTopic(p entity.TopicProperties) {
	in.topicProperties = p
	in.maxMessage = p.MaxMessageSizeInKilobytes << 10
	in.quota.max = p.MaxSizeInMegabytes << 20
	in.timeToLive = p.DefaultMessageTimeToLive
	in.status = p.Status
	in.remembers(p.RequiresDuplicateDetection, p.DuplicateDetectionHistoryTimeWindow)
}

// UpdateTopic replaces the properties that may change. Like the service it
// detaches the receivers of its subscriptions.
func (b *Broker) UpdateTopic(name string, p entity.TopicProperties) (entity.Topic, error) {
	p = p.WithDefaults(b.cfg.MaxMessageBytes)
	if err := p.Check(); err != nil {
		return entity.Topic{}, err
	}
	b.mu.Lock()
	in, err := b.inlet(name, true)
	if err == nil {
		old := in.topicProperties
		err = unchanged("Topic",
			fixed{"RequiresDuplicateDetection", old.RequiresDuplicateDetection, p.RequiresDuplicateDetection},
			fixed{"EnablePartitioning", old.EnablePartitioning, p.EnablePartitioning},
		)
	}
	if err != nil {
		b.mu.Unlock()
		return entity.Topic{}, err
	}
	now := time.Now()
	in.applyTopic(p)
	in.dates.updated = now
	in.detach(now)
	b.watchIdle(in, nil)
	b.log.topic(in)
	made := in.topicInfo()
	return made, b.unlockAndCommit()
}

// Topic returns one.
func (b *Broker) Topic(name string) (entity.Topic, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	in, err := b.inlet(name, true)
	if err != nil {
		return entity.Topic{}, err
	}
	return in.topicInfo(), nil
}

func (in *inlet) topicInfo() entity.Topic {
	return entity.Topic{
		Name: in.name, Properties: in.topicProperties,
		CreatedAt: in.dates.created, UpdatedAt: in.dates.updated, AccessedAt: in.dates.accessed,
		Size: in.quota.used, Subscriptions: len(in.inOrder), Counts: in.waiting.counts,
	}
}

// Topics lists all by name.
func (b *Broker) Topics() []entity.Topic {
	b.mu.Lock()
	defer b.mu.Unlock()
	var topics []entity.Topic
	for _, in := range b.sorted(true) {
		topics = append(topics, in.topicInfo())
	}
	return topics
}

// DeleteTopic deletes its subscriptions as well.
func (b *Broker) DeleteTopic(name string) error { return b.deleteInlet(name, true) }

// CreateSubscription makes a subscription with the given rules, or with
// DefaultRule when there are none. It gets the messages sent from then on.
func (b *Broker) CreateSubscription(topic, name string, p entity.SubscriptionProperties, rules ...entity.Rule) (entity.Subscription, error) {
	p = p.WithDefaults()
	if err := p.Check(); err != nil {
		return entity.Subscription{}, err
	}
	if len(rules) == 0 {
		rules = []entity.Rule{{Name: entity.DefaultRule}}
	}
	b.mu.Lock()
	in, err := b.checkNewSubscription(topic, name)
	if err != nil {
		b.mu.Unlock()
		return entity.Subscription{}, err
	}
	now := time.Now()
	compiled, err := compileRules(rules, now)
	if err != nil {
		b.mu.Unlock()
		return entity.Subscription{}, err
	}
	out := b.addSubscription(in, name, b.lastID+1, p, compiled, now)
	b.log.subscription(in, out)
	made := out.subscription(in)
	return made, b.unlockAndCommit()
}

func (b *Broker) checkNewSubscription(topic, name string) (*inlet, error) {
	in, err := b.inlet(topic, true)
	if err != nil {
		return nil, err
	}
	if err := checkName("subscription", name, maxChildName, false); err != nil {
		return nil, err
	}
	if in.outlets[strings.ToLower(name)] != nil {
		return nil, errEntityExists(subscriptionPath(in.name, name))
	}
	if most := b.purse.MaxSubscriptions; most > 0 && int64(len(in.outlets)) >= most {
		return nil, errTooMany("subscriptions of the topic", most)
	}
	return in, nil
}

func subscriptionPath(topic, name string) string { return topic + "/Subscriptions/" + name }

func (b *Broker) addSubscription(in *inlet, name string, id uint64, p entity.SubscriptionProperties, rules []*rule, now time.Time) *outlet {
	out := &outlet{name: name, rules: rules, properties: p, dates: dates{now, now, now}}
	in.dates.accessed = now
	path := subscriptionPath(in.name, name)
	out.store = newStore(b, id, path, in, &out.gate, subscriptionTerms(p), p.RequiresSession)
	out.store.addDeadLetters()
	in.addOutlet(out)
	b.watchIdle(in, out)
	return out
}

// UpdateSubscription replaces the properties that may change. Like the service
// it detaches the subscription's receivers.
func (b *Broker) UpdateSubscription(topic, name string, p entity.SubscriptionProperties) (entity.Subscription, error) {
	p = p.WithDefaults()
	if err := p.Check(); err != nil {
		return entity.Subscription{}, err
	}
	b.mu.Lock()
	in, out, err := b.subscription(topic, name)
	if err == nil {
		err = unchanged("Subscription", fixed{"RequiresSession", out.properties.RequiresSession, p.RequiresSession})
	}
	if err != nil {
		b.mu.Unlock()
		return entity.Subscription{}, err
	}
	now := time.Now()
	out.properties = p
	out.apply(subscriptionTerms(p))
	out.dates.updated = now
	out.detach(now)
	b.watchIdle(in, out)
	b.log.subscription(in, out)
	made := out.subscription(in)
	return made, b.unlockAndCommit()
}

func (b *Broker) subscription(topic, name string) (*inlet, *outlet, error) {
	in, err := b.inlet(topic, true)
	if err != nil {
		return nil, nil, err
	}
	out := in.outlets[strings.ToLower(name)]
	if out == nil {
		return nil, nil, errNotFound(b.cfg.Namespace, subscriptionPath(topic, name))
	}
	return in, out, nil
}

// Subscription returns one.
func (b *Broker) Subscription(topic, name string) (entity.Subscription, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	in, out, err := b.subscription(topic, name)
	if err != nil {
		return entity.Subscription{}, err
	}
	return out.subscription(in), nil
}

func (o *outlet) subscription(in *inlet) entity.Subscription {
	return entity.Subscription{
		Topic: in.name, Name: o.name, Properties: o.properties,
		CreatedAt: o.dates.created, UpdatedAt: o.dates.updated, AccessedAt: later(o.dates.accessed, o.store.accessed),
		Counts: o.counts(),
	}
}

// Subscriptions lists a topic's by name.
func (b *Broker) Subscriptions(topic string) ([]entity.Subscription, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	in, err := b.inlet(topic, true)
	if err != nil {
		return nil, err
	}
	var subs []entity.Subscription
	for _, out := range in.inOrder {
		subs = append(subs, out.subscription(in))
	}
	return subs, nil
}

// DeleteSubscription detaches its receivers and drops its messages.
func (b *Broker) DeleteSubscription(topic, name string) error {
	b.mu.Lock()
	in, out, err := b.subscription(topic, name)
	if err != nil {
		b.mu.Unlock()
		return err
	}
	b.dropSubscription(in, out, time.Now())
	return b.unlockAndCommit()
}

func (b *Broker) dropSubscription(in *inlet, out *outlet, now time.Time) {
	in.removeOutlet(out)
	out.drop(now)
	b.log.dropSubscription(in, out) // last, as in dropInlet
}
