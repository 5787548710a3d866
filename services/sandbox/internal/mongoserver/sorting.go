package mongoserver

import (
	"bytes"
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/query"
)

// keyed is a document with its sort key.
type keyed struct {
	key []byte
	doc bson.Raw
}

// checkEvery is how many documents a long loop handles between two looks at
// its context.
const checkEvery = 1024

// sortDocuments reads all documents and sorts them. Where only the first
// `wanted` are of interest (0 for all) it keeps no more than twice as many.
func sortDocuments(ctx context.Context, docs puller, sort *query.Sort, wanted int64) ([]keyed, error) {
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
		sorted = append(sorted, keyed{key: sort.AppendKey(nil, doc), doc: doc})
		if wanted > 0 && int64(len(sorted)) >= 2*wanted+checkEvery {
			slices.SortStableFunc(sorted, order)
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
