package query

import (
	"context"
	"iter"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// PipelineEnv is what a pipeline may read besides its documents.
type PipelineEnv struct {
	expression.Env
	// Collection gives the documents of another collection of the same
	// database that match f; f nil means all. A collection that is not there is
	// empty. It is nil where a pipeline may not read others.
	Collection func(ctx context.Context, name string, f *match.Filter) iter.Seq2[bson.Raw, error]
}

// Pipeline is a compiled aggregation pipeline.
type Pipeline struct{ stages []stage }

// documents is a stream of documents. An error is its last item.
type documents = iter.Seq2[bson.Raw, error]

// stage is one step of a pipeline. Exactly one of each and run is set.
type stage struct {
	name string
	// each makes one document, or none, of one.
	each func(doc bson.Raw) (bson.Raw, bool, error)
	run  func(ctx context.Context, in documents) documents
	// What LeadingMatch and LeadingSort look for.
	match *match.Filter
	sort  *Sort
	limit int64
	// bounded is the same $sort for a limit behind it.
	bounded func(limit int64) stage
}

// CompilePipeline reads the stages of an aggregation. Stages that are the
// server's own ($changeStream, $indexStats, $collStats, …) are unknown here:
// the caller takes them off the front.
func CompilePipeline(stages []bson.Raw, env PipelineEnv) (*Pipeline, error) {
	p := &Pipeline{}
	for _, spec := range stages {
		if err := CheckStage(spec); err != nil {
			return nil, err
		}
		it := bsonkit.Iterate(spec)
		it.Next()
		name, argument := string(it.Key()), it.Value()
		s, err := compileStage(name, argument, env)
		if err != nil {
			return nil, err
		}
		s.name = name
		p.stages = append(p.stages, s)
	}
	p.boundSorts()
	return p, nil
}

// CompileAggregation is CompilePipeline for a pipeline that the server optimizes
// before there is a document: constants that fail do so at once, after whatever is
// wrong in reading it.
func CompileAggregation(stages []bson.Raw, env PipelineEnv) (*Pipeline, error) {
	env.Folding = &expression.Folding{}
	p, err := CompilePipeline(stages, env)
	if err == nil {
		err = env.Folding.Err()
	}
	return p, err
}

// CheckStage refuses what is no stage, whatever its name.
func CheckStage(spec bson.Raw) error {
	it := bsonkit.Iterate(spec)
	if !it.Next() || it.Next() {
		return mongoerr.New(40323, "A pipeline stage specification object must contain exactly one field.")
	}
	return nil
}

// CompileForUpdate reads an update that is a pipeline, in which only the
// stages that reshape a document are allowed.
func CompileForUpdate(spec bson.RawValue, env expression.Env) (*Pipeline, error) {
	var stages []bson.Raw
	for _, v := range bsonkit.Values(spec) {
		if v.Type != bson.TypeEmbeddedDocument {
			return nil, mongoerr.New(mongoerr.TypeMismatch, "Each element of the 'pipeline' array must be an object")
		}
		stages = append(stages, v.Value)
	}
	for _, s := range stages {
		switch name := stageName(s); name {
		case "$bucket", "$bucketAuto", "$changeStream", "$collStats", "$count", "$currentOp", "$facet", "$geoNear", "$graphLookup",
			"$group", "$indexStats", "$limit", "$listLocalSessions", "$listSessions", "$lookup", "$match", "$merge", "$out",
			"$planCacheStats", "$redact", "$sample", "$skip", "$sort", "$sortByCount", "$unionWith", "$unwind":
			return nil, mongoerr.New(mongoerr.InvalidOptions, "%s is not allowed to be used within an update", name)
		}
	}
	return CompilePipeline(stages, PipelineEnv{Env: env})
}

// stageName is the name of a stage, empty for what is none.
func stageName(s bson.Raw) string {
	first, err := s.IndexErr(0)
	if err != nil {
		return ""
	}
	return first.Key()
}

// Run gives the pipeline's results for the documents of in, as they are asked
// for. It may be run more than once, also at the same time. After an error
// there is nothing more; the end of ctx is an error.
func (p *Pipeline) Run(ctx context.Context, in iter.Seq2[bson.Raw, error]) iter.Seq2[bson.Raw, error] {
	out := watched(ctx, in)
	for _, s := range p.stages {
		if s.each != nil {
			out = eachDocument(out, s.each)
		} else {
			out = s.run(ctx, out)
		}
		out = watched(ctx, out)
	}
	return out
}

// maxBetween is the largest document that a stage may give, which is also the
// largest in a result (BSONObjMaxInternalSize).
const maxBetween = bsonkit.MaxDocument + 16<<10

// watched ends a stream with the context's error, or at a document that is too
// large.
func watched(ctx context.Context, in documents) documents {
	return func(yield func(bson.Raw, error) bool) {
		for doc, err := range in {
			if err == nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err == nil && len(doc) > maxBetween {
				err = tooLarge(len(doc))
			}
			if !yield(doc, err) || err != nil {
				return
			}
		}
	}
}

func tooLarge(size int) error {
	return mongoerr.New(mongoerr.BSONObjectTooLarge, "BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d(16MB)",
		size, size, maxBetween)
}

func eachDocument(in documents, each func(bson.Raw) (bson.Raw, bool, error)) documents {
	return func(yield func(bson.Raw, error) bool) {
		for doc, err := range in {
			ok := true
			if err == nil {
				doc, ok, err = each(doc)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if ok && !yield(doc, nil) {
				return
			}
		}
	}
}

// Each runs one document through a pipeline that Streams, and reports whether
// it came out at the other end.
func (p *Pipeline) Each(doc bson.Raw) (bson.Raw, bool, error) {
	if err := p.Streams(); err != nil {
		return nil, false, err
	}
	for _, s := range p.stages {
		var ok bool
		var err error
		if doc, ok, err = s.each(doc); err != nil || !ok {
			return nil, false, err
		}
		if len(doc) > bsonkit.MaxBuilt {
			return nil, false, tooLarge(len(doc))
		}
	}
	return doc, true, nil
}

// Streams returns an IllegalOperation error that names the first stage which
// does not turn each document into one or none, as change streams demand.
func (p *Pipeline) Streams() error {
	for _, s := range p.stages {
		if s.each == nil {
			return mongoerr.New(mongoerr.IllegalOperation, "%s is not permitted in a $changeStream pipeline", s.name)
		}
	}
	return nil
}

// LeadingMatch takes the $match stages off the front: the filter they make, nil
// for none, and the pipeline that is left. A caller with an index then reads
// only what the filter matches.
func (p *Pipeline) LeadingMatch() (*match.Filter, *Pipeline) {
	var filters []*match.Filter
	for _, s := range p.stages {
		if s.match == nil {
			break
		}
		filters = append(filters, s.match)
	}
	return match.All(filters...), &Pipeline{stages: p.stages[len(filters):]}
}

// LeadingSort is the sort that the pipeline begins with, nil for none, and how
// many documents of it are wanted, 0 for all. Input that already has this order
// may be given, and need not be longer than that.
func (p *Pipeline) LeadingSort() (s *Sort, limit int64) {
	if len(p.stages) == 0 || p.stages[0].sort == nil {
		return nil, 0
	}
	return p.stages[0].sort, p.stages[0].limit
}

// Stages are the names of the stages, in order.
func (p *Pipeline) Stages() []string {
	names := make([]string, len(p.stages))
	for i, s := range p.stages {
		names[i] = s.name
	}
	return names
}
