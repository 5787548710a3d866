package management

import (
	"encoding/xml"
	"errors"
	"net/http"

	"changerelay/services/sandbox/internal/servicebus/entity"
	"changerelay/services/sandbox/internal/servicebus/isoduration"
)

type queueDescription struct {
	XMLName xml.Name `xml:"QueueDescription"`
	namespaces
	LockDuration                        string
	MaxSizeInMegabytes                  int64
	RequiresDuplicateDetection          bool
	RequiresSession                     bool
	DefaultMessageTimeToLive            string
	DeadLetteringOnMessageExpiration    bool
	DuplicateDetectionHistoryTimeWindow string
	MaxDeliveryCount                    int32
	EnableBatchedOperations             bool
	SizeInBytes                         int64
	MessageCount                        int64
	IsAnonymousAccessible               bool
	Status                              entity.Status
	ForwardTo                           string `xml:",omitempty"`
	UserMetadata                        string `xml:",omitempty"`
	CreatedAt                           string
	UpdatedAt                           string
	AccessedAt                          string
	SupportOrdering                     bool
	CountDetails                        countDetails
	AutoDeleteOnIdle                    string
	EnablePartitioning                  bool
	ForwardDeadLetteredMessagesTo       string `xml:",omitempty"`
	EntityAvailabilityStatus            string
	EnableExpress                       bool
	MaxMessageSizeInKilobytes           int64
}

func queueEntry(r *http.Request, q entity.Queue) entry {
	p := q.Properties
	return newEntry(r, q.Name, q.Name, q.CreatedAt, q.UpdatedAt, queueDescription{
		namespaces:                          newNamespaces(),
		LockDuration:                        isoduration.Format(p.LockDuration),
		MaxSizeInMegabytes:                  p.MaxSizeInMegabytes,
		RequiresDuplicateDetection:          p.RequiresDuplicateDetection,
		RequiresSession:                     p.RequiresSession,
		DefaultMessageTimeToLive:            isoduration.Format(p.DefaultMessageTimeToLive),
		DeadLetteringOnMessageExpiration:    p.DeadLetteringOnMessageExpiration,
		DuplicateDetectionHistoryTimeWindow: isoduration.Format(p.DuplicateDetectionHistoryTimeWindow),
		MaxDeliveryCount:                    p.MaxDeliveryCount,
		EnableBatchedOperations:             !p.DisableBatchedOperations,
		SizeInBytes:                         q.Size,
		MessageCount:                        total(q.Counts),
		Status:                              p.Status,
		ForwardTo:                           p.ForwardTo,
		UserMetadata:                        p.UserMetadata,
		CreatedAt:                           timestamp(q.CreatedAt),
		UpdatedAt:                           timestamp(q.UpdatedAt),
		AccessedAt:                          timestamp(q.AccessedAt),
		SupportOrdering:                     !p.EnablePartitioning,
		CountDetails:                        newCountDetails(q.Counts),
		AutoDeleteOnIdle:                    isoduration.Format(p.AutoDeleteOnIdle),
		EnablePartitioning:                  p.EnablePartitioning,
		ForwardDeadLetteredMessagesTo:       p.ForwardDeadLetteredMessagesTo,
		EntityAvailabilityStatus:            "Available",
		MaxMessageSizeInKilobytes:           p.MaxMessageSizeInKilobytes,
	})
}

