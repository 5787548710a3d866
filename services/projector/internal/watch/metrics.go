// Package watch keeps an eye on what the projector does and on what waits around it
// (dead letters, parked messages, decisions that were begun, sessions), for metrics,
// /status and /wait. It puts back halts that were lost, and changes nothing else.
package watch

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/session"
)

// Metrics are what /metrics shows besides the counts of engine and delivery,
// and the last lag, which /status shows too.
type Metrics struct {
	// Progress is that of each projection.
	*Progress
	Registry     *prometheus.Registry
	stored       prometheus.Histogram
	storedWrites prometheus.Histogram
	eventAge     prometheus.Histogram
	writeToRead  prometheus.Histogram
	lag          lag
	// TransactionsEnded counts those of dead processes, WentBack how often the read
	// database was found restored from before.
	TransactionsEnded, WentBack atomic.Int64
}

var _ delivery.Observer = (*Metrics)(nil)

// NewMetrics returns the metrics of a projector that has done nothing yet.
func NewMetrics(progress *Progress) *Metrics {
	latencies := []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	ages := []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200}
	m := &Metrics{
		Progress: progress,
		Registry: prometheus.NewRegistry(),
		stored: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "projector_apply_seconds", Help: "Time to store the writes of one batch.", Buckets: latencies,
		}),
		storedWrites: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "projector_apply_writes", Help: "Writes in one batch.", Buckets: []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000},
		}),
		eventAge: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "projector_event_to_readable_seconds", Help: "Time from an event's own time until it is readable.", Buckets: ages,
		}),
		writeToRead: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "projector_write_to_readable_seconds", Help: "Time from the cluster time of a change, in whole seconds, until it is readable.", Buckets: ages,
		}),
	}
	m.Registry.MustRegister(m.stored, m.storedWrites, m.eventAge, m.writeToRead,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// BuildInfo says which version runs.
func BuildInfo(version string) prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "projector_build_info",
		Help:        "Always 1; the label says which version this is.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	info.Set(1)
	return info
}

// Stored implements delivery.Observer.
func (m *Metrics) Stored(writes int, took time.Duration) {
	m.stored.Observe(took.Seconds())
	m.storedWrites.Observe(float64(writes))
}

// Readable implements delivery.Observer.
func (m *Metrics) Readable(e *contract.Event) {
	now := time.Now()
	if seconds, _, err := e.Position.ClusterTime(); err == nil {
		m.writeToRead.Observe(now.Sub(time.Unix(int64(seconds), 0)).Seconds())
	}
	if !e.Time.IsZero() {
		m.eventAge.Observe(now.Sub(e.Time).Seconds())
	}
	// What is sent again is old, and says nothing of how long it takes.
	if at, known := changedAt(e); known && e.Resend == (contract.Resend{}) {
		m.lag.note(now, now.Sub(at))
	}
}

// CurrentLag is how far the read model is behind; false until known.
func (m *Metrics) CurrentLag(engine Engine) (time.Duration, bool) {
	return m.lag.current(engine)
}

