// Package doctor says what is wrong with the entities that a publisher works
// with, and what to do about it. It is pure: it judges facts that were read
// elsewhere, with an operator's rights.
package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Finding is one thing that is wrong.
type Finding struct {
	// Subject is what it is about: topic, subscription, source, state, user or clock.
	Subject  string   `json:"subject"`
	Severity Severity `json:"severity"`
	Problem  string   `json:"problem"`
	Fix      string   `json:"fix"`
}

// Severity says how bad a finding is.
type Severity string

// A Fault keeps the publisher from its promises, or from working at all; a
// Warning is what may come to that, or costs something.
const (
	Fault   Severity = "fault"
	Warning Severity = "warning"
)

// findings gathers what is wrong with one subject.
type findings struct {
	subject string
	all     []Finding
}

// add notes what is wrong, if it is.
func (f *findings) add(wrong bool, severity Severity, problem, fix string) {
	if wrong {
		f.all = append(f.all, Finding{f.subject, severity, problem, fix})
	}
}

// Settings are those of the publisher that the entities must fit.
type Settings struct {
	// Takeover is the longest time between two sends of one message that follow
	// from one crash.
	Takeover time.Duration
	// Mixed says that a send mixes sessions.
	Mixed bool
	// Images says that changes must show the documents before them.
	Images bool
	// CompressAbove is the size in bytes above which a body is compressed; 0 is never.
	CompressAbove int
}

// Topic is what is known of the topic.
type Topic struct {
	Name         string
	Active       bool
	Deduplicates bool
	Window       time.Duration
	Partitioned  bool
	TimeToLive   time.Duration
	Bytes        int64
	MaxBytes     int64
	// MaxMessage is the largest message in bytes that a link takes; 0 is unknown.
	MaxMessage    int64
	Subscriptions []Subscription
}

// Subscription is what is known of one subscription.
type Subscription struct {
	Name             string
	Active           bool
	RequiresSession  bool
	TimeToLive       time.Duration
	DeadLettersStale bool
}

const (
	// keep is the least time that messages should live, unread: an outage of the
	// projectors over a long weekend.
	keep = 4 * 24 * time.Hour
	// history is the least time that the operation log should reach back.
	history = 24 * time.Hour
	// clockSkew is how far clocks may be apart.
	clockSkew = 10 * time.Second
	// slowMajority is how long a majority takes at least that is told of.
	slowMajority = time.Second
	// fullAbove is the part of the topic's quota above which it counts as filling up.
	fullAbove = 0.8
)

// mendLag is what to do about a majority that is behind.
const mendLag = "look at rs.printSecondaryReplicationInfo() and rs.status(): bring a member back that is down, and mend or replace the one that lags"

// JudgeTopic judges the topic and its subscriptions.
func JudgeTopic(t Topic, s Settings) []Finding {
	f := &findings{subject: fmt.Sprintf("topic %q", t.Name)}
	f.add(!t.Active, Fault, "is not active, so nothing can be sent", "set its status to Active")
	f.add(!t.Deduplicates, Fault, "has no duplicate detection: what is sent again after a crash reaches every subscription twice",
		"create the topic anew with duplicate detection; it cannot be switched on later")
	f.add(t.Deduplicates && t.Window < s.Takeover, Fault,
		fmt.Sprintf("detects duplicates for %s, but a crash may repeat a message after %s", t.Window, s.Takeover),
		fmt.Sprintf("set DuplicateDetectionHistoryTimeWindow to %s or more", max(10*time.Minute, 2*s.Takeover)))
	f.add(t.MaxMessage > 0 && (s.CompressAbove == 0 || int64(s.CompressAbove) > t.MaxMessage), Warning,
		fmt.Sprintf("takes messages of %d bytes at most, and larger ones are parked without a try to compress them", t.MaxMessage),
		fmt.Sprintf("set COMPRESS_ABOVE to %d or less", min(t.MaxMessage/2, 64<<10)))
	f.add(t.Partitioned && s.Mixed, Fault, "is partitioned, and refuses a batch of several sessions", "set BATCHING=session")
	f.add(t.TimeToLive < keep, Warning, fmt.Sprintf("drops messages after %s, read or not", t.TimeToLive), "set DefaultMessageTimeToLive to 14 days or more")
	f.add(t.MaxBytes > 0 && float64(t.Bytes) > fullAbove*float64(t.MaxBytes), Warning,
		fmt.Sprintf("holds %d of %d bytes; when it is full nothing can be sent", t.Bytes, t.MaxBytes),
		"look which subscription is not read, and empty its dead-letter queue, or raise the topic's size")
	f.add(!slices.ContainsFunc(t.Subscriptions, func(s Subscription) bool { return s.RequiresSession }), Fault,
		"has no subscription with sessions, so nobody can read an aggregate in order", "create the projector's subscription with RequiresSession=true; it cannot be switched on later")
	for _, subscription := range t.Subscriptions {
		f.all = append(f.all, judgeSubscription(subscription)...)
	}
	return f.all
}

