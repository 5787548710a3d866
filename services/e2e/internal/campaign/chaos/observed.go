package chaos

import (
	"changerelay/services/e2e/internal/check/watch"
	"changerelay/services/e2e/internal/check/witness"
)

// How many events documents name: those of shadow.yaml, and of orders.yaml.
const (
	tailKept    = watch.Named
	historyKept = 10
)

// readDocument is what a reader sees of a document, of whichever view.
type readDocument struct {
	ID      string   `bson:"_id"`
	Events  int64    `bson:"events"`
	Sum     int64    `bson:"sum"`
	Tail    []int64  `bson:"tail"`
	History []string `bson:"history"`
	Orders  int64    `bson:"orders"`
	Lowest  int64    `bson:"lowest"`
	Highest int64    `bson:"highest"`
	Relay   struct {
		Version int64 `bson:"aggregateVersion"`
	} `bson:"_relay"`
}

// observation is the last that a reader has seen of a document, and whether that was
// still there
// when it looked again.
type observation struct {
	readDocument
	there bool
}

// erasure is an event that must erase a document, with a version from one to another.
type erasure struct {
	id       string
	from, to int64
}

func (e erasure) explainedBy(version int64) bool { return e.from <= version && version <= e.to }

// visible says what a reader may see of the documents of a view.
type visible struct {
	// keyed says that they are no aggregates', erases that events erase them.
	keyed, erases bool
	// reached never falls.
	reached func(*readDocument) int64
	// follows says whether a document is what events make of what was there before, which is
	// the zero one where nothing was.
	follows func(before observation, now *readDocument) bool
}

// observable are the views that are built anew.
var observable = map[string]visible{
	witness.Mended: {reached: versionOf, follows: func(_ observation, now *readDocument) bool { return now.whole() }},
	witness.Placed: {reached: versionOf, follows: placedAfter, erases: true},
	witness.Buyers: {reached: func(d *readDocument) int64 { return d.Orders }, follows: boughtAfter, keyed: true},
}

func versionOf(d *readDocument) int64 { return d.Relay.Version }

// whole says whether a document is what the first events of its aggregate make, whose
// versions are 1 and up.
func (d *readDocument) whole() bool {
	n := d.Relay.Version
	if d.Events != n || d.Sum != n*(n+1)/2 || int64(len(d.Tail)) != min(n, tailKept) {
		return false
	}
	for i, version := range d.Tail {
		if version != n-int64(len(d.Tail))+int64(i)+1 {
			return false
		}
	}
	return true
}

// erasedAt is the version of the event that has erased a document that counts its events
// since then; 0 where none has.
func (d *readDocument) erasedAt() int64 { return d.Relay.Version - d.Events }

// placedAfter is follows for documents that events erase: one counts its events from the
// first one on, or from one that has erased it since it was seen.
func placedAfter(before observation, now *readDocument) bool {
	begins := now.erasedAt()
	if now.Events < 1 || begins < 0 || int64(len(now.History)) != min(now.Events, historyKept) {
		return false
	}
	return begins > before.Relay.Version || begins == before.erasedAt() && before.there || before.Relay.Version == 0
}

// boughtAfter is follows for documents that many aggregates change, in any order.
func boughtAfter(before observation, now *readDocument) bool {
	if now.Orders < 1 || now.Sum < now.Orders*now.Lowest || now.Sum > now.Orders*now.Highest {
		return false
	}
	return !before.there || now.Sum >= before.Sum && now.Lowest <= before.Lowest && now.Highest >= before.Highest
}
