package management

import (
	"encoding/xml"
	"net/http"

	"changerelay/services/sandbox/internal/servicebus/entity"
	"changerelay/services/sandbox/internal/servicebus/isoduration"
)

type subscriptionDescription struct {
	XMLName xml.Name `xml:"SubscriptionDescription"`
	namespaces
	LockDuration                              string
	RequiresSession                           bool
	DefaultMessageTimeToLive                  string
	DeadLetteringOnMessageExpiration          bool
	DeadLetteringOnFilterEvaluationExceptions bool
	MessageCount                              int64
	MaxDeliveryCount                          int32
	EnableBatchedOperations                   bool
	Status                                    entity.Status
	ForwardTo                                 string `xml:",omitempty"`
	CreatedAt                                 string
	UpdatedAt                                 string
	AccessedAt                                string
	UserMetadata                              string `xml:",omitempty"`
	CountDetails                              countDetails
	ForwardDeadLetteredMessagesTo             string `xml:",omitempty"`
	AutoDeleteOnIdle                          string
	EntityAvailabilityStatus                  string
}

func subscriptionEntry(r *http.Request, s entity.Subscription) entry {
	p := s.Properties
	return newEntry(r, s.Topic+"/Subscriptions/"+s.Name, s.Name, s.CreatedAt, s.UpdatedAt, subscriptionDescription{
		namespaces:                                newNamespaces(),
		LockDuration:                              isoduration.Format(p.LockDuration),
		RequiresSession:                           p.RequiresSession,
		DefaultMessageTimeToLive:                  isoduration.Format(p.DefaultMessageTimeToLive),
		DeadLetteringOnMessageExpiration:          p.DeadLetteringOnMessageExpiration,
		DeadLetteringOnFilterEvaluationExceptions: p.DeadLetteringOnFilterEvaluationExceptions,
		MessageCount:                              total(s.Counts),
		MaxDeliveryCount:                          p.MaxDeliveryCount,
		EnableBatchedOperations:                   !p.DisableBatchedOperations,
		Status:                                    p.Status,
		ForwardTo:                                 p.ForwardTo,
		CreatedAt:                                 timestamp(s.CreatedAt),
		UpdatedAt:                                 timestamp(s.UpdatedAt),
		AccessedAt:                                timestamp(s.AccessedAt),
		UserMetadata:                              p.UserMetadata,
		CountDetails:                              newCountDetails(s.Counts),
		ForwardDeadLetteredMessagesTo:             p.ForwardDeadLetteredMessagesTo,
		AutoDeleteOnIdle:                          isoduration.Format(p.AutoDeleteOnIdle),
		EntityAvailabilityStatus:                  "Available",
	})
}

func readSubscription(of *element, p *entity.SubscriptionProperties) error {
	f := &fields{of: of}
	deliveries, batched := int64(p.MaxDeliveryCount), !p.DisableBatchedOperations
	f.duration("LockDuration", &p.LockDuration)
	f.bool("RequiresSession", &p.RequiresSession)
	f.duration("DefaultMessageTimeToLive", &p.DefaultMessageTimeToLive)
	f.bool("DeadLetteringOnMessageExpiration", &p.DeadLetteringOnMessageExpiration)
	f.bool("DeadLetteringOnFilterEvaluationExceptions", &p.DeadLetteringOnFilterEvaluationExceptions)
	f.integer("MaxDeliveryCount", &deliveries)
	f.bool("EnableBatchedOperations", &batched)
	f.string("Status", (*string)(&p.Status))
	f.string("ForwardTo", &p.ForwardTo)
	f.string("ForwardDeadLetteredMessagesTo", &p.ForwardDeadLetteredMessagesTo)
	f.string("UserMetadata", &p.UserMetadata)
	f.duration("AutoDeleteOnIdle", &p.AutoDeleteOnIdle)
	f.asked = append(f.asked, "DefaultRuleDescription")
	p.MaxDeliveryCount, p.DisableBatchedOperations = int32(deliveries), !batched
	return f.done()
}

func (h *handler) getSubscription(r *http.Request, t target) (any, error) {
	s, err := h.broker.Subscription(t.entity, t.subscription)
	if err != nil {
		return nil, err
	}
	return subscriptionEntry(r, s), nil
}

func (h *handler) putSubscription(r *http.Request, t target) (any, error) {
	d, err := readDescription(r)
	if err != nil {
		return nil, err
	}
	if d.XMLName.Local != "SubscriptionDescription" {
		return nil, badRequest("The element %s is not a SubscriptionDescription.", d.XMLName.Local)
	}
	var s entity.Subscription
	if changes(r) {
		s, err = h.changeSubscription(t, d)
	} else {
		s, err = h.makeSubscription(t, d)
	}
	if err != nil {
		return nil, err
	}
	return subscriptionEntry(r, s), nil
}

func (h *handler) changeSubscription(t target, d *element) (entity.Subscription, error) {
	old, err := h.broker.Subscription(t.entity, t.subscription)
	if err != nil {
		return entity.Subscription{}, err
	}
	p := old.Properties
	if err := readSubscription(d, &p); err != nil {
		return entity.Subscription{}, err
	}
	return h.broker.UpdateSubscription(t.entity, t.subscription, p)
}

func (h *handler) makeSubscription(t target, d *element) (entity.Subscription, error) {
	var p entity.SubscriptionProperties
	if err := readSubscription(d, &p); err != nil {
		return entity.Subscription{}, err
	}
	var rules []entity.Rule
	if rule := d.child("DefaultRuleDescription"); rule != nil {
		first, err := readRule(rule, "")
		if err != nil {
			return entity.Subscription{}, err
		}
		rules = append(rules, first)
	}
	return h.broker.CreateSubscription(t.entity, t.subscription, p, rules...)
}

func (h *handler) deleteSubscription(_ *http.Request, t target) (any, error) {
	return nil, h.broker.DeleteSubscription(t.entity, t.subscription)
}

func (h *handler) listSubscriptions(r *http.Request, t target) (any, error) {
	subs, err := h.broker.Subscriptions(t.entity)
	if err != nil {
		return nil, err
	}
	var entries []entry
	for _, s := range subs {
		entries = append(entries, subscriptionEntry(r, s))
	}
	return newFeed(r, "Subscriptions", entries)
}