func judgeSubscription(s Subscription) []Finding {
	f := &findings{subject: fmt.Sprintf("subscription %q", s.Name)}
	f.add(!s.Active, Fault, "is not active: it takes messages in, or gives none out", "set its status to Active")
	f.add(s.RequiresSession && s.TimeToLive < keep && !s.DeadLettersStale, Fault,
		fmt.Sprintf("drops messages after %s without a trace", s.TimeToLive),
		"set DefaultMessageTimeToLive to 14 days or more, and DeadLetteringOnMessageExpiration to true")
	return f.all
}

// Source is what is known of the source.
type Source struct {
	Name string
	// History is how far the operation log reaches back; HistoryKnown is false
	// where the role may not read it.
	History      time.Duration
	HistoryKnown bool
	// HistoryUncut says that nothing was removed from it yet: the source is young.
	HistoryUncut bool
	// Refusal is why the change stream could not be opened; empty when it could.
	Refusal string
	// Lag is how long a majority takes until it has a write.
	Lag time.Duration
	// WithoutImages are the collections that keep no pre-images.
	WithoutImages []string
	// Emptied says that no event would have a payload; empty where some would.
	Emptied string
}

// JudgeSource judges the source.
func JudgeSource(src Source, s Settings) []Finding {
	f := &findings{subject: fmt.Sprintf("source %q", src.Name)}
	f.add(src.Refusal != "", Fault, "does not open the change stream: "+src.Refusal, "grant find and changeStream on it, and check SOURCE_FILTER and FULL_DOCUMENT")
	f.add(!src.HistoryKnown, Warning, "does not let the role read the operation log, so nobody sees how much time an outage may take",
		"grant find on local.oplog.rs")
	f.add(src.HistoryKnown && !src.HistoryUncut && src.History < history, Warning,
		fmt.Sprintf("keeps %s of changes; a publisher that is down for longer loses its place", src.History.Round(time.Minute)),
		"raise the size of the operation log (replSetResizeOplog), or its storage.oplogMinRetentionHours")
	f.add(src.Lag >= slowMajority, Warning,
		fmt.Sprintf("has a majority that takes %s or longer until it has a write: changes are published as much later", seconds(src.Lag)), mendLag)
	f.add(s.Images && len(src.WithoutImages) > 0, Fault,
		fmt.Sprintf("keeps no pre-images in %q, which FULL_DOCUMENT_BEFORE_CHANGE requires", src.WithoutImages),
		"run collMod with changeStreamPreAndPostImages: {enabled: true} on them")
	f.add(src.Emptied != "", Warning, src.Emptied, "set FIELD_DATA to the path of the payload, or to - for the whole event")
	return f.all
}

// Copy is what is known of how the source would be copied.
type Copy struct {
	Database, Collection string
	// Order is the fields that a copy goes along; Served says that an index has it.
	Order  []string
	Served bool
	// Refusal is why that could not be asked; empty when it could.
	Refusal string
}

