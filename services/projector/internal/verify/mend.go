package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

const (
	// mostTries is how often a document may differ while it is mended.
	mostTries = 50
	// enough is how often a document that is only behind then is brought to where the source
	// is: the first time may have missed an event that was taken for a repeat before.
	enough = 2
)

// mending is a run that mends.
type mending struct {
	*Run
	brought map[string]int
	// wrong are the verdicts over aggregates that differ.
	wrong map[string][]Verdict
}

// ErrPartly means that what the source makes may not be all of a document.
var ErrPartly = errors.New("nothing is replaced by what may not be all of a document")

// ErrHalted means that an aggregate is halted, or would be: what is parked of it could not
// be applied in its place any more once its documents are beyond it.
var ErrHalted = errors.New("nothing is replaced of an aggregate of which an event cannot be applied")

// Mend replaces the aggregates' documents that differ with what the source makes, and
// reports each that it has replaced. It ends once a careful look finds no difference. The
// error says what cannot be mended. It is ErrPartly where what the source makes may not be
// all of a document, and ErrHalted where an event of the aggregate cannot be applied, by
// any target, unless Config.Partly allows both.
func (r *Run) Mend(ctx context.Context, aggregates []string) error {
	m := &mending{r, map[string]int{}, nil}
	left := slices.Compact(slices.Sorted(slices.Values(aggregates)))
	for range mostTries {
		var again []string
		for some := range slices.Chunk(left, atOnce) {
			wrong, err := m.round(ctx, some)
			if err != nil {
				return err
			}
			again = append(again, wrong...)
		}
		if left = again; len(left) == 0 {
			return nil
		}
	}
	return fmt.Errorf("%d aggregates, %q among them, have differed in each of %d looks", len(left), left[0], mostTries)
}

// round mends those of some aggregates that differ, and returns them.
func (m *mending) round(ctx context.Context, some []string) (wrong []string, err error) {
	m.wrong = map[string][]Verdict{}
	err = m.carefully(ctx, some, func(aggregate string, verdicts []Verdict) error {
		for _, v := range verdicts {
			switch {
			case v.target.Beside:
			case v.Difference == Failed:
				return fmt.Errorf("the document of aggregate %q in %q cannot be recomputed: %s", v.Aggregate, v.Collection, v.Reason)
			case v.Difference != Equal && v.Partly != "" && !m.config.Partly:
				return fmt.Errorf("%w: of %q %s", ErrPartly, v.Aggregate, v.Partly)
			case v.Difference != Equal && v.Difference != Behind && v.stopped && !m.config.Partly:
				return fmt.Errorf("%w: %q is halted, see projector parked list", ErrHalted, v.Aggregate)
			case v.Difference == Equal, v.Difference == Behind && m.brought[aggregate] >= enough:
			default:
				m.wrong[aggregate] = verdicts
			}
		}
		return nil
	})
	if err != nil || len(m.wrong) == 0 {
		return nil, err
	}
	whole := map[string][]bool{}
	for aggregate, verdicts := range m.wrong {
		wrong = append(wrong, aggregate)
		for i := range verdicts {
			whole[aggregate] = append(whole[aggregate], verdicts[i].whole)
		}
	}
	slices.Sort(wrong)
	return wrong, m.look(ctx, Selection{Aggregates: wrong}, forward, whole, func(aggregate string, verdicts []Verdict) error {
		m.brought[aggregate]++
		for _, v := range verdicts {
			if v.ahead != "" && !m.config.Partly {
				return fmt.Errorf("%w: %q, projection %q, %s", ErrHalted, aggregate, v.Projection, v.ahead)
			}
		}
		for i := range verdicts {
			if err := m.replace(ctx, &verdicts[i], m.wrong[aggregate][i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// replace puts what was recomputed in the place of a document that differs, as was found
// before.
func (m *mending) replace(ctx context.Context, v *Verdict, found Verdict) error {
	if v.target.Beside || v.Difference == Equal || v.Difference == Failed || found.Difference == Equal {
		return nil
	}
	replaced, err := m.documents.Replace(ctx, v.Collection, v.Aggregate, &v.read, &v.made)
	if err != nil || !replaced {
		return err
	}
	return m.tell(found)
}
