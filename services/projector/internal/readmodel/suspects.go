package readmodel

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/projection"
)

// sampled is how many documents of a collection are looked at.
const sampled = 20

// suspect is a document that shows an event which the ledger does not have.
type suspect struct {
	collection string
	shownEvent
}

// suspects are those that were found and are no proof, one for each projection.
type suspects struct {
	mu    sync.Mutex
	found map[string]suspect // by projection; guarded by mu
}

func (s *suspects) of(name string) []suspect {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.found[name]; ok {
		return []suspect{known}
	}
	return nil
}

// keep replaces the suspects of a projection.
func (s *suspects) keep(name string, found []suspect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.found, name)
	for _, one := range found {
		s.found[name] = one
	}
}

// CheckPositions is ErrPositionsLost where documents of the store's projections, some
// of each collection at random, show that positions are lost: two of a projection show
// events that the ledger does not have, in this look or in an earlier one, or one does
// and the ledger has no position of the projection at all. A single one beside
// positions may be somebody else's, with what a projector had written into another
// collection: it is returned, in words.
func (s *Writes) CheckPositions(ctx context.Context) (single []string, err error) {
	for i := range s.parts {
		found, err := s.suspected(ctx, &s.parts[i])
		if err != nil {
			return nil, err
		}
		if err := s.proof(ctx, s.parts[i].Name, found); err != nil {
			return nil, err
		}
		s.suspects.keep(s.parts[i].Name, found)
		for _, one := range found {
			single = append(single, unnoted(s.parts[i].Name, one.collection, one.shownEvent))
		}
	}
	return single, nil
}

// proof is ErrPositionsLost where it cannot be but that positions of a projection are.
func (s *Writes) proof(ctx context.Context, name string, found []suspect) error {
	if len(found) == 0 {
		return nil
	}
	if len(found) == 1 {
		if some, err := s.there(ctx, projection.Positions, positionsOf(name)); err != nil || some {
			return err
		}
	}
	return lost(name, found[0].collection, found[0].shownEvent)
}

// suspected are documents of a projection that show events which the ledger does not
// have: the one that an earlier look has found, and of some at random.
func (s *Writes) suspected(ctx context.Context, part *projection.Part) ([]suspect, error) {
	looks := []suspectLook{}
	for _, known := range s.suspects.of(part.Name) {
		looks = append(looks, suspectLook{known.collection, bson.D{{Key: "$match", Value: bson.D{{Key: "_id", Value: known.Document}}}}})
	}
	for _, collection := range part.Collections {
		looks = append(looks, suspectLook{collection, bson.D{{Key: "$sample", Value: bson.D{{Key: "size", Value: sampled}}}}})
	}
	found := map[string]suspect{}
	for _, look := range looks {
		all, err := s.shown(ctx, look.collection, look.some)
		if err != nil {
			return nil, err
		}
		for _, d := range all {
			noted, err := s.noted(ctx, part.Name, d)
			if err != nil {
				return nil, err
			}
			if !noted {
				found[fmt.Sprint(look.collection, d.Document)] = suspect{look.collection, d}
			}
		}
	}
	return slices.Collect(maps.Values(found)), nil
}

// suspectLook is a look at those documents of a collection that a stage lets through.
type suspectLook struct {
	collection string
	some       bson.D
}
