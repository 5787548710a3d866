// Package plan computes what a load takes: how many partitions, replicas, connections
// and messaging units, how long an operation log, and what it costs. Every figure that
// it uses was measured here, or is the vendor's, and is named with the result.
//
// It plans with half of what was measured. The measurements are of two busy cores with
// the servers on them; they say what a part does per round trip and event, and little of
// what a cluster carries.
package plan

import (
	"fmt"
	"math"
	"time"
)

// Load is what is to be carried.
type Load struct {
	// Rate is how many events are written a second at the peak.
	Rate float64
	// Aggregates is how many the events of a while are of.
	Aggregates float64
	// Size is that of an event's document in bytes.
	Size float64
	// RoundTrip is that to the servers.
	RoundTrip time.Duration
	// Subscriptions is how many the topic has, each with one rule.
	Subscriptions float64
	// Outage is how long publishers may be down without losing the place.
	Outage time.Duration
	// Sessions is MAX_SESSIONS of a projector.
	Sessions float64
}

// Line is one thing that the load takes.
type Line struct {
	Name, Value string
	// Why says how it was computed, and Sources what from.
	Why     string
	Sources []string
}

// usableCredits is the share of a Standard namespace's credits that is planned with:
// beyond it an outage is not caught up with, and whatever is retried is throttled.
const usableCredits = 0.8

// spare is the share of what was measured that is not planned with.
const spare = 2

// Of computes what a load takes.
func Of(l Load) []Line {
	partitions, replicas := l.partitions(), l.replicas()
	return []Line{
		partitions.line, l.publishers(partitions.count), replicas.line, l.processors(),
		l.connections(partitions.count, replicas.count), l.standard(), l.units(), l.space(), l.log(), l.operations(),
	}
}

// counted is a line whose count others need.
type counted struct {
	count float64
	line  Line
}

// partitions are as many as send the rate: each send waits for the broker, and is of one
// aggregate.
func (l Load) partitions() counted {
	each := math.Min(sessionBatches.value, inUse.value*senders.value/math.Max(l.RoundTrip.Seconds(), 1e-6)) / spare
	n := math.Ceil(l.Rate / each)
	c := counted{n, Line{
		Name: "PARTITIONS", Value: number(n),
		Why: fmt.Sprintf("one sends %s messages a second when each is a send of its own: the less of what a machine does, and %s sends side by side "+
			"at %v, of which %s were in use; halved", number(each), number(senders.value), l.RoundTrip, share(inUse.value)),
		Sources: sources(sessionBatches, senders, inUse),
	}}
	if n > 1 {
		mixed := math.Ceil(l.Rate / (mixedBatches.value * inUseMixed.value / spare))
		c.line.Why += fmt.Sprintf("; with BATCHING=mixed about %s", number(mixed))
		c.line.Sources = append(c.line.Sources, sources(mixedBatches, inUseMixed)...)
	}
	return c
}

func (l Load) publishers(partitions float64) Line {
	return Line{
		Name: "publishers", Value: number(partitions + 1),
		Why:     "one leads each partition, so that each has a machine's processor time, and one stands by",
		Sources: []string{"docs/architecture.md, life of a term"},
	}
}

// replicas are as many projectors as take a session for nearly every event, which is so
// where the aggregates are many.
func (l Load) replicas() counted {
	hold := l.hold()
	each := math.Max(1, l.Rate/l.Aggregates*hold)
	per := math.Min(l.sessionsPerSecond()*each, hotSessions.value) / spare
	n := math.Max(2, math.Ceil(l.Rate/per))
	return counted{n, Line{
		Name: "projectors", Value: number(n),
		Why: fmt.Sprintf("one takes %s sessions a second at %v with MAX_SESSIONS=%s; a session has %.1f events while it is held; halved; two at least",
			number(l.sessionsPerSecond()), l.RoundTrip, number(l.Sessions), each),
		Sources: sources(append(points(), hotSessions)...),
	}}
}

// hold is how long a session is held, in seconds.
func (l Load) hold() float64 { return measuredSessions / l.measured() }

// sessionsPerSecond is how many one projector takes, by what was measured with 64 at
// once: more at once wait side by side, until the processor time of one machine is used.
func (l Load) sessionsPerSecond() float64 {
	return math.Min(l.measured()*l.Sessions/measuredSessions, near().value)
}

// measured is what one projector took with 64 sessions at once, between the points that
// were measured.
func (l Load) measured() float64 {
	at, all := l.RoundTrip.Seconds()*1000, taking
	for i := 1; i < len(all); i++ {
		if at <= all[i].at {
			part := (at - all[i-1].at) / (all[i].at - all[i-1].at)
			return all[i-1].value + part*(all[i].value-all[i-1].value)
		}
	}
	farthest := all[len(all)-1]
	return farthest.value * farthest.at / at
}

