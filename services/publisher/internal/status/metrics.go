package status

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/relay"
)

// NewSendSeconds observes how long sends take.
func NewSendSeconds() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "publisher_send_seconds",
		Help:    "Time of one send to the topic, whatever became of it.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
	})
}

// BuildInfo says which version runs.
// buildInfo says which version this is.
func BuildInfo(version string) prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "publisher_build_info",
		Help:        "Always 1; the label says which version this is.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	info.Set(1)
	return info
}

// metrics reads the tracker whenever it is scraped, so that there is one set of
// figures and not two.
type metrics struct{ *Tracker }

// Collector returns the metrics of a tracker.
func Collector(b *Tracker) prometheus.Collector { return metrics{b} }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("publisher_"+name, help, labels, nil)
}

// Descriptions of the metrics.
var (
	readDesc        = describe("changes_read_total", "Changes read from the stream.")
	passedDesc      = describe("changes_passed_total", "Changes that carry no event, by the mapping's rule.")
	parkedDesc      = describe("changes_parked_total", "Changes parked because they could not be sent.")
	parkedNowDesc   = describe("parked", "Changes of the stream that are parked, as known to the leader.")
	sentDesc        = describe("messages_sent_total", "Messages that the topic accepted.")
	resentDesc      = describe("messages_resent_total", "Messages that the topic accepted and that were sent again, for a resend.")
	unresentDesc    = describe("resend_failures_total", "Changes that were to be sent again for a resend, and cannot be.")
	sendsDesc       = describe("sends_total", "Sends made, of one or more messages, whatever became of them.")
	retriesDesc     = describe("send_retries_total", "Sends that failed and were made again.")
	failuresDesc    = describe("send_failures_total", "Sends that failed, by class; throttled ones are refused for being too many.", "class")
	paceDesc        = describe("pace_messages_per_second", "How many messages are sent in a second at most, since the topic has refused more; absent while there is no such bound.")
	inFlightDesc    = describe("in_flight", "Changes read and not finished.")
	bytesDesc       = describe("in_flight_bytes", "Bytes of changes read and not finished.")
	leaderDesc      = describe("leader", "1 while this instance leads.")
	termDesc        = describe("term", "Term of the leader; absent on a standby.")
	takeoversDesc   = describe("lease_takeovers_total", "How often this instance took the lease.")
	renewDesc       = describe("lease_renew_failures_total", "Renewals of the lease that failed.")
	releaseDesc     = describe("lease_release_failures_total", "Releases of the lease that failed.")
	reopenedDesc    = describe("stream_reopened_total", "How often the change stream was opened again in this term.")
	checkpointDesc  = describe("checkpoint_age_seconds", "Time since the last save of the checkpoint; absent before the first.")
	lagDesc         = describe("lag_seconds", "How far publishing is behind, by the time up to which the source says that all is published; absent until known, up to 10 when idle.")
	claimingDesc    = describe("claiming_seconds", "How long this instance has led without publishing; absent while it publishes, and on a standby.")
	resumingDesc    = describe("resuming_seconds", "How long the source has looked for the place to go on from; absent otherwise.")
	unreadDesc      = describe("source_unread_seconds", "How long nothing could be read from the source; absent while it answers, and while nobody asks it.")
	unsavedDesc     = describe("unsaved_seconds", "How long the state database has not stored a checkpoint or a change to be parked; absent while it does.")
	outageDesc      = describe("outage_seconds", "How long sending has failed, by class; absent while it works.", "class")
	haltedDesc      = describe("halted", "1 while publishing waits for an operator, by reason.", "reason")
	gapsDesc        = describe("gaps", "Gaps in the stream's history that are in the ledger, by decision.", "decision")
	copiedDesc      = describe("copied_documents", "Documents copied by the copy under way; absent while there is none.")
	copyTotalDesc   = describe("copy_documents", "Documents that there were when the copy under way began, an estimate; absent while there is none, and where that is not known.")
	copyLeftDesc    = describe("copy_seconds_left", "How long the copy under way will take, an estimate; absent while there is none, and where that is not known.")
	headroomDesc    = describe("oplog_headroom_seconds", "How far the stream's place is ahead of the oldest entry of the source's operation log; absent where the role may not read it.")
	allDescriptions = []*prometheus.Desc{
		readDesc, passedDesc, parkedDesc, parkedNowDesc, sentDesc, resentDesc, unresentDesc, sendsDesc, retriesDesc, failuresDesc, paceDesc, inFlightDesc, bytesDesc,
		leaderDesc, termDesc, takeoversDesc, renewDesc, releaseDesc, reopenedDesc, checkpointDesc, lagDesc, outageDesc, haltedDesc,
		claimingDesc, resumingDesc, unreadDesc, unsavedDesc, gapsDesc, copiedDesc, copyTotalDesc, copyLeftDesc, headroomDesc,
	}
)

