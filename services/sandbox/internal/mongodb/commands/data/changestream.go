package data

import (
	"bytes"
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query"
)

// watch answers an aggregate that opens a change stream
// (https://www.mongodb.com/docs/manual/reference/operator/aggregation/changeStream/).
func watch(ctx context.Context, c *command.Call, r *command.Reply, g aggregation) error {
	c.Streaming = true
	s, err := readStream(c, g)
	if err != nil {
		return err
	}
	stream, err := c.Server.Engine.Watch(s.options)
	if err != nil {
		return err
	}
	if err := c.Server.Engine.AwaitScan(ctx, stream, g.batchSize); err != nil {
		return err
	}
	src := &streamSource{stream: stream, pipeline: s.pipeline, place: stream.Place(), split: s.options.Split, interrupted: c.Interrupted}
	ns := g.ns
	if ns.Collection == "" {
		ns.Collection = "$cmd.aggregate"
	}
	cur := c.NewCursor(ns, src)
	cur.Streams = true
	return openStream(c, r, cur, src, g.batchSize)
}

// streamStart is how a change stream begins.
type streamStart struct {
	options  engine.StreamOptions
	pipeline *query.Pipeline // nil for none
}

// readStream reads a pipeline that begins with $changeStream.
func readStream(c *command.Call, g aggregation) (streamStart, error) {
	if c.Generic.InTransaction() {
		return streamStart{}, mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "$changeStream cannot run within a multi-document transaction")
	}
	if err := watchReadConcern(c); err != nil {
		return streamStart{}, err
	}
	if err := c.NotView(g.ns); err != nil {
		return streamStart{}, err
	}
	if err := allowedInStream(g.stages[1:]); err != nil {
		return streamStart{}, err
	}
	options, err := streamOptions(c.Server.Version, g)
	if err != nil {
		return streamStart{}, err
	}
	stages, split, err := takeSplitStage(g.stages[1:])
	if err != nil {
		return streamStart{}, err
	}
	if split && !c.Server.Version.Has(6) {
		return streamStart{}, mongoerr.New(40324, "Unrecognized pipeline stage name: '%s'", splitStage)
	}
	if !split && options.Resume != nil && options.Resume.Fragment > 0 {
		return streamStart{}, mongoerr.New(mongoerr.ChangeStreamFatalError, "To resume from a split event, the stream must include a %s stage", splitStage)
	}
	options.Split = split
	env := c.Env(nil)
	env.Collation = g.collation
	if err := command.CollatedStages(env.Collation, stages); err != nil {
		return streamStart{}, err
	}
	pipeline, err := query.CompileAggregation(stages, query.PipelineEnv{Env: env})
	if err != nil {
		return streamStart{}, err
	}
	if err := pipeline.Streams(); err != nil {
		return streamStart{}, err
	}
	if len(stages) == 0 {
		pipeline = nil
	}
	return streamStart{options, pipeline}, nil
}

// allowedInStream refuses stages of the server that a change stream does not
// take.
func allowedInStream(stages []bson.Raw) error {
	for _, stage := range stages {
		switch name := command.StageName(stage); name {
		case "$bucket", "$bucketAuto", "$count", "$facet", "$geoNear", "$graphLookup", "$group", "$limit", "$lookup", "$merge", "$out",
			"$sample", "$skip", "$sort", "$sortByCount", "$unionWith", "$unwind":
			return mongoerr.New(mongoerr.IllegalOperation, "%s is not permitted in a $changeStream pipeline", name)
		}
	}
	return nil
}

func watchReadConcern(c *command.Call) error {
	if level := c.Generic.ReadConcern.Level; level != "" && level != "majority" {
		return mongoerr.New(mongoerr.InvalidOptions,
			"$changeStream cannot run with a readConcern other than 'majority', or in a multi-document transaction. Current readConcern: %s",
			bsonkit.Describe(bsonkit.Document(c.Generic.ReadConcern.Text)))
	}
	return nil
}

func openStream(c *command.Call, r *command.Reply, cur *command.Cursor, src *streamSource, size int) error {
	r.OpenDocument("cursor")
	r.OpenArray("firstBatch")
	if _, err := src.fill(r, size); err != nil {
		return err
	}
	if err := src.stream.Durable(); err != nil {
		return err
	}
	r.Close()
	r.Document("postBatchResumeToken", src.place.Document())
	if !src.over() {
		c.Server.Cursors.Add(cur)
	}
	r.Int64("id", cur.ID)
	r.Text("ns", cur.NS)
	r.Close()
	return nil
}

// defaultAwait is how long a getMore waits for events when it does not say.
const defaultAwait = time.Second

// moreOfStream answers a getMore on a change stream, waiting for an event if
// there is none.
func moreOfStream(ctx context.Context, c *command.Call, r *command.Reply, cur *command.Cursor, src *streamSource, m moreArguments) (over bool, err error) {
	await := defaultAwait
	if c.Generic.MaxTime > 0 {
		await = c.Generic.MaxTime
	}
	waiting, cancel := context.WithTimeout(ctx, await)
	defer cancel()
	r.OpenDocument("cursor")
	r.OpenArray("nextBatch")
	for {
		n, err := src.fill(r, m.batchSize)
		if err != nil {
			return true, err
		}
		if err := src.stream.Durable(); err != nil {
			return true, err
		}
		if n > 0 {
			c.Server.Engine.Shown()
		}
		if n > 0 || src.over() {
			break
		}
		if src.stream.Wait(waiting) == nil {
			continue
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx) // killed, or the client has gone
		}
		break
	}
	r.Close()
	r.Document("postBatchResumeToken", src.place.Document())
	r.CursorID(cur, src.over())
	r.Close()
	return src.over(), nil
}

// streamSource is a change stream with the stages that follow it.
type streamSource struct {
	stream *engine.Stream
	// pipeline is nil where nothing follows.
	pipeline *query.Pipeline
	// place is where a client resumes that has read all batches so far.
	place oplog.ResumeToken
	// split tells that large events come in fragments; fragments are those that
	// are still to be given.
	split     bool
	fragments []*engine.Event
	// kept is an event that did not fit into the last batch.
	kept *engine.Event
	// interrupted is why the command that reads is to end, nil for none.
	interrupted func() error
	// failure ends the stream after what came before it has been read.
	failure error
	ended   bool
}

// fill writes events into an open array until the batch is full or there are
// no more at present.
func (s *streamSource) fill(r *command.Reply, size int) (n int, err error) {
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
			if place := s.stream.Place(); place.Compare(s.place) > 0 {
				s.place = place
			}
			return n, nil
		}
		if n > 0 && bytes+len(event.Doc) > command.BatchBytes {
			s.kept = event
			return n, nil
		}
		r.Document(bsonkit.ArrayKey(n), event.Doc)
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
	for n := 1; ; n++ {
		if n%checkEvery == 0 {
			if err := s.interrupted(); err != nil {
				return nil, err
			}
		}
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
		if s.split {
			parts, err := splitEvent(&engine.Event{Token: event.Token, Doc: out}, bsonkit.MaxDocument)
			if err == nil && event.Resumed {
				parts, err = resumedAt(event, parts)
			}
			if err != nil {
				return nil, err
			}
			if s.fragments = parts; len(parts) > 0 {
				continue
			}
		}
		if event.Resumed {
			continue
		}
		if len(out) > command.MaxEventBytes {
			return nil, command.ErrTooLarge(len(out))
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

func (s *streamSource) Next() (bson.Raw, error) { return nil, nil }
func (s *streamSource) Exhausted() bool         { return s.over() }
func (s *streamSource) Close()                  {}
