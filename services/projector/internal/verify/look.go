package verify

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// batch is how many events are applied in one step.
const batch = 500

// maxDataBytes bounds an event's data, as it does where events are applied.
const maxDataBytes = 16 << 20

// manner is how a look is taken.
type manner byte

const (
	// passing reads the source first.
	passing manner = iota
	// careful reads documents first, and judges those, too, of which the source has nothing.
	careful
	// forward is careful, and goes on behind the documents' positions, up to where an
	// aggregate is halted: what it recomputes is to take their place.
	forward
)

// look is one look at a selection.
type look struct {
	*Run
	manner manner
	judged func(aggregate string, verdicts []Verdict) error

	pending []contract.Event
	// accounts are the aggregates that are looked at, in the order in which they came;
	// only of the last one more may come.
	accounts []*account
	// discarded are events that an operator has discarded; not in passing.
	discarded map[string]bool
	// skipped are events that projections have skipped; not in passing.
	skipped map[Skipper][]string
	// named are the accounts of a careful look, by their aggregates.
	named map[string]*account
	whole map[string][]bool
}

// account is one aggregate.
type account struct {
	aggregate string
	of        []state // by target
	begun     bool    // its documents were read
	versioned bool
	// first and last are the sequences of its first and its last event, and begins is the
	// version of the first.
	first, last contract.Sequence
	begins      contract.Version
	haltedAt    contract.Sequence // "" where it is not halted
	// source is that of its first event, before the version of its last event, and lacks
	// the first version between two events that there is none of.
	source string
	before contract.Version
	lacks  int64
	// discarded counts its events that an operator has discarded; not in passing.
	discarded int
}

// state is how far one document of an aggregate is recomputed.
type state struct {
	id     string
	read   Document
	wrote  bool
	behind bool
	whole  bool // discarded events are a part of it
	// failed is why an event up to the document's position cannot be projected, ahead
	// why one behind it cannot.
	failed, ahead string
}

// look recomputes the documents of a selection and compares them. Of those that are whole,
// by aggregate and target, discarded events are a part.
func (r *Run) look(ctx context.Context, s Selection, how manner, whole map[string][]bool, judged func(string, []Verdict) error) error {
	l := &look{Run: r, manner: how, judged: judged, named: map[string]*account{}, whole: whole}
	if how != passing {
		for _, aggregate := range s.Aggregates {
			l.named[aggregate] = l.account(aggregate)
		}
		if err := l.begin(ctx); err != nil {
			return err
		}
		l.accounts = nil
	}
	unmappable, err := r.source.Messages(ctx, s, func(m contract.Message) error { return l.add(ctx, m) })
	if err != nil {
		return err
	}
	if how == passing {
		r.summary.Unmappable += unmappable
	}
	if err := l.flush(ctx, true); err != nil {
		return err
	}
	for _, aggregate := range s.Aggregates {
		if a := l.named[aggregate]; a != nil {
			l.accounts = append(l.accounts, a)
		}
	}
	return l.close(ctx, len(l.accounts))
}

// account begins an aggregate.
func (l *look) account(aggregate string) *account {
	a := &account{aggregate: aggregate, versioned: true, of: make([]state, len(l.config.Targets))}
	for i := range a.of {
		a.of[i].id = l.config.Run + "/" + strconv.Itoa(i) + "/" + aggregate
		a.of[i].whole = l.whole[aggregate] != nil && l.whole[aggregate][i]
	}
	l.accounts = append(l.accounts, a)
	return a
}

// add takes a message in.
func (l *look) add(ctx context.Context, m contract.Message) error {
	event, err := contract.Decode(m, contract.DecodeOptions{MaxDataBytes: maxDataBytes})
	if err != nil {
		return fmt.Errorf("the source has a message that cannot be read: %w", err)
	}
	if n := len(l.accounts); n == 0 || l.accounts[n-1].aggregate != event.AggregateID {
		if len(l.pending) >= batch {
			if err := l.flush(ctx, true); err != nil {
				return err
			}
		}
		if a := l.named[event.AggregateID]; a != nil {
			delete(l.named, event.AggregateID)
			l.accounts = append(l.accounts, a)
		} else {
			l.account(event.AggregateID)
		}
	} else if len(l.pending) >= batch {
		if err := l.flush(ctx, false); err != nil {
			return err
		}
	}
	l.pending = append(l.pending, event)
	l.summary.Events++
	return nil
}

// flush applies what is pending. All accounts are then closed but the last one, and that,
// too, where it is whole.
func (l *look) flush(ctx context.Context, whole bool) error {
	if err := l.begin(ctx); err != nil {
		return err
	}
	var writes []projection.Write
	var owners []*state
	of := map[string]*account{}
	for _, a := range l.accounts {
		of[a.aggregate] = a
	}
	for i := range l.pending {
		var err error
		if writes, owners, err = l.decide(ctx, of[l.pending[i].AggregateID], &l.pending[i], writes, owners); err != nil {
			return err
		}
	}
	l.pending = nil
	if err := l.write(ctx, writes, owners); err != nil {
		return err
	}
	n := len(l.accounts)
	if !whole {
		n--
	}
	return l.close(ctx, n)
}