// Describe implements prometheus.Collector.
func (m metrics) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range allDescriptions {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (m metrics) Collect(to chan<- prometheus.Metric) {
	s := m.snapshot()
	emit := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, kind, value, labels...)
	}
	for desc, count := range map[*prometheus.Desc]int64{
		readDesc:      m.counters.Read(),
		passedDesc:    m.counters.Passed(),
		parkedDesc:    m.counters.Parked(),
		sentDesc:      m.counters.Sent(),
		resentDesc:    m.counters.Resent(),
		unresentDesc:  m.counters.Unresent(),
		sendsDesc:     m.counters.Sends(),
		retriesDesc:   m.counters.Retries(),
		takeoversDesc: s.election.Takeovers,
		renewDesc:     s.election.RenewFailures,
		releaseDesc:   s.election.ReleaseFailures,
		reopenedDesc:  s.reopened,
	} {
		emit(desc, prometheus.CounterValue, float64(count))
	}
	for _, class := range relay.Classes() {
		emit(failuresDesc, prometheus.CounterValue, float64(m.counters.Failed(class)), class.String())
	}
	if s.relay.Pace > 0 {
		emit(paceDesc, prometheus.GaugeValue, s.relay.Pace)
	}
	emit(inFlightDesc, prometheus.GaugeValue, float64(s.relay.InFlight))
	emit(bytesDesc, prometheus.GaugeValue, float64(s.relay.InFlightBytes))
	leads := 0.0
	if s.election.Role == lease.Leader {
		leads = 1
	}
	emit(leaderDesc, prometheus.GaugeValue, leads)
	if s.term != 0 {
		emit(termDesc, prometheus.GaugeValue, float64(s.term))
		emit(parkedNowDesc, prometheus.GaugeValue, float64(s.parked))
	}
	if at := m.counters.CheckpointAt(); !at.IsZero() {
		emit(checkpointDesc, prometheus.GaugeValue, time.Since(at).Seconds())
	}
	if s.lagKnown {
		emit(lagDesc, prometheus.GaugeValue, s.lag.Seconds())
	}
	if s.outage.Err != nil {
		emit(outageDesc, prometheus.GaugeValue, time.Since(s.outage.Since).Seconds(), s.outage.Class.String())
	}
	for desc, since := range map[*prometheus.Desc]time.Time{claimingDesc: s.claiming, resumingDesc: s.resuming, unreadDesc: s.unread, unsavedDesc: s.unsaved} {
		if !since.IsZero() {
			emit(desc, prometheus.GaugeValue, time.Since(since).Seconds())
		}
	}
	m.collectHistory(s, emit)
	if s.halted != nil {
		emit(haltedDesc, prometheus.GaugeValue, 1, HaltReason(s.halted))
	}
}

// collectHistory emits what is known of the stream's past.
func (m metrics) collectHistory(s snapshot, emit func(*prometheus.Desc, prometheus.ValueType, float64, ...string)) {
	for decision, count := range s.gapCount {
		emit(gapsDesc, prometheus.GaugeValue, float64(count), decision)
	}
	if s.copied != nil {
		emit(copiedDesc, prometheus.GaugeValue, float64(s.copied.Copied))
		if s.copied.Total > 0 {
			emit(copyTotalDesc, prometheus.GaugeValue, float64(s.copied.Total))
		}
		if s.copied.SecondsLeft != nil {
			emit(copyLeftDesc, prometheus.GaugeValue, *s.copied.SecondsLeft)
		}
	}
	if s.headroomKnown {
		emit(headroomDesc, prometheus.GaugeValue, s.headroom.Seconds())
	}
}

// HaltReason is a short reason for a label.
func HaltReason(err error) string {
	if halt, ok := errors.AsType[*changestream.HaltError](err); ok {
		return string(halt.Reason)
	}
	if _, ok := errors.AsType[*relay.UnsendableError](err); ok {
		return "change cannot be sent"
	}
	if _, ok := errors.AsType[*relay.OverparkedError](err); ok {
		return "too many changes parked"
	}
	return "unknown"
}
