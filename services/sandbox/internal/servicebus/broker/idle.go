package broker

import (
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// idleWatch deletes an entity that nobody has used for AutoDeleteOnIdle.
type idleWatch struct {
	alarm alarm
	in    *inlet
	out   *outlet // nil: the topic itself
}

// watchIdle sets the watch of a queue (with its outlet), a topic (out nil) or a
// subscription.
func (b *Broker) watchIdle(in *inlet, out *outlet) {
	w := &in.idle
	if out != nil && in.topic {
		w = &out.idle
	}
	if w.alarm.owner == nil {
		*w = idleWatch{in: in, out: out}
		w.alarm = newAlarm(w)
	}
	if after := w.after(); after != entity.Forever {
		b.set(&w.alarm, w.used().Add(after))
	} else {
		b.unset(&w.alarm)
	}
}

func (w *idleWatch) after() time.Duration {
	switch {
	case !w.in.topic:
		return w.in.queueProperties.AutoDeleteOnIdle
	case w.out == nil:
		return w.in.topicProperties.AutoDeleteOnIdle
	}
	return w.out.properties.AutoDeleteOnIdle
}

// used is when the entity was last used.
func (w *idleWatch) used() time.Time {
	at := later(w.in.dates.accessed, w.in.dates.updated)
	if w.out == nil {
		return at
	}
	if w.in.topic {
		at = w.out.dates.updated
	}
	return later(at, w.out.store.accessed)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (w *idleWatch) ring(b *Broker, now time.Time) {
	next := w.used().Add(w.after())
	if w.hasReceivers() {
		next = later(next, now.Add(w.after()))
	}
	switch {
	case next.After(now):
		b.set(&w.alarm, next)
	case w.out != nil && w.in.topic:
		b.dropSubscription(w.in, w.out, now)
	default:
		b.dropInlet(w.in, now)
	}
}

func (w *idleWatch) hasReceivers() bool {
	outlets := w.in.inOrder
	if w.out != nil {
		outlets = []*outlet{w.out}
	}
	for _, o := range outlets {
		if len(o.store.receivers) > 0 || o.store.accepts.Len() > 0 {
			return true
		}
	}
	return false
}
