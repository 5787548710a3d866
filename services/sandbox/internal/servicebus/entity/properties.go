package entity

import "time"

// Status says what an entity lets happen.
type Status string

// The statuses an administrator can set.
const (
	StatusActive          Status = "Active"
	StatusDisabled        Status = "Disabled"
	StatusSendDisabled    Status = "SendDisabled"
	StatusReceiveDisabled Status = "ReceiveDisabled"
)

// Receives tells that messages may be received.
func (s Status) Receives() bool { return s == StatusActive || s == StatusSendDisabled }

// Sends tells that messages may be sent.
func (s Status) Sends() bool { return s == StatusActive || s == StatusReceiveDisabled }

// Forever is the service's longest duration, TimeSpan.MaxValue: no expiry, no
// deletion.
const Forever = time.Duration(1<<63 - 1)

// QueueProperties describe a queue. The zero value of a field is the service's
// default.
type QueueProperties struct {
	LockDuration                        time.Duration // default 1 min, at most 5 min
	MaxSizeInMegabytes                  int64         // default 1024
	MaxMessageSizeInKilobytes           int64         // default the namespace's, 256
	RequiresDuplicateDetection          bool
	DuplicateDetectionHistoryTimeWindow time.Duration // default 10 min, 20 s to 7 days
	RequiresSession                     bool
	DefaultMessageTimeToLive            time.Duration // default Forever
	DeadLetteringOnMessageExpiration    bool
	MaxDeliveryCount                    int32 // default 10
	DisableBatchedOperations            bool
	EnablePartitioning                  bool
	AutoDeleteOnIdle                    time.Duration // default Forever
	ForwardTo                           string
	ForwardDeadLetteredMessagesTo       string
	Status                              Status // default Active
	UserMetadata                        string
}

// TopicProperties describe a topic. The zero value of a field is the service's
// default.
type TopicProperties struct {
	MaxSizeInMegabytes                  int64 // default 1024
	MaxMessageSizeInKilobytes           int64 // default the namespace's, 256
	RequiresDuplicateDetection          bool
	DuplicateDetectionHistoryTimeWindow time.Duration // default 10 min, 20 s to 7 days
	DefaultMessageTimeToLive            time.Duration // default Forever
	DisableBatchedOperations            bool
	EnablePartitioning                  bool
	SupportOrdering                     bool
	AutoDeleteOnIdle                    time.Duration // default Forever
	Status                              Status        // default Active
	UserMetadata                        string
}

// SubscriptionProperties describe a subscription. The zero value of a field is
// the service's default.
type SubscriptionProperties struct {
	LockDuration                              time.Duration // default 1 min, at most 5 min
	RequiresSession                           bool
	DefaultMessageTimeToLive                  time.Duration // default Forever
	DeadLetteringOnMessageExpiration          bool
	DeadLetteringOnFilterEvaluationExceptions bool
	MaxDeliveryCount                          int32 // default 10
	DisableBatchedOperations                  bool
	AutoDeleteOnIdle                          time.Duration // default Forever
	ForwardTo                                 string
	ForwardDeadLetteredMessagesTo             string
	Status                                    Status // default Active
	UserMetadata                              string
}

// DefaultRule is the name of the rule a subscription is created with when it is
// given none: a TrueFilter.
const DefaultRule = "$Default"

// Rule lets messages into a subscription. Several rules are alternatives.
type Rule struct {
	Name      string
	Filter    Filter // nil: TrueFilter
	CreatedAt time.Time
}

// Filter is one of TrueFilter, FalseFilter, CorrelationFilter and SQLFilter.
type Filter interface{ filter() }

// TrueFilter takes every message.
type TrueFilter struct{}

// FalseFilter takes none.
type FalseFilter struct{}

// CorrelationFilter takes messages that equal all of the fields that are set.
type CorrelationFilter struct {
	MessageID        *string
	SessionID        *string
	Subject          *string
	To               *string
	ReplyTo          *string
	ReplyToSessionID *string
	CorrelationID    *string
	ContentType      *string
	Properties       map[string]any
}

// Fields are the filter's settings in the order of a record.
func (f *CorrelationFilter) Fields() []**string {
	return []**string{
		&f.MessageID, &f.SessionID, &f.Subject, &f.To, &f.ReplyTo, &f.ReplyToSessionID, &f.CorrelationID, &f.ContentType,
	}
}

// SQLFilter takes messages for which the expression is true. See package
// sqlfilter for the language.
type SQLFilter struct {
	Expression string
	Parameters map[string]any // by name, with the @
}

func (TrueFilter) filter()        {}
func (FalseFilter) filter()       {}
func (CorrelationFilter) filter() {}
func (SQLFilter) filter()         {}

// Counts are an entity's messages by state, with the names of the service's
// runtime information.
type Counts struct {
	Active             int64
	DeadLetter         int64
	Scheduled          int64
	Transfer           int64
	TransferDeadLetter int64
	Deferred           int64 // counted within Active by the service; told apart here
}

// Queue is a queue as administration sees it.
type Queue struct {
	Name       string
	Properties QueueProperties
	CreatedAt  time.Time
	UpdatedAt  time.Time
	AccessedAt time.Time
	Size       int64 // bytes
	Counts     Counts
}

// Topic is a topic as administration sees it.
type Topic struct {
	Name          string
	Properties    TopicProperties
	CreatedAt     time.Time
	UpdatedAt     time.Time
	AccessedAt    time.Time
	Size          int64 // bytes
	Subscriptions int
	Counts        Counts // scheduled messages; the others live in subscriptions
}

// Subscription is a subscription as administration sees it.
type Subscription struct {
	Topic      string
	Name       string
	Properties SubscriptionProperties
	CreatedAt  time.Time
	UpdatedAt  time.Time
	AccessedAt time.Time
	Counts     Counts
}
