package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Topic is what is known of the topic.
type Topic struct {
	Name         string
	Deduplicates bool
	Window       time.Duration
	TimeToLive   time.Duration
}

// Subscription is what is known of the subscription and its topic. Durations
// that never end are Endless.
type Subscription struct {
	Topic            Topic
	Name             string
	Active           bool
	RequiresSession  bool
	Lock             time.Duration
	MaxDeliveries    int
	TimeToLive       time.Duration
	DeadLettersStale bool
	DeletedWhenIdle  time.Duration
	ForwardTo        string
	ForwardDeadTo    string
	DeadLetters      int
	Rules            []Rule
}

// Rule is what is known of a rule of the subscription.
type Rule struct {
	Name string
	// Everything says that the rule lets every message through.
	Everything bool
	// SQL is its filter, where that is an SQL expression.
	SQL string
	// Acts says that the rule changes what it lets through.
	Acts bool
}

const (
	// keep is the least time that messages should live, unread: an outage of the
	// projectors over a long weekend.
	keep = 4 * 24 * time.Hour
	// window is the least time over which the topic should drop repeats.
	window = time.Minute
	// deliveries is the service's default. A lock that ends counts as one.
	deliveries = 10
	// longestLock is the longest lock after which others take over in good time.
	longestLock = time.Minute
	// renewals is how many renewals in a row may be asked of one batch.
	renewals = 4
)

// alternatives is what stands between the conditions of a filter.
var alternatives = regexp.MustCompile(`(?i)\s+OR\s+`)

// JudgeSubscription judges the subscription, and what its topic decides for it.
func JudgeSubscription(s *Subscription, settings Settings) []Finding {
	f := &findings{subject: fmt.Sprintf("subscription %q", s.Name)}
	f.add(!s.RequiresSession, Fault, "create it anew with RequiresSession=true; it cannot be switched on later",
		"does not require sessions, so nothing can be read in order")
	f.add(!s.Active, Fault, "set its status to Active", "is not active: it takes nothing in, or gives nothing out")
	f.add(s.ForwardTo != "", Fault, "clear ForwardTo", "forwards its messages to %q, so none stay for the projector", s.ForwardTo)
	f.add(s.ForwardDeadTo != "", Warning, "clear ForwardDeadLetteredMessagesTo, or look there",
		"forwards its dead letters to %q, where projector dlq does not find them", s.ForwardDeadTo)
	f.add(s.MaxDeliveries < deliveries, Warning, fmt.Sprintf("set MaxDeliveryCount to %d or more", deliveries),
		"dead-letters a message after %d deliveries, though each lock that ends counts as one; later changes of the aggregate go on without it", s.MaxDeliveries)
	f.add(s.DeadLetters > 0, Warning, "look at them with projector dlq list, and discard what was dealt with",
		"has %d dead letters", s.DeadLetters)
	f.add(s.DeletedWhenIdle < Endless, Warning, "clear AutoDeleteOnIdle",
		"is deleted with all that it holds when nobody has used it for %s", s.DeletedWhenIdle)
	f.lock(s, settings)
	f.life(s, settings)
	f.rules(s, settings.Group)
	return append(f.all, judgeTopic(&s.Topic)...)
}

func (f *findings) lock(s *Subscription, settings Settings) {
	f.add(settings.LockMargin > s.Lock/3, Warning, "raise LockDuration, or lower LOCK_MARGIN",
		"locks sessions for %s; LOCK_MARGIN, %s, is more than a third of that, and is cut to it", s.Lock, settings.LockMargin)
	f.add(settings.RetryTime > renewals*s.Lock, Warning, "raise LockDuration to 1m, or lower RETRY_TIME",
		"locks sessions for %s; a batch that is retried for RETRY_TIME, %s, lives on more than %d renewals in a row", s.Lock, settings.RetryTime, renewals)
	f.add(s.Lock > longestLock, Warning, "set LockDuration to 1m or less",
		"locks sessions for %s; so long the aggregates of a projector that died wait", s.Lock)
}

// life judges how long messages live: the shorter time of topic and subscription
// decides.
func (f *findings) life(s *Subscription, settings Settings) {
	life := min(s.TimeToLive, s.Topic.TimeToLive)
	if life == Endless {
		return
	}
	f.add(!s.DeadLettersStale, Warning, "set DeadLetteringOnMessageExpiration to true, so that it is seen",
		"drops what nobody has read after %s, without a trace", life)
	f.add(life < keep, Warning, "set DefaultMessageTimeToLive of topic and subscription to 14 days or more",
		"lets messages live for %s; projectors that are away for longer miss changes", life)
	f.add(settings.TombstoneTTL <= life, Fault, "set TOMBSTONE_TTL to more than the time to live",
		"lets messages live for %s, and TOMBSTONE_TTL is %s: an old change may bring a deleted document back", life, settings.TombstoneTTL)
}

func (f *findings) rules(s *Subscription, group string) {
	f.add(!slices.ContainsFunc(s.Rules, func(r Rule) bool { return r.Everything || letsThrough(r.SQL, group) }), Fault,
		fmt.Sprintf("add a rule with a true filter, or with %s, and remove the others", strings.Join(forGroup(group), " OR ")),
		"has no rule that lets through all that is for READMODEL_GROUP %q, so changes are filtered away", group)
	for _, r := range s.Rules {
		f.add(r.Acts, Fault, "remove the rule's action", "has a rule %q with an action, which changes messages or doubles them", r.Name)
	}
}

// forGroup are the conditions of a filter that keeps out only what is sent again for other groups:
// what is for everybody, what is for the group, and what fills a version of the group.
func forGroup(group string) []string {
	const property = "cloudEvents_resendgroup"
	return []string{property + " IS NULL", property + " = '" + group + "'", property + " LIKE '" + group + "/%'"}
}

// letsThrough tells whether a filter is one of these conditions, and no others. Nothing but versions
// is sent again for a group without a name, so the filter may leave that condition out.
func letsThrough(filter, group string) bool {
	wanted, has := forGroup(group), alternatives.Split(filter, -1)
	if group == "" {
		has = append(has, wanted[1])
	}
	return slices.Equal(plain(has), plain(wanted))
}

// plain are conditions in one order, each once, without what means nothing in SQL: spaces, brackets
// and the case of letters, except in values.
func plain(conditions []string) []string {
	all := make([]string, 0, len(conditions))
	for _, c := range conditions {
		what, value, _ := strings.Cut(strings.Trim(c, "() \t\n"), "'")
		all = append(all, strings.ToLower(strings.Join(strings.Fields(what), ""))+"'"+value)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func judgeTopic(t *Topic) []Finding {
	f := &findings{subject: fmt.Sprintf("topic %q", t.Name)}
	f.add(!t.Deduplicates, Warning, "create the topic anew with duplicate detection; it cannot be switched on later",
		"has no duplicate detection: read models pass repeats by, but they cost work")
	f.add(t.Deduplicates && t.Window < window, Warning, "set DuplicateDetectionHistoryTimeWindow to 10m; publisher doctor knows how much is needed",
		"detects duplicates for %s, less than a publisher's takeover may take", t.Window)
	return f.all
}
