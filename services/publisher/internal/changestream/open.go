package changestream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

const (
	// lookInterval is the time between looks at a source that opens a stream.
	lookInterval = 10 * time.Second
	// deaf is how long a source may answer nothing before an attempt to open a
	// stream is given up.
	deaf = 40 * time.Second
	// firstPatience bounds the first attempt to open a stream, for a connection that
	// is dead and looks alive while others work. Each attempt that ends so doubles
	// it, so the source gets the time that it needs.
	firstPatience = 10 * time.Minute
)

var (
	errDeaf     = errors.New("the source answers nothing any more")
	errPatience = errors.New("the source answers, and has not found the place")
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
	if err := s.checkReach(ctx); err != nil {
		return err
	}
	s.opening(time.Now())
	defer s.opening(time.Time{})
	attempt, end := s.whileHeard(ctx)
	var stream *mongo.ChangeStream
	var splitting bool
	err := s.prove(attempt)
	if err == nil {
		stream, splitting, err = s.watchSplit(attempt)
	}
	gaveUp := context.Cause(attempt)
	end()
	switch {
	case err != nil && ctx.Err() == nil && gaveUp != nil:
		if errors.Is(gaveUp, errPatience) {
			s.patience *= 2
		}
		return fmt.Errorf("%w: %w", gaveUp, err)
	case err != nil:
		return err
	}
	s.stream, s.cursor, s.movedAt = stream, stream.ID(), time.Now()
	s.splitting, s.parts, s.patience = splitting, fragments{}, firstPatience
	return nil
}

// opening notes since when the stream is being opened.
func (s *Stream) opening(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Opening = since
}

// whileHeard returns a context that ends when the source is not heard of any more,
// or for too long has not opened the stream. The returned function frees it.
func (s *Stream) whileHeard(ctx context.Context) (context.Context, func()) {
	attempt, giveUp := context.WithCancelCause(ctx)
	// No deadline: the driver would tell it to the server, whose answer would then
	// be that of a query that failed.
	patience := time.AfterFunc(s.patience, func() { giveUp(errPatience) })
	var listening sync.WaitGroup
	listening.Go(func() { s.listen(attempt, giveUp) })
	return attempt, func() {
		giveUp(nil)
		patience.Stop()
		listening.Wait()
	}
}

// listen asks the source something else from time to time, and gives up when it
// does not answer.
func (s *Stream) listen(ctx context.Context, giveUp context.CancelCauseFunc) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	heard := time.Now()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		_, err := hello(ctx, s.source.Database.Client())
		switch {
		case err == nil:
			heard = time.Now()
		case time.Since(heard) >= deaf:
			giveUp(errDeaf)
		}
	}
}
