package changestream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const (
	// lookInterval is the time between looks at a source that opens a stream.
	lookInterval = 10 * time.Second
	// deaf is how long a source may answer nothing before an attempt to open a
	// stream is given up.
	deaf = 40 * time.Second
	// firstOpenTimeout bounds the first attempt to open a stream, for a connection that
	// is dead and looks alive while others work. Each attempt that ends so doubles
	// it, so the source gets the time that it needs.
	firstOpenTimeout = 10 * time.Minute
)

var (
	errDeaf        = errors.New("the source answers nothing any more")
	errOpenTimeout = errors.New("the source answers, and has not found the place")
)

// open opens the stream where it is placed. It ends when that is done, when ctx
// ends, and when the source is not heard of any more. Of what the source answers
// while it does, nothing was read yet: see judge.
func (s *Stream) open(ctx context.Context) error {
	s.moved = false
	// The connection that has just answered is the next to be used.
	if _, err := hello(ctx, s.source.Database.Client()); err != nil {
		return err
	}
	s.opening(time.Now())
	defer s.opening(time.Time{})
	attempt, end := s.whileHeard(ctx)
	var stream *mongo.ChangeStream
	err := s.checkReach(attempt)
	if err == nil {
		err = s.prove(attempt)
	}
	if err == nil {
		err = s.reconsider(attempt)
	}
	if err == nil {
		stream, s.splitting, err = s.source.watchSplit(attempt, func() *options.ChangeStreamOptionsBuilder {
			return s.placed(options.ChangeStream())
		})
	}
	gaveUp := context.Cause(attempt)
	end()
	switch {
	case err != nil && ctx.Err() == nil && gaveUp != nil:
		if errors.Is(gaveUp, errOpenTimeout) {
			s.openTimeout *= 2
		}
		return fmt.Errorf("%w: %w", gaveUp, err)
	case err != nil:
		return err
	}
	s.stream, s.cursor, s.opened = stream, stream.ID(), time.Now()
	if s.movedAt.IsZero() {
		s.movedAt = s.opened
	}
	s.parts, s.openTimeout = fragments{}, firstOpenTimeout
	return nil
}

// opening notes since when the stream is being opened.
func (s *Stream) opening(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Opening = since
}

// whileHeard is Source.whileHeard for an attempt to open the stream, which also ends
// when that has taken too long.
func (s *Stream) whileHeard(ctx context.Context) (context.Context, func()) {
	attempt, giveUp := context.WithCancelCause(ctx)
	// No deadline: the driver would tell it to the server, whose answer would then
	// be that of a query that failed.
	timer := time.AfterFunc(s.openTimeout, func() { giveUp(errOpenTimeout) })
	heard, end := s.source.whileHeard(attempt, func(time.Duration) {})
	return heard, func() {
		end()
		timer.Stop()
		giveUp(nil)
	}
}

// whileHeard returns a context that ends when the source is not heard of any more.
// Each time that it is, waiting is told for how long it has been waited for. The
// returned function frees the context; nothing is told then.
func (s Source) whileHeard(ctx context.Context, waiting func(time.Duration)) (context.Context, func()) {
	attempt, giveUp := context.WithCancelCause(ctx)
	var listening sync.WaitGroup
	listening.Go(func() { s.listen(attempt, giveUp, waiting) })
	return attempt, func() {
		giveUp(nil)
		listening.Wait()
	}
}

// listen asks the source something else from time to time, and gives up when it
// does not answer.
func (s Source) listen(ctx context.Context, giveUp context.CancelCauseFunc, waiting func(time.Duration)) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	began := time.Now()
	heard := began
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		_, err := hello(ctx, s.Database.Client())
		switch {
		case err == nil:
			heard = time.Now()
			waiting(heard.Sub(began))
		case time.Since(heard) >= deaf:
			giveUp(errDeaf)
		}
	}
}