// readQueue lays the request's settings over p.
func readQueue(of *element, p *entity.QueueProperties) error {
	f := &fields{of: of}
	deliveries, batched := int64(p.MaxDeliveryCount), !p.DisableBatchedOperations
	f.duration("LockDuration", &p.LockDuration)
	f.integer("MaxSizeInMegabytes", &p.MaxSizeInMegabytes)
	f.integer("MaxMessageSizeInKilobytes", &p.MaxMessageSizeInKilobytes)
	f.bool("RequiresDuplicateDetection", &p.RequiresDuplicateDetection)
	f.bool("RequiresSession", &p.RequiresSession)
	f.duration("DefaultMessageTimeToLive", &p.DefaultMessageTimeToLive)
	f.bool("DeadLetteringOnMessageExpiration", &p.DeadLetteringOnMessageExpiration)
	f.duration("DuplicateDetectionHistoryTimeWindow", &p.DuplicateDetectionHistoryTimeWindow)
	f.integer("MaxDeliveryCount", &deliveries)
	f.bool("EnableBatchedOperations", &batched)
	f.string("Status", (*string)(&p.Status))
	f.string("ForwardTo", &p.ForwardTo)
	f.string("ForwardDeadLetteredMessagesTo", &p.ForwardDeadLetteredMessagesTo)
	f.string("UserMetadata", &p.UserMetadata)
	f.duration("AutoDeleteOnIdle", &p.AutoDeleteOnIdle)
	f.bool("EnablePartitioning", &p.EnablePartitioning)
	f.asked = append(f.asked, "SupportOrdering")
	p.MaxDeliveryCount, p.DisableBatchedOperations = int32(deliveries), !batched
	return f.done()
}

type topicDescription struct {
	XMLName xml.Name `xml:"TopicDescription"`
	namespaces
	DefaultMessageTimeToLive            string
	MaxSizeInMegabytes                  int64
	RequiresDuplicateDetection          bool
	DuplicateDetectionHistoryTimeWindow string
	EnableBatchedOperations             bool
	SizeInBytes                         int64
	FilteringMessagesBeforePublishing   bool
	IsAnonymousAccessible               bool
	Status                              entity.Status
	UserMetadata                        string `xml:",omitempty"`
	CreatedAt                           string
	UpdatedAt                           string
	AccessedAt                          string
	SupportOrdering                     bool
	CountDetails                        countDetails
	SubscriptionCount                   int
	AutoDeleteOnIdle                    string
	EnablePartitioning                  bool
	EntityAvailabilityStatus            string
	EnableSubscriptionPartitioning      bool
	EnableExpress                       bool
	MaxMessageSizeInKilobytes           int64
	SqlFilterCount                      int //nolint:revive // the element's name
	CorrelationFilterCount              int
}

func (h *handler) topicEntry(r *http.Request, t entity.Topic) entry {
	p := t.Properties
	sql, correlation := h.filterCounts(t.Name)
	return newEntry(r, t.Name, t.Name, t.CreatedAt, t.UpdatedAt, topicDescription{
		namespaces:                          newNamespaces(),
		DefaultMessageTimeToLive:            isoduration.Format(p.DefaultMessageTimeToLive),
		MaxSizeInMegabytes:                  p.MaxSizeInMegabytes,
		RequiresDuplicateDetection:          p.RequiresDuplicateDetection,
		DuplicateDetectionHistoryTimeWindow: isoduration.Format(p.DuplicateDetectionHistoryTimeWindow),
		EnableBatchedOperations:             !p.DisableBatchedOperations,
		SizeInBytes:                         t.Size,
		Status:                              p.Status,
		UserMetadata:                        p.UserMetadata,
		CreatedAt:                           timestamp(t.CreatedAt),
		UpdatedAt:                           timestamp(t.UpdatedAt),
		AccessedAt:                          timestamp(t.AccessedAt),
		SupportOrdering:                     p.SupportOrdering,
		CountDetails:                        newCountDetails(t.Counts),
		SubscriptionCount:                   t.Subscriptions,
		AutoDeleteOnIdle:                    isoduration.Format(p.AutoDeleteOnIdle),
		EnablePartitioning:                  p.EnablePartitioning,
		EntityAvailabilityStatus:            "Available",
		MaxMessageSizeInKilobytes:           p.MaxMessageSizeInKilobytes,
		SqlFilterCount:                      sql,
		CorrelationFilterCount:              correlation,
	})
}

// filterCounts counts the rules of all subscriptions; a true or false filter is
// a SQL filter to the service.
func (h *handler) filterCounts(topic string) (sql, correlation int) {
	subs, err := h.broker.Subscriptions(topic)
	if err != nil {
		return 0, 0 // deleted meanwhile
	}
	for _, s := range subs {
		rules, err := h.broker.Rules(topic, s.Name)
		if err != nil {
			continue
		}
		for _, r := range rules {
			if _, ok := r.Filter.(entity.CorrelationFilter); ok {
				correlation++
			} else {
				sql++
			}
		}
	}
	return sql, correlation
}

