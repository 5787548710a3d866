// Package changestream reads the changes of MongoDB collections. It adapts the
// driver's change stream to relay.Source.
//
// A stream of the driver is dead after its first error, an expired context
// included. So each poll is bounded, and whatever goes wrong the stream is
// opened anew from our own token: the one of the last change that was handed
// out. What cannot be cured that way is a *HaltError.
//
// Opening is not bounded so: to find its place, a server reads its operation log
// from there on, the writes of others included, and whoever gives up has it begin
// anew. It may take as long as the source answers other questions.
package changestream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/backoff"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/slowlink"
)

const (
	// serverBatch is how many changes the server puts in one answer, and firstBatch how
	// many while their size is not known. serverBytes is what an answer is to hold, by the
	// size of the changes before: the driver has two of them at once, as they come.
	serverBatch, firstBatch = 1000, 100
	serverBytes             = 2 << 20
	// readChanges bounds what one Read hands out, and so does Source.ReadBytes, or
	// readBytes where that is zero.
	readChanges = 256
	readBytes   = 4 << 20
	// await is how long the server holds back an empty answer.
	await = time.Second
	// answerTimeout is how long an answer may take beyond that, unless it comes slowly: see
	// package slowlink.
	answerTimeout = 15 * time.Second
	// silence is how long the token may not move before the stream is opened
	// anew: a healthy replica set moves it every few seconds.
	silence = 5 * time.Minute
	// closeTimeout bounds telling the server that a cursor is not needed, endTimeout where
	// nothing waits for that: a busy server may take longer.
	closeTimeout = 500 * time.Millisecond
	endTimeout   = 3 * time.Second
)

var (
	errClosed  = errors.New("closed by the server")
	errResumed = errors.New("the driver has resumed it, and nobody has looked at what the source is now")
)

// Start is where a stream begins: after the token, or where there is none at a
// cluster time.
type Start struct {
	Token []byte
	At    checkpoint.ClusterTime
	// Event is when the last change was made that was read up to the token; zero
	// where that is not known.
	Event checkpoint.ClusterTime
}

// Stream is the changes of one source. Read and Close are for one
// goroutine; State may be called from any.
type Stream struct {
	source Source
	start  Start
	log    zerolog.Logger

	stream  *mongo.ChangeStream // nil while closed
	cursor  int64               // the server's, as last known
	size    int                 // of a change, by those before, as they come; 0 is not known
	moved   bool                // whether a change was read since it was last being opened
	movedAt time.Time           // when the token last moved; when the stream was first opened before that
	opened  time.Time           // when the stream was last opened
	// splitting says that the server splits changes that are too large, and parts
	// are those of the change that is being read.
	splitting bool
	parts     fragments
	// refused is why the server did not find the token; nil where it was not asked to, or
	// found it.
	refused *HaltError
	retry   backoff.Backoff
	// openTimeout is how long the next attempt to open the stream may take.
	openTimeout time.Duration
	// tell is told of changes to collections as a whole, of which the last one was
	// at toldAt; stands is why the stream stands before one.
	tell   func(ctx context.Context, c CollectionChange) error
	toldAt checkpoint.ClusterTime
	stands error
	// unproven says that it was told that nothing proves the history.
	unproven bool
	// reachUnknown says that it was told that the operation log may not be seen.
	reachUnknown bool

	mu    sync.Mutex
	state State // guarded by mu
}

// State is how reading goes.
type State struct {
	// Err is why the stream is not open; nil when it is, or was not tried yet.
	Err error
	// Reopened counts how often the stream was opened again.
	Reopened int64
	// Opening is since when the source looks for the place to go on from, by the
	// local clock; zero while it does not.
	Opening time.Time
	// Unread is since when nothing can be read, by the local clock; zero while the
	// source answers, and while nobody asks it.
	Unread time.Time
	// Still is since when the source's answers lead no further, by the local clock; zero
	// where the last one has a change. Answered is when the last one came: who is handed
	// nothing more asks for nothing.
	Still, Answered time.Time
}

