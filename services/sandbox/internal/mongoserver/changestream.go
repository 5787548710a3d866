package mongoserver

import (
	"bytes"
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
	"changerelay/services/sandbox/internal/query"
)

// watch answers an aggregate that opens a change stream
// (https://www.mongodb.com/docs/manual/reference/operator/aggregation/changeStream/).
func (c *call) watch(ctx context.Context, r *reply, g aggregation) error {
	c.streaming = true
	if c.generic.inTransaction() {
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "$changeStream cannot run within a multi-document transaction")
	}
	if err := c.watchReadConcern(); err != nil {
		return err
	}
	if err := c.notView(g.ns); err != nil {
		return err
	}
	options, err := parseStreamOptions(g)
	if err != nil {
		return err
	}
	stages, split, err := takeSplitStage(g.stages[1:])
	if err != nil {
		return err
	}
	if !split && options.Resume != nil && options.Resume.Fragment > 0 {
		return mongoerr.New(mongoerr.ChangeStreamFatalError, "To resume from a split event, the stream must include a %s stage", splitStage)
	}
	env := c.env(nil)
	env.Collation = g.collation
	if err := collatedStages(env.Collation, stages); err != nil {
		return err
	}
	pipeline, err := query.CompilePipeline(stages, query.PipelineEnv{Env: env})
	if err != nil {
		return err
	}
	if err := pipeline.Streams(); err != nil {
		return err
	}
	stream, err := c.server.engine.Watch(options)
	if err != nil {
		return err
	}
	src := &streamSource{stream: stream, pipeline: pipeline, place: stream.Place(), split: split}
	if len(stages) == 0 {
		src.pipeline = nil
	}
	ns := g.ns
	if ns.Collection == "" {
		ns.Collection = "$cmd.aggregate"
	}
	cur := c.newCursor(ns, src)
	cur.stream = src
	return c.openStream(ctx, r, cur, g.batchSize)
}

func (c *call) watchReadConcern() error {
	level, given := bsonkit.Get(c.generic.readConcern, "level")
	if s, _ := level.StringValueOK(); given && s != "majority" {
		return mongoerr.New(mongoerr.InvalidOptions,
			"$changeStream cannot run with a readConcern other than 'majority', or in a multi-document transaction. Current readConcern: %s",
			c.generic.readConcern)
	}
	return nil
}

func (c *call) openStream(_ context.Context, r *reply, cur *cursor, size int) error {
	r.openDocument("cursor")
	r.openArray("firstBatch")
	if _, err := cur.stream.fill(r, size); err != nil {
		return err
	}
	r.close()
	r.document("postBatchResumeToken", cur.stream.place.Document())
	if !cur.stream.over() {
		c.server.cursors.add(cur)
	}
	r.int64("id", cur.id)
	r.text("ns", cur.ns)
	r.close()
	return nil
}

// defaultAwait is how long a getMore waits for events when it does not say.
const defaultAwait = time.Second

// moreOfStream answers a getMore on a change stream, waiting for an event if
// there is none.
func (c *call) moreOfStream(ctx context.Context, r *reply, cur *cursor, m moreArguments) (over bool, err error) {
	await := defaultAwait
	if c.generic.maxTime > 0 {
		await = c.generic.maxTime
	}
	waiting, cancel := context.WithTimeout(ctx, await)
	defer cancel()
	r.openDocument("cursor")
	r.openArray("nextBatch")
	for {
		n, err := cur.stream.fill(r, m.batchSize)
		if err != nil {
			return true, err
		}
		if n > 0 || cur.stream.over() {
			break
		}
		if cur.stream.stream.Wait(waiting) == nil {
			continue
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx) // killed, or the client has gone
		}
		break
	}
	r.close()
	r.document("postBatchResumeToken", cur.stream.place.Document())
	r.cursorID(cur, cur.stream.over())
	r.close()
	return cur.stream.over(), nil
}

// streamSource is a change stream with the stages that follow it.
type streamSource struct {
	stream *engine.Stream
	// pipeline is nil where nothing follows.
	pipeline *query.Pipeline
	// place is where a client resumes that has read all batches so far.
	place engine.ResumeToken
	// split tells that large events come in fragments; fragments are those that
	// are still to be given.
	split     bool
	fragments []*engine.Event
	// kept is an event that did not fit into the last batch.
	kept *engine.Event
	// failure ends the stream after what came before it has been read.
	failure error
	ended   bool
}

// maxEventBytes is the largest event that fits into a reply
// (BSONObjMaxInternalSize).
const maxEventBytes = engine.MaxDocumentBytes + 16<<10

// fill writes events into an open array until the batch is full or there are
// no more at present.
func (s *streamSource) fill(r *reply, size int) (n int, err error) {
	bytes := 0
	for n < size {
		event, err := s.take()
		if err != nil {
			if s.failure = err; n > 0 {
				return n, nil
			}
			return n, err
		}
		if event == nil {
			s.place = s.stream.Place()
			return n, nil
		}
		if n > 0 && bytes+len(event.Doc) > batchBytes {
			s.kept = event
			return n, nil
		}
		r.document(arrayKey(n), event.Doc)
		bytes += len(event.Doc)
		s.place, s.ended = event.Token, event.Invalidates
		n++
	}
	return n, nil
}

// take gives the next event that comes out of the pipeline, nil for none at
// present.
func (s *streamSource) take() (*engine.Event, error) {
	if s.failure != nil {
		return nil, s.failure
	}
	if event := s.kept; event != nil {
		s.kept = nil
		return event, nil
	}
	for {
		if len(s.fragments) > 0 {
			fragment := s.fragments[0]
			s.fragments = s.fragments[1:]
			return fragment, nil
		}
		event, err := s.stream.Next()
		if event == nil || err != nil {
			return nil, err
		}
		out, passed, err := s.through(event)
		if err != nil {
			return nil, err
		}
		if event.Invalidates {
			s.ended = true
		}
		if !passed {
			continue
		}
		if s.split && (len(out) > engine.MaxDocumentBytes || event.Given > 0) {
			parts, err := splitEvent(&engine.Event{Token: event.Token, Doc: out}, engine.MaxDocumentBytes)
			if err != nil {
				return nil, err
			}
			s.fragments = parts[min(int(event.Given), len(parts)):]
			continue
		}
		if len(out) > maxEventBytes {
			return nil, errTooLarge(len(out))
		}
		return &engine.Event{Token: event.Token, Doc: out, Invalidates: event.Invalidates}, nil
	}
}

// through runs an event through the pipeline, which must leave its _id alone: a
// client could not resume without.
func (s *streamSource) through(event *engine.Event) (bson.Raw, bool, error) {
	if s.pipeline == nil {
		return event.Doc, true, nil
	}
	out, passed, err := s.pipeline.Each(event.Doc)
	if err != nil || !passed {
		return nil, false, err
	}
	id, _ := bsonkit.Get(out, "_id")
	if !bytes.Equal(id.Value, event.Token.Document()) {
		return nil, false, mongoerr.New(mongoerr.ChangeStreamFatalError,
			"Encountered an event whose _id field, which contains the resume token, was modified by the pipeline. "+
				"Modifying the _id field of an event makes it impossible to resume the stream from that point.").
			WithLabels("NonResumableChangeStreamError")
	}
	return out, true, nil
}

// over reports that the stream has ended and everything has been read.
func (s *streamSource) over() bool { return s.ended && s.kept == nil }

func (s *streamSource) next() (bson.Raw, error) { return nil, nil }
func (s *streamSource) exhausted() bool         { return s.over() }
func (s *streamSource) close()                  {}
