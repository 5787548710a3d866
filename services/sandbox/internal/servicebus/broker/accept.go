package broker

import (
	"container/list"
	"context"
	"errors"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

func (s *store) acceptNamed(id string, r *Receiver, now time.Time) error {
	x := s.session(id)
	if x.holder != nil && !now.Before(x.lockedUntil) {
		x.expire(now) // may forget x, or hand it to a waiting accept
		x = s.session(id)
	}
	if x.holder != nil {
		return errSessionCannotBeLocked(id)
	}
	s.hold(x, r, now)
	return nil
}

func (s *store) hold(x *session, r *Receiver, now time.Time) {
	x.lockFor(r, now)
	s.receivers[r] = struct{}{}
}

// accept is one OpenReceiver waiting for the next session.
type accept struct {
	receiver *Receiver
	place    *list.Element // nil once granted or refused
	done     chan struct{}
	err      *entity.Error
}

func (a *accept) grant(x *session, now time.Time) {
	a.leave()
	x.store.hold(x, a.receiver, now)
	close(a.done)
}

func (a *accept) refuse(err *entity.Error) {
	a.leave()
	a.err = err
	close(a.done)
}

func (a *accept) leave() {
	a.receiver.store.accepts.Remove(a.place)
	a.place = nil
}

// acceptNext is called with the lock held and returns without it.
func (b *Broker) acceptNext(ctx context.Context, s *store, r *Receiver) (*Receiver, error) {
	a := &accept{receiver: r, done: make(chan struct{})}
	a.place = s.accepts.PushBack(a)
	b.mu.Unlock()

	select {
	case <-a.done:
	case <-ctx.Done():
		b.mu.Lock()
		waiting := a.place != nil
		if waiting {
			a.leave()
		}
		b.mu.Unlock()
		if waiting {
			return nil, timeoutOr(ctx)
		}
		<-a.done
	}
	if a.err != nil {
		return nil, a.err
	}
	return r, nil
}

func timeoutOr(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errTimeout()
	}
	return ctx.Err()
}