// New returns the stream of a source from start on. It is opened by the first
// Read.
func New(source Source, start Start, log zerolog.Logger) *Stream {
	return &Stream{
		source: source,
		start:  start,
		log:    log.With().Stringer("source", source).Logger(),
		retry:  backoff.Backoff{Initial: 250 * time.Millisecond, Max: 5 * time.Second},

		openTimeout: firstOpenTimeout,
	}
}

// State returns a snapshot.
func (s *Stream) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Close frees the server's cursor. It does so also when ctx has ended.
func (s *Stream) Close(ctx context.Context) { s.free(ctx, endTimeout) }

// free is Close with a limit.
func (s *Stream) free(ctx context.Context, limit time.Duration) {
	if s.stream == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	// A poll that its context cuts off has the driver forget the cursor: it tries
	// to close it with the same context.
	forgotten := s.stream.ID() == 0
	_ = s.stream.Close(ctx) // a cursor that is not closed times out on the server
	if forgotten {
		s.source.kill(ctx, s.cursor)
	}
	s.stream = nil
}

// Read implements relay.Source. It waits for about a second at most while the
// source answers, and as long as it takes while it does not.
func (s *Stream) Read(ctx context.Context) (relay.Batch, error) {
	s.asked()
	for {
		batch, err := s.read(ctx)
		if err == nil {
			s.recovered(len(batch.Changes) > 0)
			return batch, nil
		}
		if ctx.Err() != nil {
			return relay.Batch{}, context.Cause(ctx) // whoever stops reading closes
		}
		s.free(ctx, closeTimeout)
		if halt := s.judge(ctx, err); halt != nil {
			s.failed(halt)
			return relay.Batch{}, halt
		}
		if s.failed(err) {
			s.log.Warn().Err(err).Msg("change stream interrupted, opening it again")
		}
		if err := s.retry.Wait(ctx); err != nil {
			return relay.Batch{}, err
		}
	}
}

func (s *Stream) read(ctx context.Context) (relay.Batch, error) {
	if err := s.stands; err != nil {
		s.stands = nil
		return relay.Batch{}, err
	}
	if s.stream == nil {
		if err := s.open(ctx); err != nil {
			return relay.Batch{}, fmt.Errorf("open change stream: %w", err)
		}
	}
	found, err := s.poll(ctx)
	switch {
	case err != nil:
		return relay.Batch{}, fmt.Errorf("read change stream: %w", err)
	case found:
		changes, err := s.collect(ctx)
		return relay.Batch{Changes: changes}, err
	case min(time.Since(s.movedAt), time.Since(s.opened)) > silence:
		return relay.Batch{}, fmt.Errorf("read change stream: the token has not moved for %s", silence)
	case s.parts.parts > 0:
		return relay.Batch{}, nil // the server's token is inside a change
	default:
		return relay.Batch{Idle: s.idle()}, nil
	}
}

// placed says where the stream is to be opened.
func (s *Stream) placed(o *options.ChangeStreamOptionsBuilder) *options.ChangeStreamOptionsBuilder {
	o.SetBatchSize(s.batchSize())
	if s.start.Token != nil {
		// startAfter takes every token that resumeAfter takes, and also that of an
		// invalidation, after which the stream goes on with the collection's successor.
		return o.SetStartAfter(bson.Raw(s.start.Token))
	}
	return o.SetStartAtOperationTime(&bson.Timestamp{T: s.start.At.Seconds, I: s.start.At.Increment})
}

// poll asks for the next change. It makes a round trip only when none is left
// of the last answer. A stream that the driver resumes meanwhile is ended with what it
// has: who answers may be another source, and open looks who it is.
func (s *Stream) poll(ctx context.Context) (bool, error) {
	if s.stream.RemainingBatchLength() > 0 {
		return s.stream.TryNext(ctx), s.stream.Err()
	}
	before := s.stream.ID()
	s.stream.SetBatchSize(s.batchSize())
	found := s.stream.TryNext(slowlink.By(ctx, await+answerTimeout))
	s.cursor = cmp.Or(s.stream.ID(), s.cursor)
	if err := s.stream.Err(); err != nil {
		return false, err
	}
	if s.stream.ID() != 0 && s.stream.ID() != before {
		return false, errResumed
	}
	if !found && s.stream.ID() == 0 {
		return false, errClosed
	}
	return found, nil
}

