package projector

import (
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/projection"
)

// Projection is a way of looking at events, kept in a collection of its own. Name,
// Collection, Revision and Decide are needed.
type Projection struct {
	// Name is unique among the projections of the program, declared ones included.
	Name string
	// Collection is where the documents are. It belongs to this projection alone.
	Collection string
	// Version numbers the documents, from 1 on. With it they are in Collection_vN, and
	// Collection is the view that readers use; so projector rebuild can build them anew
	// beside those that readers see. 0 is for none.
	Version int
	// Revision names what Decide does, as "2" or "with-discounts". Change it with every
	// change of what Decide writes: it is all that tells this program from an older one.
	// Then commands refuse to work with a program that is not the one that runs, and a
	// rebuild that another one has begun does not come to its end. Where that was
	// forgotten nothing is refused: documents are what the old and the new code made of
	// them in turn, until projector verify finds those that differ.
	Revision string
	// Types are the types of the events that it follows; without any it follows all.
	Types []string
	// Shared has Decide choose the keys of documents, of which many aggregates may change
	// one, and one event several. How far each aggregate's events are applied is then kept
	// beside the documents, and moves in one transaction with them.
	//
	// Otherwise each aggregate has one document, with its id for _id.
	Shared bool
	// OnError says what becomes of events that the projection cannot apply; the zero
	// OnError leaves it to the setting ON_ERROR.
	OnError OnError
	// State has Decide look at the aggregate's document as it is: see Event.State. That
	// takes a transaction for each event, and is not for a projection that is Shared.
	State bool
	// Decide returns what an event changes: nothing, where it changes nothing. It must
	// depend on the event alone: see the package. An error means that the event cannot be
	// projected, now or later: see OnError.
	Decide func(e *Event) ([]Write, error)
}

// coded are the projections as the program has them, or all that is wrong with them.
func coded(projections []Projection) (projection.Projections, error) {
	var all projection.Projections
	var problems []error
	for i := range projections {
		made, err := projections[i].coded()
		all, problems = append(all, made), append(problems, err)
	}
	return all, errors.Join(problems...)
}

func (p *Projection) coded() (*projection.Coded, error) {
	code := projection.Code{
		Name: p.Name, Collection: p.Collection, Version: p.Version, Revision: p.Revision,
		Types: p.Types, Shared: p.Shared, State: p.State, OnError: p.OnError.policy(),
	}
	if decide := p.Decide; decide != nil {
		code.Decide = func(c *projection.Change, state bson.Raw) ([]projection.Write, error) {
			writes, err := decide(eventOf(c, state))
			if err != nil {
				return nil, err
			}
			return encoded(writes)
		}
	}
	return projection.NewCoded(code)
}
