package broker

import (
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// inlet is a queue or a topic: what messages are sent to. A queue has one
// outlet, named "", that takes everything; a topic has its subscriptions.
type inlet struct {
	b           *Broker
	id          uint64 // in the journal; also that of its first store
	name        string
	topic       bool
	partitioned bool
	sessions    bool // a queue that requires them

	maxMessage int64
	timeToLive time.Duration
	status     entity.Status
	history    *history // nil: duplicates are not looked for
	quota      quota
	gate       gate

	outlets map[string]*outlet // by name in lower case
	inOrder []*outlet          // by name
	waiting *store             // scheduled messages: a queue's own store, a topic's waiting room

	turn       int16 // partition of the next message without a key
	received   int64
	duplicates int64

	queueProperties entity.QueueProperties // of a queue
	topicProperties entity.TopicProperties // of a topic
	dates           dates
	idle            idleWatch
}

// outlet is what messages are received from: a queue's, or a subscription.
type outlet struct {
	name       string
	store      *store
	rules      []*rule // nil: a queue's, which takes all
	properties entity.SubscriptionProperties
	dates      dates
	gate       gate      // a subscription's; a queue uses its inlet's
	idle       idleWatch // likewise
}

type dates struct{ created, updated, accessed time.Time }

func (in *inlet) kind() string {
	if in.topic {
		return "Topic"
	}
	return "Queue"
}

func (in *inlet) addOutlet(o *outlet) {
	in.outlets[strings.ToLower(o.name)] = o
	i, _ := slices.BinarySearchFunc(in.inOrder, o, func(x, y *outlet) int {
		return strings.Compare(strings.ToLower(x.name), strings.ToLower(y.name))
	})
	in.inOrder = slices.Insert(in.inOrder, i, o)
}

func (in *inlet) removeOutlet(o *outlet) {
	delete(in.outlets, strings.ToLower(o.name))
	in.inOrder = slices.DeleteFunc(in.inOrder, func(x *outlet) bool { return x == o })
}

// partitionKey decides the partition: the session, else the key, else, where
// duplicates are looked for, the id.
func (in *inlet) partitionKey(m *entity.Message) string {
	switch {
	case m.SessionID != nil:
		return *m.SessionID
	case m.PartitionKey != "":
		return m.PartitionKey
	case in.history != nil:
		return m.MessageID
	}
	return ""
}

func (in *inlet) partition(key string) int16 {
	if !in.partitioned {
		return 0
	}
	if key == "" {
		in.turn = (in.turn + 1) % partitions
		return in.turn
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return int16(h.Sum32() % partitions)
}

// arrive takes a message in: into the queue, or into each subscription that
// has a rule for it.
func (in *inlet) arrive(m *entity.Message, partition int16, now time.Time) {
	in.received++
	in.dates.accessed = now
	enqueuedSeq := int64(0)
	if in.topic {
		enqueuedSeq = in.waiting.numbers.next(partition)
	}
	kept := *m
	kept.Properties = nil // they are for filters, and would be most of a message's memory
	c := &content{msg: &kept, quota: &in.quota}
	for _, out := range in.inOrder {
		if out.matches(m) {
			out.store.totals.received++
			out.store.enqueue(c, partition, enqueuedSeq, now)
		}
	}
}

func (out *outlet) matches(m *entity.Message) bool {
	if out.rules == nil {
		return true
	}
	for _, r := range out.rules {
		if r.match(m) {
			return true
		}
	}
	return false
}

// enqueue puts a message into a queue's or subscription's store.
func (s *store) enqueue(c *content, partition int16, enqueuedSeq int64, now time.Time) {
	e := &entry{
		content: c, seq: s.numbers.next(partition), enqueuedSeq: enqueuedSeq,
		partition: partition, enqueuedAt: now,
	}
	if s.sessions != nil && c.msg.SessionID == nil {
		e.marks = &marks{
			deadSource: s.path,
			deadReason: "Session ID is null", deadDescription: "Session enabled entity doesn't allow a message whose session identifier is null.",
		}
		s.dead.put(e, now)
		return
	}
	if ttl := shortest(c.msg.TimeToLive, s.terms.timeToLive, s.inlet.timeToLive); ttl != entity.Forever {
		e.expiresAt = now.Add(ttl)
	}
	s.put(e, now)
}

// shortest of times to live, where 0 is none given.
func shortest(ttls ...time.Duration) time.Duration {
	least := entity.Forever
	for _, d := range ttls {
		if d > 0 && d < least {
			least = d
		}
	}
	return least
}
