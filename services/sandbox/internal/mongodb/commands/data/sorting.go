package data

import (
	"bytes"
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/query"
)

// keyed is a document with its sort key.
type keyed struct {
	key []byte
	doc bson.Raw
}

// size is about what it takes to keep it.
func (k keyed) size() int { return len(k.key) + len(k.doc) + 64 }

// checkEvery is how many documents a long loop handles between two looks at
// its context.
const checkEvery = 1024

// sortDocuments reads all documents and sorts them. Where only the first
// `wanted` are of interest (0 for all) it keeps no more than twice as many.
func sortDocuments(ctx context.Context, docs command.Puller, sort *query.Sort, wanted int64, memory query.Memory) ([]keyed, error) {
	var sorted []keyed
	order := func(a, b keyed) int { return bytes.Compare(a.key, b.key) }
	for n := 1; ; n++ {
		doc, err := docs.Next()
		if err != nil {
			return nil, err
		}
		if doc == nil {
			break
		}
		if n%checkEvery == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		key, err := sort.AppendKey(nil, doc)
		if err != nil {
			return nil, err
		}
		k := keyed{key: key, doc: doc}
		if err := memory.Take(k.size()); err != nil {
			return nil, err
		}
		sorted = append(sorted, k)
		if wanted > 0 && (int64(len(sorted))-checkEvery)/2 >= wanted {
			slices.SortStableFunc(sorted, order)
			for _, k := range sorted[wanted:] {
				memory.Give(k.size())
			}
			clear(sorted[wanted:])
			sorted = sorted[:wanted]
		}
	}
	slices.SortStableFunc(sorted, order)
	return sorted, nil
}

// sortedDocuments gives sorted documents one by one.
type sortedDocuments struct{ docs []keyed }

func (s *sortedDocuments) Next() (bson.Raw, error) {
	if len(s.docs) == 0 {
		return nil, nil
	}
	doc := s.docs[0].doc
	s.docs[0] = keyed{}
	s.docs = s.docs[1:]
	return doc, nil
}
