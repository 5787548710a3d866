package broker

import (
	"encoding/json"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// recorder writes the durable changes that are made under the broker's lock.
// Those of one call become one record, so they are durable together. Without
// a journal it does nothing.
type recorder struct {
	journal  Journal
	pending  encoder
	position int64  // of the last record
	contents uint64 // number of the last content written

	floor, limit int64 // bytes logged from which a compaction is worth it: the least, and at present
}

// flush hands the changes made under the lock to the journal.
func (l *recorder) flush() {
	if len(l.pending.buf) == 0 {
		return
	}
	l.position = l.journal.Append(l.pending.buf)
	l.pending.buf = l.pending.buf[:0]
}

// properties is what settings are kept as: JSON, so that versions of the
// sandbox with more or fewer fields read each other's.
func (w *encoder) settings(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic("broker: settings that are no JSON: " + err.Error())
	}
	w.bytes(text)
}

func (r *decoder) settings(v any) {
	if err := json.Unmarshal(r.raw(r.uint()), v); err != nil && r.err == nil {
		r.err = err
	}
}

func (l *recorder) queue(in *inlet) {
	if l.journal != nil {
		l.pending.queue(in)
	}
}

func (w *encoder) queue(in *inlet) {
	w.begin(opQueue)
	w.string(in.name)
	w.uint(in.id)
	w.settings(in.queueProperties)
	w.dates(in.dates)
}

func (l *recorder) topic(in *inlet) {
	if l.journal != nil {
		l.pending.topic(in)
	}
}

func (w *encoder) topic(in *inlet) {
	w.begin(opTopic)
	w.string(in.name)
	w.uint(in.id)
	w.settings(in.topicProperties)
	w.dates(in.dates)
}

func (l *recorder) subscription(in *inlet, out *outlet) {
	if l.journal != nil {
		l.pending.subscription(in, out)
	}
}

func (w *encoder) subscription(in *inlet, out *outlet) {
	w.begin(opSubscription)
	w.string(in.name)
	w.string(out.name)
	w.uint(out.store.id)
	w.settings(out.properties)
	w.dates(out.dates)
	w.uint(uint64(len(out.rules)))
	for _, r := range out.rules {
		w.rule(r.Rule)
	}
}

func (w *encoder) dates(d dates) {
	w.time(d.created)
	w.time(d.updated)
	w.time(d.accessed)
}

func (l *recorder) dropInlet(in *inlet) {
	if l.journal != nil {
		l.pending.begin(opDropInlet)
		l.pending.string(in.name)
	}
}

func (l *recorder) dropSubscription(in *inlet, out *outlet) {
	if l.journal != nil {
		l.pending.begin(opDropSubscription)
		l.pending.string(in.name)
		l.pending.string(out.name)
	}
}

func (l *recorder) put(e *entry) {
	if l.journal == nil {
		return
	}
	if e.number == 0 {
		l.contents++
		e.number = l.contents
		l.pending.content(e.number, e.msg)
	}
	l.pending.put(e)
}

func (w *encoder) content(number uint64, m *entity.Message) {
	w.begin(opContent)
	w.uint(number)
	w.optional(m.SessionID)
	for _, s := range []string{
		m.MessageID, m.PartitionKey, m.Subject, m.To, m.ReplyTo, m.ReplyToSessionID, m.CorrelationID, m.ContentType,
	} {
		w.string(s)
	}
	w.int(int64(m.TimeToLive))
	w.time(m.ScheduledEnqueueTime)
	w.properties(m.Properties)
	w.bytes(m.Payload)
}

func (w *encoder) put(e *entry) {
	w.begin(opPut)
	w.uint(e.store.id)
	w.int(e.seq)
	w.uint(e.number)
	w.int(e.enqueuedSeq)
	w.int(int64(e.partition))
	w.time(e.enqueuedAt)
	w.time(e.expiresAt)
	w.mutable(e)
}

// mutable writes what may change while a message is in its store.
func (w *encoder) mutable(e *entry) {
	w.uint(uint64(e.state))
	w.uint(uint64(e.failed))
	w.bool(e.marks != nil)
	if m := e.marks; m != nil {
		w.string(m.deadSource)
		w.string(m.deadReason)
		w.string(m.deadDescription)
		w.properties(m.modified)
	}
}

func (l *recorder) remove(e *entry) {
	if l.journal != nil {
		l.pending.begin(opRemove)
		l.pending.uint(e.store.id)
		l.pending.int(e.seq)
	}
}

func (l *recorder) change(e *entry) {
	if l.journal != nil {
		l.pending.begin(opChange)
		l.pending.uint(e.store.id)
		l.pending.int(e.seq)
		l.pending.mutable(e)
	}
}

func (l *recorder) state(x *session) {
	if l.journal != nil {
		l.pending.state(x.store.id, x.id, x.state, x.updatedAt)
	}
}

func (w *encoder) state(store uint64, id string, state []byte, at time.Time) {
	w.begin(opState)
	w.uint(store)
	w.string(id)
	w.bool(state != nil)
	w.bytes(state)
	w.time(at)
}

func (l *recorder) remember(in *inlet, id fingerprint, at time.Time) {
	if l.journal != nil {
		l.pending.remember(in.id, id, at)
	}
}

func (w *encoder) remember(inlet uint64, id fingerprint, at time.Time) {
	w.begin(opRemember)
	w.uint(inlet)
	w.raw(id[:])
	w.time(at)
}
