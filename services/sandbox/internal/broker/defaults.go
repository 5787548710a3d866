package broker

import (
	"strings"
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
	maxEntityName        = 260
	maxChildName         = 50 // of a subscription or rule
)

func or[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

// sizeOfAll is the room of a new queue or topic: what was asked for is had in
// each partition.
func sizeOfAll(megabytes int64, partitioned bool) int64 {
	if partitioned {
		return megabytes * partitions
	}
	return megabytes
}

func (p QueueProperties) withDefaults(cfg Config) QueueProperties {
	p.LockDuration = or(p.LockDuration, defaultLockDuration)
	p.MaxSizeInMegabytes = or(p.MaxSizeInMegabytes, defaultMegabytes)
	p.MaxMessageSizeInKilobytes = or(p.MaxMessageSizeInKilobytes, cfg.MaxMessageBytes>>10)
	p.DuplicateDetectionHistoryTimeWindow = or(p.DuplicateDetectionHistoryTimeWindow, defaultHistory)
	p.DefaultMessageTimeToLive = or(p.DefaultMessageTimeToLive, Forever)
	p.MaxDeliveryCount = or(p.MaxDeliveryCount, defaultMaxDeliveries)
	p.AutoDeleteOnIdle = or(p.AutoDeleteOnIdle, Forever)
	p.Status = or(p.Status, StatusActive)
	return p
}

func (p TopicProperties) withDefaults(cfg Config) TopicProperties {
	p.MaxSizeInMegabytes = or(p.MaxSizeInMegabytes, defaultMegabytes)
	p.MaxMessageSizeInKilobytes = or(p.MaxMessageSizeInKilobytes, cfg.MaxMessageBytes>>10)
	p.DuplicateDetectionHistoryTimeWindow = or(p.DuplicateDetectionHistoryTimeWindow, defaultHistory)
	p.DefaultMessageTimeToLive = or(p.DefaultMessageTimeToLive, Forever)
	p.AutoDeleteOnIdle = or(p.AutoDeleteOnIdle, Forever)
	p.Status = or(p.Status, StatusActive)
	return p
}

func (p SubscriptionProperties) withDefaults() SubscriptionProperties {
	p.LockDuration = or(p.LockDuration, defaultLockDuration)
	p.DefaultMessageTimeToLive = or(p.DefaultMessageTimeToLive, Forever)
	p.MaxDeliveryCount = or(p.MaxDeliveryCount, defaultMaxDeliveries)
	p.AutoDeleteOnIdle = or(p.AutoDeleteOnIdle, Forever)
	p.Status = or(p.Status, StatusActive)
	return p
}

func (p QueueProperties) check() error {
	return firstError(
		checkLockDuration(p.LockDuration), checkMaxDeliveries(p.MaxDeliveryCount),
		checkSize(p.MaxSizeInMegabytes, p.MaxMessageSizeInKilobytes), checkHistory(p.DuplicateDetectionHistoryTimeWindow),
		checkTimeToLive(p.DefaultMessageTimeToLive), checkIdle(p.AutoDeleteOnIdle), checkStatus(p.Status),
		checkForward(p.ForwardTo, p.ForwardDeadLetteredMessagesTo),
	)
}

func (p TopicProperties) check() error {
	return firstError(
		checkSize(p.MaxSizeInMegabytes, p.MaxMessageSizeInKilobytes), checkHistory(p.DuplicateDetectionHistoryTimeWindow),
		checkTimeToLive(p.DefaultMessageTimeToLive), checkIdle(p.AutoDeleteOnIdle), checkStatus(p.Status),
	)
}

func (p SubscriptionProperties) check() error {
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
		return errArgument("LockDuration %s is not above 0 and at most %s.", d, maxLockDuration)
	}
	return nil
}

func checkMaxDeliveries(n int32) *Error {
	if n < 1 || n > maxMaxDeliveries {
		return errArgument("MaxDeliveryCount %d is not between 1 and %d.", n, maxMaxDeliveries)
	}
	return nil
}

func checkSize(megabytes, messageKilobytes int64) *Error {
	if megabytes < 1 || megabytes > 1<<20 {
		return errArgument("MaxSizeInMegabytes %d is not between 1 and %d.", megabytes, 1<<20)
	}
	if messageKilobytes < 1 || messageKilobytes > 100<<10 {
		return errArgument("MaxMessageSizeInKilobytes %d is not between 1 and %d.", messageKilobytes, 100<<10)
	}
	return nil
}

func checkHistory(d time.Duration) *Error {
	if d < minHistory || d > maxHistory {
		return errArgument("DuplicateDetectionHistoryTimeWindow %s is not between %s and %s.", d, minHistory, maxHistory)
	}
	return nil
}

func checkTimeToLive(d time.Duration) *Error {
	if d < minTimeToLive {
		return errArgument("DefaultMessageTimeToLive %s is not at least %s.", d, minTimeToLive)
	}
	return nil
}

func checkIdle(d time.Duration) *Error {
	if d < minIdle {
		return errArgument("AutoDeleteOnIdle %s is not at least %s.", d, minIdle)
	}
	return nil
}

func checkStatus(s Status) *Error {
	switch s {
	case StatusActive, StatusDisabled, StatusSendDisabled, StatusReceiveDisabled:
		return nil
	}
	return errArgument("Status '%s' is not one of Active, Disabled, SendDisabled and ReceiveDisabled.", s)
}

func checkForward(to, deadTo string) *Error {
	if to != "" {
		return errArgument("ForwardTo '%s': forwarding is not supported.", to)
	}
	if deadTo != "" {
		return errArgument("ForwardDeadLetteredMessagesTo '%s': forwarding is not supported.", deadTo)
	}
	return nil
}

// checkName refuses names that a path could not carry.
func checkName(kind, name string, longest int, slashes bool) *Error {
	if name == "" || len(name) > longest {
		return errArgument("The %s name '%s' is not 1 to %d characters long.", kind, name, longest)
	}
	for _, c := range name {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune(".-_~", c) && (c != '/' || !slashes) && (c != '$' || kind != "rule") {
			return errArgument("The %s name '%s' contains the invalid character %q.", kind, name, c)
		}
	}
	if slashes && (strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") || strings.Contains(strings.ToLower(name), subscriptionsPart)) {
		return errArgument("The %s name '%s' is not a valid path.", kind, name)
	}
	return nil
}

func (p QueueProperties) terms() terms {
	return terms{
		lockDuration: p.LockDuration, maxDeliveries: uint32(p.MaxDeliveryCount),
		timeToLive: p.DefaultMessageTimeToLive, deadLetterExpired: p.DeadLetteringOnMessageExpiration,
		status: p.Status,
	}
}

func (p SubscriptionProperties) terms() terms {
	return terms{
		lockDuration: p.LockDuration, maxDeliveries: uint32(p.MaxDeliveryCount),
		timeToLive: p.DefaultMessageTimeToLive, deadLetterExpired: p.DeadLetteringOnMessageExpiration,
		status: p.Status,
	}
}