// batchSize is how many changes the next answer is to have.
func (s *Stream) batchSize() int32 {
	if s.size == 0 {
		return firstBatch
	}
	return int32(min(max(serverBytes/s.size, 1), serverBatch))
}

// weigh takes in that so many changes came of so many bytes. Larger ones count at once,
// smaller ones by and by.
func (s *Stream) weigh(changes, size int) {
	mean := size / changes
	s.size = max(mean, (s.size+mean)/2, 1)
}

// mostRead is how many bytes one Read hands out, but for its last change.
func (s *Stream) mostRead() int { return cmp.Or(s.source.ReadBytes, readBytes) }

// collect takes the current change, and as many more as the last answer has and
// one Read may hand out. Changes that it has are never lost to an error of the
// server. It returns none when the answer ends inside a change.
func (s *Stream) collect(ctx context.Context) ([]relay.Change, error) {
	changes := make([]relay.Change, 0, min(s.stream.RemainingBatchLength()+1, readChanges))
	size, came, weight := 0, 0, 0
	defer func() { s.weigh(came, weight) }()
	for {
		came, weight = came+1, weight+len(s.stream.Current)
		change, err := s.current()
		if err != nil {
			return nil, err
		}
		if change.Raw != nil {
			err := s.told(ctx, change)
			if err != nil && len(changes) == 0 {
				return nil, err
			}
			if err != nil {
				s.stands = err // what was before it is handed out first
				break
			}
			changes = append(changes, change)
			size += len(change.Raw)
		}
		if s.stream.RemainingBatchLength() == 0 || len(changes) == readChanges || size >= s.mostRead() {
			break
		}
		if !s.stream.TryNext(ctx) {
			break // the next Read finds the error
		}
	}
	if len(changes) > 0 {
		s.start.Token = changes[len(changes)-1].Token
		s.start.Event = timeOf(changes[len(changes)-1].Position)
	}
	s.moved, s.movedAt = true, time.Now()
	return changes, nil
}

// current copies the current change: the driver owns its memory. It is without
// Raw where it is a part of a change, and not the last.
func (s *Stream) current() (relay.Change, error) {
	raw := bson.Raw(slices.Clone(s.stream.Current))
	if s.splitting {
		var err error
		if raw, err = s.parts.add(raw); raw == nil || err != nil {
			return relay.Change{}, err
		}
	}
	change := relay.Change{Raw: raw}
	id, _ := raw.Lookup("_id").DocumentOK()
	change.Token = id
	if s.stream.RemainingBatchLength() == 0 {
		// The token after the last change of an answer may be further on than the
		// change: resuming there skips what did not match.
		change.Token = slices.Clone(s.stream.ResumeToken())
	}
	change.Position = PositionOf(id)
	if seconds, _, ok := raw.Lookup("clusterTime").TimestampOK(); ok {
		change.Time = time.Unix(int64(seconds), 0)
	}
	return change, nil
}

// idle is how far the server has looked without finding a change. That is as of
// the time in its token, however late the server says so: it may be a member that
// lags, or wait for a shard.
func (s *Stream) idle() relay.Point {
	token := s.stream.ResumeToken()
	if token == nil {
		return relay.Point{}
	}
	if !bytes.Equal(token, s.start.Token) {
		s.start.Token, s.movedAt = slices.Clone(token), time.Now()
	}
	point := relay.Point{Token: s.start.Token, Position: PositionOf(s.start.Token), Event: s.start.Event}
	if seconds, _, err := point.Position.ClusterTime(); err == nil {
		point.AsOf = time.Unix(int64(seconds), 0)
	}
	return point
}

func (s *Stream) asked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Unread = time.Now()
}

func (s *Stream) recovered(changed bool) {
	s.retry.Reset()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Err, s.state.Unread, s.state.Still, s.state.Answered = nil, time.Time{}, s.movedAt, time.Now()
	if changed { // who takes its time with it asks for no more until then
		s.state.Still = time.Time{}
	}
}

// failed notes an error and reports whether it is the first of a row.
func (s *Stream) failed(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.state.Err == nil
	s.state.Err = err
	s.state.Reopened++
	return first
}
