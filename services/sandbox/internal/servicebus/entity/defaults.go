package entity

import (
	"cmp"
	"time"
)

// The service's defaults and bounds.
const (
	defaultLockDuration  = time.Minute
	maxLockDuration      = 5 * time.Minute
	defaultMegabytes     = 1024
	defaultHistory       = 10 * time.Minute
	minHistory           = 20 * time.Second
	maxHistory           = 7 * 24 * time.Hour
	defaultMaxDeliveries = 10
	maxMaxDeliveries     = 2000
	minTimeToLive        = time.Second
	minIdle              = 5 * time.Minute
)

// WithDefaults fills in what is not said.
func (p QueueProperties) WithDefaults(maxMessageBytes int64) QueueProperties {
	p.LockDuration = cmp.Or(p.LockDuration, defaultLockDuration)
	p.MaxSizeInMegabytes = cmp.Or(p.MaxSizeInMegabytes, defaultMegabytes)
	p.MaxMessageSizeInKilobytes = cmp.Or(p.MaxMessageSizeInKilobytes, maxMessageBytes>>10)
	p.DuplicateDetectionHistoryTimeWindow = cmp.Or(p.DuplicateDetectionHistoryTimeWindow, defaultHistory)
	p.DefaultMessageTimeToLive = cmp.Or(p.DefaultMessageTimeToLive, Forever)
	p.MaxDeliveryCount = cmp.Or(p.MaxDeliveryCount, defaultMaxDeliveries)
	p.AutoDeleteOnIdle = cmp.Or(p.AutoDeleteOnIdle, Forever)
	p.Status = cmp.Or(p.Status, StatusActive)
	return p
}

// WithDefaults fills in what is not said.
func (p TopicProperties) WithDefaults(maxMessageBytes int64) TopicProperties {
	p.MaxSizeInMegabytes = cmp.Or(p.MaxSizeInMegabytes, defaultMegabytes)
	p.MaxMessageSizeInKilobytes = cmp.Or(p.MaxMessageSizeInKilobytes, maxMessageBytes>>10)
	p.DuplicateDetectionHistoryTimeWindow = cmp.Or(p.DuplicateDetectionHistoryTimeWindow, defaultHistory)
	p.DefaultMessageTimeToLive = cmp.Or(p.DefaultMessageTimeToLive, Forever)
	p.AutoDeleteOnIdle = cmp.Or(p.AutoDeleteOnIdle, Forever)
	p.Status = cmp.Or(p.Status, StatusActive)
	return p
}

// WithDefaults fills in what is not said.
func (p SubscriptionProperties) WithDefaults() SubscriptionProperties {
	p.LockDuration = cmp.Or(p.LockDuration, defaultLockDuration)
	p.DefaultMessageTimeToLive = cmp.Or(p.DefaultMessageTimeToLive, Forever)
	p.MaxDeliveryCount = cmp.Or(p.MaxDeliveryCount, defaultMaxDeliveries)
	p.AutoDeleteOnIdle = cmp.Or(p.AutoDeleteOnIdle, Forever)
	p.Status = cmp.Or(p.Status, StatusActive)
	return p
}

// Check refuses what the service refuses, and what is not supported.
func (p QueueProperties) Check() error {
	return firstError(
		checkLockDuration(p.LockDuration), checkMaxDeliveries(p.MaxDeliveryCount),
		checkSize(p.MaxSizeInMegabytes, p.MaxMessageSizeInKilobytes), checkHistory(p.DuplicateDetectionHistoryTimeWindow),
		checkTimeToLive(p.DefaultMessageTimeToLive), checkIdle(p.AutoDeleteOnIdle), checkStatus(p.Status),
		checkForward(p.ForwardTo, p.ForwardDeadLetteredMessagesTo),
	)
}

// Check refuses what the service refuses, and what is not supported.
func (p TopicProperties) Check() error {
	return firstError(
		checkSize(p.MaxSizeInMegabytes, p.MaxMessageSizeInKilobytes), checkHistory(p.DuplicateDetectionHistoryTimeWindow),
		checkTimeToLive(p.DefaultMessageTimeToLive), checkIdle(p.AutoDeleteOnIdle), checkStatus(p.Status),
	)
}

// Check refuses what the service refuses, and what is not supported.
func (p SubscriptionProperties) Check() error {
	return firstError(
		checkLockDuration(p.LockDuration), checkMaxDeliveries(p.MaxDeliveryCount),
		checkTimeToLive(p.DefaultMessageTimeToLive), checkIdle(p.AutoDeleteOnIdle), checkStatus(p.Status),
		checkForward(p.ForwardTo, p.ForwardDeadLetteredMessagesTo),
	)
}

func firstError(errs ...*Error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkLockDuration(d time.Duration) *Error {
	if d <= 0 || d > maxLockDuration {
		return ErrArgument("LockDuration %s is not above 0 and at most %s.", d, maxLockDuration)
	}
	return nil
}

func checkMaxDeliveries(n int32) *Error {
	if n < 1 || n > maxMaxDeliveries {
		return ErrArgument("MaxDeliveryCount %d is not between 1 and %d.", n, maxMaxDeliveries)
	}
	return nil
}

func checkSize(megabytes, messageKilobytes int64) *Error {
	if megabytes < 1 || megabytes > 1<<20 {
		return ErrArgument("MaxSizeInMegabytes %d is not between 1 and %d.", megabytes, 1<<20)
	}
	if messageKilobytes < 1 || messageKilobytes > 100<<10 {
		return ErrArgument("MaxMessageSizeInKilobytes %d is not between 1 and %d.", messageKilobytes, 100<<10)
	}
	return nil
}

func checkHistory(d time.Duration) *Error {
	if d < minHistory || d > maxHistory {
		return ErrArgument("DuplicateDetectionHistoryTimeWindow %s is not between %s and %s.", d, minHistory, maxHistory)
	}
	return nil
}

func checkTimeToLive(d time.Duration) *Error {
	if d < minTimeToLive {
		return ErrArgument("DefaultMessageTimeToLive %s is not at least %s.", d, minTimeToLive)
	}
	return nil
}

func checkIdle(d time.Duration) *Error {
	if d < minIdle {
		return ErrArgument("AutoDeleteOnIdle %s is not at least %s.", d, minIdle)
	}
	return nil
}

func checkStatus(s Status) *Error {
	switch s {
	case StatusActive, StatusDisabled, StatusSendDisabled, StatusReceiveDisabled:
		return nil
	}
	return ErrArgument("Status '%s' is not one of Active, Disabled, SendDisabled and ReceiveDisabled.", s)
}

func checkForward(to, deadTo string) *Error {
	if to != "" {
		return ErrArgument("ForwardTo '%s': forwarding is not supported.", to)
	}
	if deadTo != "" {
		return ErrArgument("ForwardDeadLetteredMessagesTo '%s': forwarding is not supported.", deadTo)
	}
	return nil
}