func readTopic(of *element, p *entity.TopicProperties) error {
	f := &fields{of: of}
	batched := !p.DisableBatchedOperations
	f.duration("DefaultMessageTimeToLive", &p.DefaultMessageTimeToLive)
	f.integer("MaxSizeInMegabytes", &p.MaxSizeInMegabytes)
	f.integer("MaxMessageSizeInKilobytes", &p.MaxMessageSizeInKilobytes)
	f.bool("RequiresDuplicateDetection", &p.RequiresDuplicateDetection)
	f.duration("DuplicateDetectionHistoryTimeWindow", &p.DuplicateDetectionHistoryTimeWindow)
	f.bool("EnableBatchedOperations", &batched)
	f.string("Status", (*string)(&p.Status))
	f.string("UserMetadata", &p.UserMetadata)
	f.bool("SupportOrdering", &p.SupportOrdering)
	f.duration("AutoDeleteOnIdle", &p.AutoDeleteOnIdle)
	f.bool("EnablePartitioning", &p.EnablePartitioning)
	p.DisableBatchedOperations = !batched
	return f.done()
}

func (h *handler) getEntity(r *http.Request, t target) (any, error) {
	q, err := h.broker.Queue(t.entity)
	if err == nil {
		return queueEntry(r, q), nil
	}
	topic, err := h.broker.Topic(t.entity)
	if err == nil {
		return h.topicEntry(r, topic), nil
	}
	return missing(r)
}

func (h *handler) putEntity(r *http.Request, t target) (any, error) {
	d, err := readDescription(r)
	if err != nil {
		return nil, err
	}
	switch d.XMLName.Local {
	case "QueueDescription":
		return h.putQueue(r, t.entity, d)
	case "TopicDescription":
		return h.putTopic(r, t.entity, d)
	}
	return nil, badRequest("The element %s is neither a QueueDescription nor a TopicDescription.", d.XMLName.Local)
}

func (h *handler) putQueue(r *http.Request, name string, d *element) (any, error) {
	var p entity.QueueProperties
	put := h.broker.CreateQueue
	if changes(r) {
		put = h.broker.UpdateQueue
		old, err := h.broker.Queue(name)
		if err != nil {
			return nil, err
		}
		p = old.Properties
	}
	if err := readQueue(d, &p); err != nil {
		return nil, err
	}
	q, err := put(name, p)
	if err != nil {
		return nil, err
	}
	return queueEntry(r, q), nil
}

func (h *handler) putTopic(r *http.Request, name string, d *element) (any, error) {
	var p entity.TopicProperties
	put := h.broker.CreateTopic
	if changes(r) {
		put = h.broker.UpdateTopic
		old, err := h.broker.Topic(name)
		if err != nil {
			return nil, err
		}
		p = old.Properties
	}
	if err := readTopic(d, &p); err != nil {
		return nil, err
	}
	t, err := put(name, p)
	if err != nil {
		return nil, err
	}
	return h.topicEntry(r, t), nil
}

func (h *handler) deleteEntity(_ *http.Request, t target) (any, error) {
	err := h.broker.DeleteQueue(t.entity)
	var refusal *entity.Error
	if errors.As(err, &refusal) && refusal.Condition == entity.ConditionNotFound {
		err = h.broker.DeleteTopic(t.entity)
	}
	return nil, err
}

func (h *handler) listQueues(r *http.Request) (any, error) {
	var entries []entry
	for _, q := range h.broker.Queues() {
		entries = append(entries, queueEntry(r, q))
	}
	return newFeed(r, "Queues", entries)
}

func (h *handler) listTopics(r *http.Request) (any, error) {
	var entries []entry
	for _, t := range h.broker.Topics() {
		entries = append(entries, h.topicEntry(r, t))
	}
	return newFeed(r, "Topics", entries)
}