func (l Load) processors() Line {
	publisher, projector := l.Rate*publisherTime.value/1e6, l.Rate*projectorTime.value/1e6
	return Line{
		Name: "processors", Value: fmt.Sprintf("%.1f for the publishers, %.1f for the projectors", publisher*spare, projector*spare),
		Why: fmt.Sprintf("%s µs and %s µs an event, the projector's where nearly every event is a session of its own, which is the dearest; doubled",
			number(publisherTime.value), number(projectorTime.value)),
		Sources: sources(publisherTime, projectorTime),
	}
}

func (l Load) connections(partitions, replicas float64) Line {
	bus := partitions*publisherLinks.value + replicas*(math.Ceil(l.Sessions/connectionSessions.value)+1)
	return Line{
		Name: "Service Bus connections", Value: fmt.Sprintf("%s of %s", number(bus), number(busConnections.value)),
		Why:     "one for each partition that is led; one for every 256 of MAX_SESSIONS of a projector, and one for its count of sessions",
		Sources: sources(publisherLinks, connectionSessions, busConnections),
	}
}

// credits is what one event takes of a Standard namespace.
func (l Load) credits() float64 {
	return sendCredits.value + l.Subscriptions*(ruleCredits.value+receiveCredits.value)
}

func (l Load) standard() Line {
	each := l.credits()
	most := standardCredits.value / each
	line := Line{
		Name: "Standard tier", Value: fmt.Sprintf("%s of %s credits a second", number(each*l.Rate), number(standardCredits.value)),
		Why: fmt.Sprintf("%s credits an event: one to send, and for each of %s subscriptions one for its rule and one to receive; it carries %s events a second at most",
			number(each), number(l.Subscriptions), number(most)),
		Sources: sources(standardCredits, sendCredits, ruleCredits, receiveCredits),
	}
	switch {
	case l.Rate > most:
		line.Value += ": not enough"
	case l.Rate > most*usableCredits:
		line.Value += fmt.Sprintf(": too near the limit, plan with %s", share(usableCredits))
	}
	if l.message() > standardMessage.value {
		line.Value += ": messages are too large"
		line.Sources = append(line.Sources, standardMessage.source)
	}
	return line
}

// message is what an event weighs on the wire.
func (l Load) message() float64 { return l.Size + properties.value }

func (l Load) units() Line {
	byCount := l.Rate * l.Subscriptions / unitMessages.value
	out := l.Rate * l.message() * l.Subscriptions
	byBytes := math.Max(l.Rate*l.message(), out) / unitBytes.value
	needed := math.Max(byCount, byBytes)
	units := 1.0
	for units < needed && units < mostUnits.value {
		units *= 2
	}
	line := Line{
		Name: "Premium messaging units", Value: number(units),
		Why: fmt.Sprintf("%.1f by messages, %.1f by bytes each way; the vendor's benchmark has no sessions and no duplicate detection, which take more: begin with that and look at the CPU of the namespace",
			byCount, byBytes),
		Sources: sources(unitMessages, unitBytes, mostUnits),
	}
	if needed > units {
		line.Value = fmt.Sprintf("more than %s: share the aggregates out over several namespaces", number(units))
	}
	return line
}

// space is how long projectors may be down until the topic is full.
func (l Load) space() Line {
	full := func(bytes float64) time.Duration {
		return time.Duration(bytes / (l.Rate * l.message() * l.Subscriptions) * float64(time.Second)).Round(time.Minute)
	}
	return Line{
		Name: "topic is full", Value: fmt.Sprintf("%v after projectors stop at the peak; %v in Premium", full(topicBytes.value), full(premiumBytes.value)),
		Why: fmt.Sprintf("%s a message and subscription, a topic of %s, and of %s in Premium; then publishers wait, and the operation log has to last",
			size(l.message()), size(topicBytes.value), size(premiumBytes.value)),
		Sources: sources(topicBytes, premiumBytes, properties),
	}
}

func (l Load) log() Line {
	each := l.Size + logEntry.value
	return Line{
		Name: "operation log of the source", Value: size(l.Rate * each * l.Outage.Seconds()),
		Why: fmt.Sprintf("%s an insert for %v at the peak: the document and an entry's own fields, estimated; other writes of the cluster come on top; set minRetentionHours as well",
			size(each), l.Outage),
		Sources: sources(logEntry),
	}
}

func (l Load) operations() Line {
	const month = 30 * 24 * 3600
	return Line{
		Name: "what is paid for", Value: fmt.Sprintf("%s million operations a month at this rate all the time", number(l.Rate*(1+l.Subscriptions)*month/1e6)),
		Why:     "Standard bills each send and each receive; Premium messaging units by the hour; beside that MongoDB's storage and writes, one read document a projection and session, and traffic between zones",
		Sources: []string{"https://azure.microsoft.com/pricing/details/service-bus/"},
	}
}
