package delivery

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"changerelay/services/projector/internal/session"
)

// ErrUnreachable in an error of Store.Write means that the store could not be
// reached or is not ready, which says nothing about what was to be written.
var ErrUnreachable = errors.New("the read database cannot be reached")

// How others' successes are judged.
const (
	// lately is how long ago another aggregate may have been stored for a failure
	// to be this aggregate's own.
	lately = 30 * time.Second
	// forgotten is how long ago a failure may be for the next one to belong to it;
	// longer than any session rests.
	forgotten = 2 * time.Minute
	// enough is how many others must have been stored while this one failed.
	enough = 3
)

// lasting finds the aggregates that alone cannot be stored for a reason that
// nobody knows to be lasting. Such an aggregate rests between its attempts, so that
// others have its slot; when they are stored for a time in which it is not, it is
// halted. When nothing can be stored, that is an outage, and nobody is to blame.
type lasting struct {
	after time.Duration

	mu      sync.Mutex
	stored  int64              // guarded by mu: how many batches were
	at      time.Time          // guarded by mu: the last time
	failing map[string]failure // guarded by mu
}

type failure struct {
	since, last time.Time
	// stored is how many batches were when it began.
	stored int64
}

// suspected tells whether the aggregate's last attempt has failed. Its messages
// go one by one then, so that the right one is blamed.
func (l *lasting) suspected(aggregate string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, failing := l.failing[aggregate]
	return failing
}

// ok notes that an aggregate's writes were stored.
func (l *lasting) ok(aggregate string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stored, l.at = l.stored+1, time.Now()
	delete(l.failing, aggregate)
}

// failed notes a failure. It returns why the aggregate is to be halted, if it is,
// and else the error with what the session is to do.
func (l *lasting) failed(aggregate string, err error) (halt string, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	others, unreachable := now.Sub(l.at) <= lately, errors.Is(err, ErrUnreachable)
	if unreachable && !others {
		return "", err
	}
	rest := fmt.Errorf("%w: %w", session.ErrRest, err)
	if unreachable || !others || l.after == 0 {
		return "", rest
	}
	f, failing := l.failing[aggregate]
	// One that was not tried here for long may have been stored by another replica.
	if !failing || now.Sub(f.last) > forgotten {
		f = failure{since: now, stored: l.stored}
	}
	f.last = now
	if l.failing == nil {
		l.failing = map[string]failure{}
	}
	for other, f := range l.failing {
		if now.Sub(f.last) > forgotten {
			delete(l.failing, other)
		}
	}
	l.failing[aggregate] = f
	if now.Sub(f.since) < l.after || l.stored-f.stored < enough {
		return "", rest
	}
	delete(l.failing, aggregate)
	return fmt.Sprintf("it could not be stored for %s, while %d batches of other aggregates could: %s",
		now.Sub(f.since).Round(time.Second), l.stored-f.stored, err), nil
}
