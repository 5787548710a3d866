package engine

import (
	"context"
	"sync"
	"time"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
)

// ttlMonitor says when expired documents are looked for.
type ttlMonitor struct {
	mu    sync.Mutex
	timer *time.Timer
	every time.Duration
}

func newTTLMonitor(every time.Duration) *ttlMonitor {
	return &ttlMonitor{every: every, timer: time.NewTimer(every)}
}

// due fires when the next pass is to be made.
func (m *ttlMonitor) due() <-chan time.Time { return m.timer.C }

// set changes the pause between passes and begins a new one.
func (m *ttlMonitor) set(every time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.every = every
	m.timer.Reset(every)
}

func (m *ttlMonitor) interval() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.every
}

// SetTTLInterval changes the pause between two passes over TTL indexes.
func (e *Engine) SetTTLInterval(every time.Duration) { e.ttl.set(every) }

// TTLInterval is the pause between two passes over TTL indexes.
func (e *Engine) TTLInterval() time.Duration { return e.ttl.interval() }

// ttlBatch is how many documents are deleted without letting others in.
const ttlBatch = 100

// expireDocuments makes one pass over all TTL indexes. See
// https://www.mongodb.com/docs/manual/core/index-ttl/.
func (e *Engine) expireDocuments(ctx context.Context) {
	defer e.ttl.set(e.ttl.interval())
	now := e.config.Now()
	for _, info := range e.Collections("") {
		for _, spec := range info.Indexes {
			if spec.ExpireAfter == nil || len(spec.Fields) != 1 {
				continue
			}
			e.expireIn(ctx, info.NS, spec, now.Add(-time.Duration(*spec.ExpireAfter)*time.Second))
		}
	}
}

// expireIn deletes the documents whose indexed date is at or before a time. A
// document that an open transaction has written to is left to the next pass.
func (e *Engine) expireIn(ctx context.Context, ns oplog.Namespace, spec storage.IndexSpec, before time.Time) {
	deleted := 0
	for ctx.Err() == nil {
		n := 0
		_ = e.locked(func() error {
			n = e.expireBatch(ns, spec, before)
			return nil
		})
		deleted += n
		if n == 0 {
			break
		}
	}
	if deleted > 0 {
		e.config.Log.Debug().Stringer("namespace", ns).Str("index", spec.Name).Int("deleted", deleted).
			Msg("expired documents deleted")
	}
}

// expireBatch deletes some, and returns how many: 0 for no more. It needs mu.
func (e *Engine) expireBatch(ns oplog.Namespace, spec storage.IndexSpec, before time.Time) int {
	t := e.target(Write{}, ns)
	if t == nil {
		return 0
	}
	ix := t.table.IndexNamed(spec.Name)
	if ix == nil {
		return 0
	}
	var ids []int64
	for sc := t.table.ScanDates(ix, before); len(ids) < ttlBatch; {
		id, _, ok := sc.Step()
		if !ok {
			break
		}
		if t.unclaimed(id) == nil {
			ids = append(ids, id)
		}
	}
	for n, id := range ids {
		if e.bytes >= batchBytes {
			return n
		}
		rec, _ := t.table.Records.Get(id)
		_ = t.remove(id, rec) // unclaimed, so not refused
	}
	return len(ids)
}
