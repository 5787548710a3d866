package query

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
)

// keyed is a document with its sort key.
type keyed struct {
	key []byte
	doc bson.Raw
}

// size is about what it takes to keep it.
func (k keyed) size() int { return len(k.key) + len(k.doc) + 64 }

func sortStage(v bson.RawValue, env PipelineEnv) (stage, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return stage{}, mongoerr.New(15973, "the $sort key specification must be an object")
	}
	s, err := CompileSort(v.Value)
	if err == nil && s == nil {
		err = mongoerr.New(15976, "$sort stage must have at least one sort key")
	}
	return sorting(s.In(env.Collation), 0, env.Env), err
}

// sorting is a $sort of which limit documents are wanted, 0 for all.
func sorting(s *Sort, limit int64, env expression.Env) stage {
	return stage{sort: s, limit: limit, bounded: func(limit int64) stage { return sorting(s, limit, env) }, run: func(_ context.Context, in documents) documents {
		return func(yield func(bson.Raw, error) bool) {
			var all []keyed
			memory := SortMemory(env)
			for doc, err := range in {
				k := keyed{doc: doc}
				if err == nil {
					k.key, err = s.AppendKey(nil, doc)
				}
				if err == nil {
					err = memory.Take(k.size())
				}
				if err != nil {
					yield(nil, err)
					return
				}
				all = append(all, k)
				if limit > 0 && (int64(len(all))-64)/2 >= limit {
					all = sorted(all, limit)
					memory = SortMemory(env)
					for _, k := range all {
						memory.left -= k.size()
					}
				}
			}
			for _, k := range sorted(all, limit) {
				if !yield(k.doc, nil) {
					return
				}
			}
		}
	}}
}

func sorted(all []keyed, limit int64) []keyed {
	slices.SortStableFunc(all, func(a, b keyed) int { return bytes.Compare(a.key, b.key) })
	if limit > 0 && int64(len(all)) > limit {
		clear(all[limit:])
		all = all[:limit]
	}
	return all
}

// boundSorts lets each $sort know the $limit behind it, so that it keeps no
// more than it must.
func (p *Pipeline) boundSorts() {
	for i, s := range p.stages {
		if s.sort == nil || i+1 == len(p.stages) || p.stages[i+1].name != "$limit" {
			continue
		}
		p.stages[i] = s.bounded(p.stages[i+1].limit)
		p.stages[i].name = s.name
	}
}

func limitStage(v bson.RawValue) (stage, error) {
	if !bsonkit.IsNumber(v.Type) {
		return stage{}, mongoerr.New(15957, "the limit must be specified as a number")
	}
	n, _ := bsonkit.Truncated(v)
	if n <= 0 {
		return stage{}, mongoerr.New(15958, "the limit must be positive")
	}
	return stage{limit: n, run: func(_ context.Context, in documents) documents {
		return func(yield func(bson.Raw, error) bool) {
			left := n
			for doc, err := range in {
				left--
				if !yield(doc, err) || left == 0 {
					return
				}
			}
		}
	}}, nil
}

func skipStage(v bson.RawValue) (stage, error) {
	if !bsonkit.IsNumber(v.Type) {
		return stage{}, mongoerr.New(15972, "Argument to $skip must be a number")
	}
	n, _ := bsonkit.Truncated(v)
	if n < 0 {
		return stage{}, mongoerr.New(15956, "Argument to $skip cannot be negative")
	}
	return stage{run: func(_ context.Context, in documents) documents {
		return func(yield func(bson.Raw, error) bool) {
			left := n
			for doc, err := range in {
				if err == nil && left > 0 {
					left--
					continue
				}
				if !yield(doc, err) {
					return
				}
			}
		}
	}}, nil
}

// sampleStage picks documents at random; the seed is the time of the operation,
// so that the same operation picks the same.
func sampleStage(v bson.RawValue, env PipelineEnv) (stage, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return stage{}, mongoerr.New(28745, "the $sample stage specification must be an object")
	}
	size := int64(-1)
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		if string(it.Key()) != "size" {
			return stage{}, mongoerr.New(28748, "unrecognized option to $sample: %s", it.Key())
		}
		if !bsonkit.IsNumber(it.Value().Type) {
			return stage{}, mongoerr.New(28746, "size argument to $sample must be a number")
		}
		if size, _ = bsonkit.Truncated(it.Value()); size < 0 {
			return stage{}, mongoerr.New(28747, "size argument to $sample must not be negative")
		}
	}
	if size < 0 {
		return stage{}, mongoerr.New(28749, "$sample stage must specify a size")
	}
	return stage{run: func(_ context.Context, in documents) documents {
		return func(yield func(bson.Raw, error) bool) {
			all, err := collect(in, newMemory("$sample", mongoerr.ExceededMemoryLimit, expression.Env{Spills: true}))
			if err != nil {
				yield(nil, err)
				return
			}
			random := rand.New(rand.NewPCG(uint64(env.Now.UnixNano()), uint64(len(all))))
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			for _, doc := range all[:min(size, int64(len(all)))] {
				if !yield(doc, nil) {
					return
				}
			}
		}
	}}, nil
}

func collect(in documents, memory Memory) ([]bson.Raw, error) {
	var all []bson.Raw
	for doc, err := range in {
		if err == nil {
			err = memory.Take(len(doc) + 24)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, doc)
	}
	return all, nil
}

// given is a stream of documents that are there already.
func given(docs []bson.Raw) documents {
	return func(yield func(bson.Raw, error) bool) {
		for _, doc := range docs {
			if !yield(doc, nil) {
				return
			}
		}
	}
}