// JudgeCopy judges what a copy or a resend of the source would cost.
func JudgeCopy(c Copy) []Finding {
	f := &findings{subject: fmt.Sprintf("copy or resend of %q", c.Database+"."+c.Collection)}
	f.add(c.Refusal != "", Warning, "cannot be examined: "+c.Refusal, "grant find on it")
	keys := make([]string, len(c.Order))
	for i, field := range c.Order {
		keys[i] = fmt.Sprintf("%q: 1", field)
	}
	f.add(c.Refusal == "" && !c.Served, Warning,
		"has no index that serves it: a copy goes through the whole collection once for each 100,000 documents, a resend once for each 500, which must take less than 45 s, and sorts their keys; "+
			"projector verify and projector rebuild have it gone through once for each 100 aggregates",
		fmt.Sprintf("run db.getSiblingDB(%q).getCollection(%q).createIndex({%s}); where no two documents have the same values, a unique index without _id serves it, too. "+
			"None serves it while a document has an array in one of the fields", c.Database, c.Collection, strings.Join(keys, ", ")))
	return f.all
}

// State is what is known of the state database.
type State struct {
	Name string
	// Refusal is why it could not be used; empty when it could.
	Refusal string
	// Missing are the indexes that are not there.
	Missing []string
	// Lost says of parked changes that they are gone, and what to do.
	Lost []string
	// Lag is how long a majority takes until it has a write, and LeaseLag how long it may
	// take where a lease is to be kept.
	Lag, LeaseLag time.Duration
}

// JudgeState judges the state database.
func JudgeState(st State) []Finding {
	f := &findings{subject: fmt.Sprintf("state database %q", st.Name)}
	f.add(st.Refusal != "", Fault, "cannot be used: "+st.Refusal, "grant find, insert, update and changeStream on it")
	f.add(len(st.Missing) > 0, Warning, fmt.Sprintf("lacks indexes on %q, so it is not tidied", st.Missing), "run publisher setup with a role that may create indexes")
	f.add(st.Lag >= st.LeaseLag && st.LeaseLag > 0, Fault,
		fmt.Sprintf("has a majority that takes %s or longer until it has a write, and a lease is kept only below %s: nobody leads", seconds(st.LeaseLag), seconds(st.LeaseLag)),
		mendLag+"; where it is so by nature, raise LEASE_TTL, LEASE_RENEW_DEADLINE and LEASE_HEARTBEAT together")
	f.add(st.Lag >= slowMajority && st.Lag < st.LeaseLag, Warning,
		fmt.Sprintf("has a majority that takes %s until it has a write: checkpoints and takeovers take as long, several times", seconds(st.Lag)), mendLag)
	for _, lost := range st.Lost {
		problem, fix, _ := strings.Cut(lost, ": ")
		f.add(true, Fault, "lacks "+problem, fix)
	}
	return f.all
}

// seconds is a time to a tenth of a second.
func seconds(d time.Duration) time.Duration { return d.Round(time.Second / 10) }

// JudgeClock judges how far this machine's clock is ahead of the source's. No
// lease depends on it.
func JudgeClock(ahead time.Duration) []Finding {
	f := &findings{subject: "clock"}
	f.add(ahead.Abs() > clockSkew, Warning,
		fmt.Sprintf("differs from the source's by %s: the lag is shown wrong by as much, and above 5m the topic may refuse tokens", ahead.Round(time.Second)),
		"synchronise the clocks of this machine and of the database")
	return f.all
}

// units of an ISO 8601 duration in days, hours, minutes and seconds.
var isoDuration = regexp.MustCompile(`^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.\d+)?S)?)?$`)

// Duration reads a duration as the service writes it, such as P14D or PT10M.
// What cannot be read, or is longer than a Duration, is endless.
func Duration(text string) time.Duration {
	const endless = time.Duration(1<<63 - 1)
	parts := isoDuration.FindStringSubmatch(text)
	if parts == nil {
		return endless
	}
	var total time.Duration
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if parts[i+1] == "" {
			continue
		}
		n, err := strconv.ParseInt(parts[i+1], 10, 64)
		if err != nil || n > int64((endless-total)/unit) {
			return endless
		}
		total += time.Duration(n) * unit
	}
	return total
}