// Watch registers the counts of engine, handler and halts.
func (m *Metrics) Watch(engine *session.Engine, store *readmodel.Store, handler *delivery.Handler, halts *delivery.Halts, waiting *Waiting, brake *delivery.Brake, parked *ParkedWatch) {
	e, d := engine.Counts(), handler.Counts()
	for _, c := range []struct {
		name, help string
		labels     prometheus.Labels
		value      *atomic.Int64
	}{
		{"projector_received_total", "Messages received.", nil, &e.Received},
		{"projector_settled_total", "Messages settled.", prometheus.Labels{"as": "completed"}, &e.Completed},
		{"projector_settled_total", "Messages settled.", prometheus.Labels{"as": "dead_lettered"}, &e.DeadLettered},
		{"projector_settles_failed_total", "Settlements without a good answer; the messages come again.", nil, &e.SettlesFailed},
		{"projector_settles_throttled_total", "Settlements that the service asked to try again later, and that were waited out.", nil, &e.SettlesThrottled},
		{"projector_applied_total", "Messages whose writes were stored.", nil, &d.Applied},
		{"projector_repeated_total", "Messages whose writes had been stored before.", nil, &d.Repeated},
		{"projector_passed_by_total", "Messages that no projection follows.", nil, &d.PassedBy},
		{"projector_parked_total", "Messages parked.", nil, &d.Parked},
		{"projector_discarded_total", "Messages that came again after an operator had discarded their events.", nil, &d.Discarded},
		{"projector_skipped_total", "Events that projections could not apply and that were skipped by their policies (onError), for each projection.", nil, &d.Skipped},
		{"projector_skipped_dead_lettered_total", "Events that were skipped and whose messages were dead-lettered (onError: deadletter).", nil, &d.DeadLettered},
		{"projector_refused_total", "Messages dead-lettered: of no aggregate, or too large to be parked.", nil, &d.Refused},
		{"projector_halts_total", "Aggregates halted by this process.", nil, &d.Halts},
		{"projector_halts_put_back_total", "Halts that were gone, alone or with what was parked under them, and are put back.", nil, &parked.PutBack},
		{"projector_version_gaps_total", "Versions missing between consecutive events of an aggregate.", nil, &d.VersionGaps},
		{"projector_transactions_ended_total", "Transactions of dead projectors that were in the way of this one's writes, and were ended.", nil, &m.TransactionsEnded},
		{"projector_read_database_went_back_total", "Times that the read database lacked what this process had noted in it: it was restored from before.", nil, &m.WentBack},
		{"projector_accepts_total", "Accepts by result.", prometheus.Labels{"result": "session"}, &e.Accepted},
		{"projector_accepts_total", "Accepts by result.", prometheus.Labels{"result": "none"}, &e.AcceptedNone},
		{"projector_accepts_total", "Accepts by result.", prometheus.Labels{"result": "unanswered"}, &e.AcceptsUnanswered},
		{"projector_accepts_total", "Accepts by result.", prometheus.Labels{"result": "failed"}, &e.AcceptsFailed},
		{"projector_accepts_total", "Accepts by result.", prometheus.Labels{"result": "hung"}, &e.AcceptsHung},
		{"projector_accepts_total", "Accepts by result.", prometheus.Labels{"result": "late"}, &e.AcceptedLate},
		{"projector_apply_retries_total", "Batches tried again.", nil, &e.Retries},
		{"projector_sessions_given_back_total", "Sessions given back with messages not settled.", nil, &e.GivenBack},
		{"projector_sessions_without_message_total", "Sessions that were granted, and of which no message came in time.", nil, &e.HeldNothing},
		{"projector_locks_lost_total", "Sessions dropped because of their lock.", nil, &e.LocksLost},
		{"projector_inversions_total", "Sessions given back because messages were out of order.", nil, &e.Inversions},
	} {
		m.Registry.MustRegister(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: c.name, Help: c.help, ConstLabels: c.labels},
			func() float64 { return float64(c.value.Load()) }))
	}
	m.Registry.MustRegister(
		m.Collector(engine),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "projector_sessions_held", Help: "Sessions held."},
			func() float64 { return float64(e.Held.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "projector_in_flight_bytes", Help: "Bytes of messages asked for and not settled, and of parked ones that are redriven; see MAX_IN_FLIGHT_BYTES."},
			func() float64 {
				parked, _ := store.Parked.ParkedBytes()
				return float64(engine.BytesInFlight() + parked)
			}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "projector_sessions_resting", Help: "Sessions left alone for a while because they alone cannot be applied."},
			func() float64 { return float64(e.Resting.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "projector_sessions_undecodable", Help: "Sessions in which this process found a message lately that cannot be decoded, so that it and all that follow wait."},
			func() float64 { sessions, _ := engine.Undecodable(); return float64(len(sessions)) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "projector_accepting", Help: "Accepts that wait for a session."},
			func() float64 { return float64(e.Accepting.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "projector_halt_brake", Help: "1 while no more sessions are taken because too many aggregates are halted or events skipped (HALT_LIMIT), or an event stops the projectors (onError), else 0."},
			func() float64 {
				if brake.On() {
					return 1
				}
				return 0
			}),
		&optionalGauge{
			desc: prometheus.NewDesc("projector_lag_seconds", "How far the read model is behind, by when the source made the changes; absent until known.", nil, nil),
			read: func() (float64, bool) {
				lag, known := m.CurrentLag(engine)
				return lag.Seconds(), known
			},
		},
		&optionalGauge{
			desc: prometheus.NewDesc("projector_sessions_waiting", "Sessions of the subscription that have messages, held ones among them, at most 5000; every replica says the same; absent until known.", nil, nil),
			read: func() (float64, bool) {
				n, known := waiting.Sessions()
				return float64(n), known
			},
		},
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "projector_parked_gone", Help: "Messages of the group that were parked and are gone, though nobody has redriven or discarded them."},
			func() float64 { return float64(parked.Gone.Load()) }),
		&optionalGauge{
			desc: prometheus.NewDesc("projector_skipped_events", "Events that projections lack because they were skipped, recorded in the whole group; every replica says the same; absent until known.", nil, nil),
			read: func() (float64, bool) {
				n := parked.Skipped()
				if n == nil {
					return 0, false
				}
				return float64(*n), true
			},
		},
		&optionalGauge{
			desc: prometheus.NewDesc("projector_halted_aggregates", "Aggregates halted, in the whole read database; absent until known.", nil, nil),
			read: func() (float64, bool) {
				n, known := halts.Count()
				return float64(n), known
			},
		},
	)
}

// optionalGauge is a gauge that is absent until its value is known.
type optionalGauge struct {
	desc *prometheus.Desc
	read func() (float64, bool)
}

// Describe implements prometheus.Collector.
func (g *optionalGauge) Describe(ch chan<- *prometheus.Desc) { ch <- g.desc }

// Collect implements prometheus.Collector.
func (g *optionalGauge) Collect(ch chan<- prometheus.Metric) {
	if value, known := g.read(); known {
		ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, value)
	}
}
