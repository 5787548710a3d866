package suite

import "time"

// Scale says how much of everything is measured.
type Scale struct {
	// Repeats is how often each measurement is made.
	Repeats int `json:"repeats"`
	// Events go over the whole path in each measurement of it, of Aggregates.
	Events     int `json:"events"`
	Aggregates int `json:"aggregates"`

	// Rates are written for Steady each, in events a second, to see how long an
	// event takes.
	Rates  []int         `json:"rates"`
	Steady time.Duration `json:"steady_ns"`

	// Failovers of each kind are made, with a lease of that length.
	Failovers int           `json:"failovers"`
	Lease     time.Duration `json:"lease_ns"`

	// Sizes are the sizes of documents, each with its events.
	Sizes []Size `json:"sizes"`
	// Spreads are numbers of aggregates that the same events are spread over.
	Spreads []int `json:"spreads"`

	// Projectors and Partitions are the steps of growth.
	Projectors []int `json:"projectors"`
	Partitions []int `json:"partitions"`
	// Backlog is how many events are waiting for the publisher alone, Messages how
	// many messages for the projector alone.
	Backlog  int `json:"backlog"`
	Messages int `json:"messages"`
	// ShortSessions wait in each measurement of taking sessions, with
	// each of Distances added to the round trip.
	ShortSessions int             `json:"short_sessions"`
	Distances     []time.Duration `json:"distances_ns"`
	// Crowd is how many sessions wait at once.
	Crowd int `json:"crowd"`
	// HotMessages are in each of the hot sessions.
	HotMessages int `json:"hot_messages"`
	// Plain is how long the plain loop of the publisher runs, PlainMessages how
	// many messages that of the projector takes.
	Plain         time.Duration `json:"plain_ns"`
	PlainMessages int           `json:"plain_messages"`
	// Near is what is added to each round trip in the second half of comparing
	// parts and for the growth of projectors, Far the broker for that of partitions. Servers
	// of one's own are where they are.
	Near time.Duration `json:"near_ns"`
	Far  time.Duration `json:"far_ns"`

	// Limited are the events that leave a publisher under a limit, and Burst those
	// that are written at once then; LimitedMessages wait for a projector.
	Limited         int `json:"limited"`
	Burst           int `json:"burst"`
	LimitedMessages int `json:"limited_messages"`
	// Links are the connections that a backlog is drained over.
	Links []LinkScale `json:"links"`
	// Mixed are the events of the whole path of all sizes.
	Mixed int `json:"mixed"`
	// Foreign entries are in the operation log behind the place of a publisher, and
	// the source takes Scan to go through them.
	Foreign int           `json:"foreign"`
	Scan    time.Duration `json:"scan_ns"`
	// Copies are numbers of documents that are copied.
	Copies []int `json:"copies"`
	// Repaired events went through a projection with a bug.
	Repaired int `json:"repaired"`
}

// LinkScale is a connection, and the sessions that come over it.
type LinkScale struct {
	Sessions  int           `json:"sessions"`
	RoundTrip time.Duration `json:"round_trip_ns"`
	MiB       int           `json:"mib_per_second"`
	Messages  int           `json:"messages"`
	Bytes     int           `json:"bytes"`
}

// allLinks are sessions of large and of small messages over wide and narrow links,
// near and far.
func allLinks() (all []LinkScale) {
	for _, session := range []LinkScale{
		{Sessions: 1, Messages: 300, Bytes: 50_000},
		{Sessions: 4, Messages: 300, Bytes: 50_000},
		{Sessions: 1, Messages: 2_000, Bytes: 1_000},
		{Sessions: 16, Messages: 2_000, Bytes: 1_000},
	} {
		for _, session.MiB = range []int{12, 3} {
			for _, ms := range []int{1, 5, 40} {
				session.RoundTrip = time.Duration(ms) * time.Millisecond
				all = append(all, session)
			}
		}
	}
	return all
}

// Size is a size of source documents, and how many events are carried of it.
type Size struct {
	Bytes  int `json:"bytes"`
	Events int `json:"events"`
}

// full is what the documentation shows.
func full() Scale {
	return Scale{
		Repeats: 3, Events: 40_000, Aggregates: 20_000,
		Rates: []int{100, 500, 1000}, Steady: 10 * time.Second,
		Failovers: 20, Lease: 6 * time.Second,
		Sizes:      []Size{{200, 10_000}, {2_000, 10_000}, {20_000, 5_000}, {200_000, 1_000}},
		Spreads:    []int{100, 1_000, 10_000, 100_000, 1_000_000},
		Projectors: []int{1, 2, 4, 8}, Partitions: []int{1, 2, 4},
		Backlog: 60_000, Messages: 30_000, HotMessages: 500, Plain: 3 * time.Second, PlainMessages: 150,
		ShortSessions: 3_000, Distances: []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 40 * time.Millisecond}, Crowd: 50_000,
		Near: 5 * time.Millisecond, Far: 20 * time.Millisecond,
		Limited: 100_000, Burst: 5_000, LimitedMessages: 60_000, Links: allLinks(), Mixed: 4_000,
		Foreign: 1_000_000, Scan: 22 * time.Second, Copies: []int{50_000, 1_000_000}, Repaired: 100_000,
	}
}

// quick shows in a few minutes that everything can be measured.
func quick() Scale {
	s := full()
	s.Repeats, s.Events, s.Aggregates = 1, 8_000, 4_000
	s.Rates, s.Steady = []int{100, 500}, 5*time.Second
	s.Failovers, s.Lease = 3, 3*time.Second
	s.ShortSessions, s.Distances, s.Crowd = 1_000, []time.Duration{0, 5 * time.Millisecond}, 4_000
	s.Sizes = []Size{{200, 4_000}, {2_000, 4_000}, {20_000, 1_000}, {200_000, 200}}
	s.Limited, s.Burst, s.LimitedMessages, s.Mixed = 10_000, 2_500, 5_000, 500
	s.Foreign, s.Scan, s.Copies = 100_000, 5*time.Second, []int{20_000, 100_000}
	s.Backlog, s.Messages, s.HotMessages, s.Plain, s.PlainMessages = 20_000, 8_000, 100, time.Second, 100
	s.Repaired = 10_000
	return s
}

// enlarge sets what must not depend on size to sizes that a long history has.
func (s *Scale) enlarge() {
	s.Repeats, s.Foreign, s.Copies, s.Repaired = 1, 10_000_000, []int{50_000, 5_000_000}, 1_000_000
}
