// Package doctor says what is wrong with the entities that a publisher works
// with, and what to do about it. It is pure: it judges facts that were read
// elsewhere, with an operator's rights.
package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Finding is one thing that is wrong.
type Finding struct {
	// Subject is what it is about: topic, subscription, source or state.
	Subject string `json:"subject"`
	Problem string `json:"problem"`
	Fix     string `json:"fix"`
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
}

// Topic is what is known of the topic.
type Topic struct {
	Name          string
	Active        bool
	Deduplicates  bool
	Window        time.Duration
	Partitioned   bool
	TimeToLive    time.Duration
	Bytes         int64
	MaxBytes      int64
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
	// fullAbove is the part of the topic's quota above which it counts as filling up.
	fullAbove = 0.8
)

// JudgeTopic judges the topic and its subscriptions.
func JudgeTopic(t Topic, s Settings) []Finding {
	var found []Finding
	add := func(wrong bool, problem, fix string) {
		if wrong {
			found = append(found, Finding{Subject: fmt.Sprintf("topic %q", t.Name), Problem: problem, Fix: fix})
		}
	}
	add(!t.Active, "is not active, so nothing can be sent", "set its status to Active")
	add(!t.Deduplicates, "has no duplicate detection: what is sent again after a crash reaches every subscription twice",
		"create the topic anew with duplicate detection; it can not be switched on later")
	add(t.Deduplicates && t.Window < s.Takeover,
		fmt.Sprintf("detects duplicates for %s, but a crash may repeat a message after %s", t.Window, s.Takeover),
		fmt.Sprintf("set DuplicateDetectionHistoryTimeWindow to %s or more", max(10*time.Minute, 2*s.Takeover)))
	add(t.Partitioned && s.Mixed, "is partitioned, and refuses a batch of several sessions", "set BATCHING=session")
	add(t.TimeToLive < keep, fmt.Sprintf("drops messages after %s, read or not", t.TimeToLive), "set DefaultMessageTimeToLive to 14 days or more")
	add(t.MaxBytes > 0 && float64(t.Bytes) > fullAbove*float64(t.MaxBytes),
		fmt.Sprintf("holds %d of %d bytes; when it is full nothing can be sent", t.Bytes, t.MaxBytes),
		"look which subscription is not read, and empty its dead-letter queue, or raise the topic's size")
	add(!slices.ContainsFunc(t.Subscriptions, func(s Subscription) bool { return s.RequiresSession }),
		"has no subscription with sessions, so nobody can read an aggregate in order", "create the projector's subscription with RequiresSession=true; it can not be switched on later")
	for _, subscription := range t.Subscriptions {
		found = append(found, judgeSubscription(subscription)...)
	}
	return found
}

func judgeSubscription(s Subscription) []Finding {
	var found []Finding
	add := func(wrong bool, problem, fix string) {
		if wrong {
			found = append(found, Finding{Subject: fmt.Sprintf("subscription %q", s.Name), Problem: problem, Fix: fix})
		}
	}
	add(!s.Active, "is not active: it takes messages in, or gives none out", "set its status to Active")
	add(s.RequiresSession && s.TimeToLive < keep && !s.DeadLettersStale,
		fmt.Sprintf("drops messages after %s without a trace", s.TimeToLive),
		"set DefaultMessageTimeToLive to 14 days or more, and DeadLetteringOnMessageExpiration to true")
	return found
}

// Source is what is known of the source.
type Source struct {
	Name string
	// History is how far the operation log reaches back; HistoryKnown is false
	// where the role may not read it.
	History      time.Duration
	HistoryKnown bool
	// Refusal is why the change stream could not be opened; empty when it could.
	Refusal string
	// WithoutImages are the collections that keep no pre-images.
	WithoutImages []string
}

// JudgeSource judges the source.
func JudgeSource(src Source, s Settings) []Finding {
	var found []Finding
	add := func(wrong bool, problem, fix string) {
		if wrong {
			found = append(found, Finding{Subject: fmt.Sprintf("source %q", src.Name), Problem: problem, Fix: fix})
		}
	}
	add(src.Refusal != "", "does not open the change stream: "+src.Refusal, "grant find and changeStream on it, and check SOURCE_FILTER and FULL_DOCUMENT")
	add(!src.HistoryKnown, "does not let the role read the operation log, so nobody sees how much time an outage may take",
		"grant find on local.oplog.rs")
	add(src.HistoryKnown && src.History < history,
		fmt.Sprintf("keeps %s of changes; a publisher that is down for longer loses its place", src.History.Round(time.Minute)),
		"raise the size of the operation log (replSetResizeOplog), or its storage.oplogMinRetentionHours")
	add(s.Images && len(src.WithoutImages) > 0,
		fmt.Sprintf("keeps no pre-images in %q, which FULL_DOCUMENT_BEFORE_CHANGE requires", src.WithoutImages),
		"run collMod with changeStreamPreAndPostImages: {enabled: true} on them")
	return found
}

// State is what is known of the state database.
type State struct {
	Name string
	// Refusal is why it could not be used; empty when it could.
	Refusal string
	// Missing are the indexes that are not there.
	Missing []string
}

// JudgeState judges the state database.
func JudgeState(st State) []Finding {
	var found []Finding
	subject := fmt.Sprintf("state database %q", st.Name)
	if st.Refusal != "" {
		found = append(found, Finding{subject, "can not be used: " + st.Refusal, "grant find, insert, update and changeStream on it"})
	}
	if len(st.Missing) > 0 {
		found = append(found, Finding{subject, fmt.Sprintf("lacks indexes on %q, so it is not tidied", st.Missing), "run publisher setup with a role that may create indexes"})
	}
	return found
}

// units of an ISO 8601 duration in days, hours, minutes and seconds.
var isoDuration = regexp.MustCompile(`^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.\d+)?S)?)?$`)

// Duration reads a duration as the service writes it, such as P14D or PT10M.
// What can not be read, or is longer than a Duration, is endless.
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