// begin reads the documents of accounts that are new.
func (l *look) begin(ctx context.Context) error {
	var aggregates []string
	for _, a := range l.accounts {
		if !a.begun {
			aggregates = append(aggregates, a.aggregate)
		}
	}
	if len(aggregates) == 0 {
		return nil
	}
	halted, err := l.documents.HaltedAt(ctx, aggregates)
	if err != nil {
		return err
	}
	if l.manner != passing {
		if l.discarded, err = l.documents.DiscardedOf(ctx, aggregates); err != nil {
			return err
		}
		if l.skipped, err = l.documents.SkippedOf(ctx, aggregates); err != nil {
			return err
		}
	}
	for i := range l.config.Targets {
		read, err := l.documents.Read(ctx, l.config.Targets[i].Collection, aggregates)
		if err != nil {
			return err
		}
		for _, a := range l.accounts {
			if !a.begun {
				a.of[i].read = read[a.aggregate]
			}
		}
	}
	for _, a := range l.accounts {
		if !a.begun {
			a.begun, a.haltedAt = true, halted[a.aggregate]
		}
	}
	return nil
}

// decide adds what an event writes to recomputed documents, of which each is its own.
func (l *look) decide(ctx context.Context, a *account, e *contract.Event, writes []projection.Write, owners []*state) ([]projection.Write, []*state, error) {
	a.follow(e)
	discarded := l.discarded[e.ID]
	if discarded {
		a.discarded++
	}
	change, readErr := projection.Read(*e)
	if readErr == nil {
		change.Event.Data = nil
		change.Within(ctx)
	}
	for i := range a.of {
		s := &a.of[i]
		if s.failed != "" || s.ahead != "" || discarded && !s.whole {
			continue
		}
		decided, err := []projection.Write(nil), readErr
		if err == nil {
			decided, err = projection.Projections{l.config.Targets[i].Projection}.Decide(change)
		}
		due, at := a.due(s, e, l.manner), a.at(s, e)
		switch {
		case errors.Is(err, projection.ErrInterrupted):
			return nil, nil, context.Cause(ctx)
		case err != nil && at:
			s.failed = fmt.Sprintf("event %s of sequence %s: %s", e.ID, e.Sequence, err)
		case err != nil:
			s.ahead = fmt.Sprintf("event %s of sequence %s: %s", e.ID, e.Sequence, err)
		}
		for _, w := range decided {
			switch {
			case w.Passed:
			case w.Keyed || w.ID != any(e.AggregateID):
				return nil, nil, fmt.Errorf("projection %q writes documents of another key than the aggregate's id, which cannot be compared", w.Projection)
			case !due:
				if s.behind = s.behind || !s.read.Deleted; s.behind {
					continue
				}
				if s.behind, err = w.Makes(); err != nil { // interrupted
					return nil, nil, context.Cause(ctx)
				}
			default:
				l.documents.Recomputing(&w, s.id)
				s.wrote = true
				writes, owners = append(writes, w), append(owners, s)
			}
		}
	}
	return writes, owners, nil
}

// follow notes the next event of the source.
func (a *account) follow(e *contract.Event) {
	switch {
	case a.first == "":
		a.first, a.begins, a.source = e.Sequence, e.Version, e.Source
	case a.lacks == 0 && a.before.Known && e.Version.Known && e.Version.Number > a.before.Number+1:
		a.lacks = a.before.Number + 1
	}
	a.last, a.versioned, a.before = max(a.last, e.Sequence), e.Version.Known, e.Version
}

// at tells whether an event belongs to the document as it was read.
func (a *account) at(s *state, e *contract.Event) bool {
	switch {
	case !e.Version.Known:
		return true
	case s.read.Raw == nil:
		return a.open(e)
	}
	return e.Sequence <= s.read.Sequence
}

// due tells whether an event belongs to what is recomputed.
func (a *account) due(s *state, e *contract.Event, how manner) bool {
	return a.at(s, e) || how == forward && a.open(e)
}

// open tells whether an event is before that at which the aggregate is halted.
func (a *account) open(e *contract.Event) bool { return a.haltedAt == "" || e.Sequence < a.haltedAt }

// write stores writes of recomputed documents. One that is refused ends what is
// recomputed of its document.
func (l *look) write(ctx context.Context, writes []projection.Write, owners []*state) error {
	for len(writes) > 0 {
		outcomes, err := l.documents.Write(ctx, writes)
		if err == nil {
			return nil
		}
		rejected, is := errors.AsType[*delivery.RejectedError](err)
		if !is {
			return fmt.Errorf("recompute documents: %w", err)
		}
		e := writes[rejected.Index].Event
		refused := fmt.Sprintf("event %s of sequence %s: %s", e.ID, e.Sequence, rejected.Reason)
		if s := owners[rejected.Index]; s.read.Raw != nil && e.Version.Known && e.Sequence > s.read.Sequence {
			s.ahead = refused
		} else {
			s.failed = refused
		}
		var left []projection.Write
		var of []*state
		for i := range writes {
			if outcomes[i] == delivery.Unknown && owners[i].failed == "" && owners[i].ahead == "" {
				left, of = append(left, writes[i]), append(of, owners[i])
			}
		}
		writes, owners = left, of
	}
	return nil
}

// close judges the first accounts.
func (l *look) close(ctx context.Context, n int) error {
	closed := l.accounts[:n]
	l.accounts = l.accounts[n:]
	var ids []string
	for _, a := range closed {
		for i := range a.of {
			if a.of[i].wrote {
				ids = append(ids, a.of[i].id)
			}
		}
	}
	made, err := map[string]Document(nil), error(nil)
	if len(ids) > 0 {
		made, err = l.documents.Recomputed(ctx, ids)
	}
	if err != nil {
		return err
	}
	for _, a := range closed {
		verdicts := make([]Verdict, len(a.of))
		for i := range a.of {
			verdicts[i] = l.judge(a, &a.of[i], l.config.Targets[i], made[a.of[i].id])
		}
		if err := l.judged(a.aggregate, verdicts); err != nil {
			return err
		}
	}
	return nil
}
