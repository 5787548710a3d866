package broker

import (
	"encoding/json"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
	"changerelay/services/sandbox/internal/servicebus/record"
)

// A journal record is a sequence of operations that are durable together. An
// operation is its code and its fields.
type operation byte

const (
	opQueue        operation = iota + 1 // made or changed
	opTopic                             // made or changed
	opSubscription                      // made or changed, with its rules
	opDropInlet
	opDropSubscription
	opContent  // of messages that later operations put
	opPut      // a message into a store
	opRemove   // a message from a store
	opChange   // a message's state, count and marks
	opState    // of a session
	opRemember // an id in a history
	opNumbers  // of a store, in a snapshot
)

// encoder writes operations.
type encoder struct{ record.Encoder }

func (w *encoder) begin(op operation) { w.Raw([]byte{byte(op)}) }

// decoder reads operations.
type decoder struct{ record.Decoder }

// recorder writes the durable changes that are made under the broker's lock.
// Those of one call become one record, unless it is divided, so they are durable
// together. Without a journal it does nothing.
type recorder struct {
	journal  Journal
	pending  encoder
	position int64  // of the last record
	contents uint64 // number of the last content written

	floor, limit int64 // bytes logged from which a compaction is worth it: the least, and at present
}

// Sizes from which a record is not added to: one of changes that can be durable
// apart, and one of a batch. The journal takes far larger ones, but none of any
// size.
const (
	recordSize = 1 << 20
	batchSize  = 32 << 20
)

// divide begins another record where this one has reached a size. A crash may
// leave what came before and take back what comes after.
func (l *recorder) divide(size int) {
	if len(l.pending.Buf) >= size {
		l.flush()
	}
}

// flush hands the changes made under the lock to the journal.
func (l *recorder) flush() {
	if len(l.pending.Buf) == 0 {
		return
	}
	l.position = l.journal.Append(l.pending.Buf)
	l.pending.Buf = l.pending.Buf[:0]
}

// properties is what settings are kept as: JSON, so that versions of the
// sandbox with more or fewer fields read each other's.
func (w *encoder) settings(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic("broker: settings that are no JSON: " + err.Error())
	}
	w.Bytes(text)
}

func (r *decoder) settings(v any) {
	if err := json.Unmarshal(r.Raw(r.Uint()), v); err != nil && r.Err == nil {
		r.Err = err
	}
}

func (l *recorder) queue(in *inlet) {
	if l.journal != nil {
		l.pending.queue(in)
	}
}

func (w *encoder) queue(in *inlet) {
	w.begin(opQueue)
	w.Text(in.name)
	w.Uint(in.id)
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
	w.Text(in.name)
	w.Uint(in.id)
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
	w.Text(in.name)
	w.Text(out.name)
	w.Uint(out.store.id)
	w.settings(out.properties)
	w.dates(out.dates)
	w.Uint(uint64(len(out.rules)))
	for _, r := range out.rules {
		w.Rule(r.Rule)
	}
}

func (w *encoder) dates(d dates) {
	w.Time(d.created)
	w.Time(d.updated)
	w.Time(d.accessed)
}

func (l *recorder) dropInlet(in *inlet) {
	if l.journal != nil {
		l.pending.begin(opDropInlet)
		l.pending.Text(in.name)
	}
}

func (l *recorder) dropSubscription(in *inlet, out *outlet) {
	if l.journal != nil {
		l.pending.begin(opDropSubscription)
		l.pending.Text(in.name)
		l.pending.Text(out.name)
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
	w.Uint(number)
	w.Optional(m.SessionID)
	for _, s := range []string{
		m.MessageID, m.PartitionKey, m.Subject, m.To, m.ReplyTo, m.ReplyToSessionID, m.CorrelationID, m.ContentType,
	} {
		w.Text(s)
	}
	w.Int(int64(m.TimeToLive))
	w.Time(m.ScheduledEnqueueTime)
	w.Properties(m.Properties)
	w.Bytes(m.Payload)
}

func (w *encoder) put(e *entry) {
	w.begin(opPut)
	w.Uint(e.store.id)
	w.Int(e.seq)
	w.Uint(e.number)
	w.Int(e.enqueuedSeq)
	w.Int(int64(e.partition))
	w.Time(e.enqueuedAt)
	w.Time(e.expiresAt)
	w.mutable(e)
}

// mutable writes what may change while a message is in its store.
func (w *encoder) mutable(e *entry) {
	w.Uint(uint64(e.state))
	w.Uint(uint64(e.failed))
	w.Bool(e.marks != nil)
	if m := e.marks; m != nil {
		w.Text(m.deadSource)
		w.Text(m.deadReason)
		w.Text(m.deadDescription)
		w.Properties(m.modified)
	}
}

func (l *recorder) remove(e *entry) {
	if l.journal != nil {
		l.pending.begin(opRemove)
		l.pending.Uint(e.store.id)
		l.pending.Int(e.seq)
	}
}

func (l *recorder) change(e *entry) {
	if l.journal != nil {
		l.pending.begin(opChange)
		l.pending.Uint(e.store.id)
		l.pending.Int(e.seq)
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
	w.Uint(store)
	w.Text(id)
	w.Bool(state != nil)
	w.Bytes(state)
	w.Time(at)
}

func (l *recorder) remember(in *inlet, id fingerprint, at time.Time) {
	if l.journal != nil {
		l.pending.remember(in.id, id, at)
	}
}

func (w *encoder) remember(inlet uint64, id fingerprint, at time.Time) {
	w.begin(opRemember)
	w.Uint(inlet)
	w.Raw(id[:])
	w.Time(at)
}
