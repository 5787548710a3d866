package projection

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Bounds of what code decides about one event.
const (
	// maxDecision is how long it may take.
	maxDecision = 10 * time.Second
	// maxWritten is how many bytes all updates of an event may have, encoded. A document
	// cannot be larger.
	maxWritten = 16 << 20
)

// Code is what a projection in Go says of itself.
type Code struct {
	Name, Collection string
	// Version is 0 for a projection that has none.
	Version int
	// Revision names what Decide does, since nothing else tells two programs apart.
	Revision string
	// Types are the event types that it follows; without any it follows all.
	Types []string
	// Shared: documents have keys of their own, and many aggregates may change one.
	Shared bool
	// OnError says what becomes of an event that it cannot apply.
	OnError Policy
	// State: Decide is told the document as it is.
	State bool
	// Decide returns writes of which ID, and Delete or an Update of something are set. state is nil where
	// there is no document, or where it is not asked for. It is called from many
	// goroutines, and may panic.
	Decide func(c *Change, state bson.Raw) ([]Write, error)
}

// Coded is a projection in Go. Whatever its code does, Coded decides like any other
// projection, as long as the process lives: a panic, a decision that does not come, or
// one that is too large, is an error.
type Coded struct {
	frame
	code Code
	// told is told of panics; nil for nobody.
	told func(*PanicError)
}

var (
	_ Projection = (*Coded)(nil)
	_ Renumbered = (*Coded)(nil)
	_ described  = (*Coded)(nil)
)

// PanicError is a panic of a projection's code.
type PanicError struct {
	Projection, EventID, EventType, AggregateID string
	Value                                       any
	Stack                                       []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// NewCoded returns a projection in Go, or everything that is wrong with what it says.
func NewCoded(code Code) (*Coded, error) {
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("projection %q in Go: "+format, append([]any{code.Name}, args...)...))
	}
	if code.Name == "" {
		bad("it has no name")
	}
	if problem := badCollection(code.Collection); problem != "" {
		bad("collection %q %s", code.Collection, problem)
	}
	if code.Version < 0 || code.Version > maxVersion {
		bad("version %d is not between 1 and %d, or 0 for none", code.Version, maxVersion)
	}
	if code.Revision == "" {
		bad("it has no revision, which tells it from what it does after a change")
	}
	if slices.Contains(code.Types, "") {
		bad("an event type is empty")
	}
	if code.Shared && code.State {
		bad("%s", stateOfMany)
	}
	for _, problem := range code.OnError.problems() {
		bad("OnError: %s", problem)
	}
	if code.Decide == nil {
		bad("it does not decide")
	}
	code.Types = slices.Compact(slices.Sorted(slices.Values(code.Types)))
	return &Coded{frame: frame{code.Name, code.Collection, code.Shared, code.Version, code.OnError}, code: code}, errors.Join(problems...)
}

// Renumbered implements Renumbered.
func (p *Coded) Renumbered(number int) Projection {
	again := *p
	again.version = number
	return &again
}

// Types are the event types that the projection follows, sorted; nil for all.
func (p *Coded) Types() []string { return p.code.Types }

// says is all that tells the projection from what it was before.
func (p *Coded) says() string {
	return fmt.Sprintf("go %q %q %t %t", p.code.Revision, p.code.Types, p.code.Shared, p.code.State)
}

// keyText stands for the key, which is nowhere written down.
func (p *Coded) keyText() string {
	if p.keyed {
		return "(in Go)"
	}
	return ""
}

// Telling returns the projections, of which those in Go tell of panics.
func (ps Projections) Telling(told func(*PanicError)) Projections {
	all := slices.Clone(ps)
	for i, p := range all {
		if coded, is := p.(*Coded); is {
			again := *coded
			again.told = told
			all[i] = &again
		}
	}
	return all
}

// Decide implements Projection.
func (p *Coded) Decide(c *Change) ([]Write, error) {
	if p.code.Types != nil && !slices.Contains(p.code.Types, c.Type) {
		return p.passed(c, nil), nil
	}
	blank := p.blank(c)
	if p.code.State {
		blank.Complete = func(document bson.Raw) (Write, error) {
			writes, err := p.run(c, document)
			if err != nil {
				return Write{}, about(p, c, err)
			}
			return p.own(c, writes), nil
		}
		return p.passed(c, &blank), nil
	}
	writes, err := p.run(c, nil)
	if err != nil {
		return nil, err
	}
	if len(writes) == 0 {
		blank.Kept = true
		return p.passed(c, &blank), nil
	}
	return writes, nil
}

// own is the write among at most one.
func (p *Coded) own(c *Change, writes []Write) Write {
	if len(writes) == 1 {
		return writes[0]
	}
	kept := p.blank(c)
	kept.Kept = true
	return kept
}

// decision is what came of running the code.
type decision struct {
	writes []Write
	err    error
}

// run runs the code in a goroutine of its own, since nothing else ends a decision that
// does not come: such a goroutine is left to itself.
func (p *Coded) run(c *Change, state bson.Raw) ([]Write, error) {
	ctx := c.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	if ctx.Err() != nil {
		return nil, ErrInterrupted
	}
	decided := make(chan decision, 1)
	go p.decide(c, state, decided)
	timer := time.NewTimer(maxDecision)
	defer timer.Stop()
	select {
	case d := <-decided:
		return d.writes, d.err
	case <-ctx.Done():
		return nil, ErrInterrupted
	case <-timer.C:
		return nil, fmt.Errorf("takes more than %s", maxDecision)
	}
}

func (p *Coded) decide(c *Change, state bson.Raw, decided chan<- decision) {
	var d decision
	returned := false
	defer func() {
		if !returned {
			value := recover() // nil where the goroutine was ended by runtime.Goexit
			panicked := &PanicError{p.Name(), c.ID, c.Type, c.AggregateID, value, debug.Stack()}
			if p.told != nil {
				p.told(panicked)
			}
			d = decision{nil, panicked}
		}
		decided <- d
	}()
	d.writes, d.err = p.code.Decide(c, state)
	if d.err == nil {
		d.err = p.complete(c, d.writes)
	}
	returned = true
}

// complete checks what the code has decided, and adds what every write has.
func (p *Coded) complete(c *Change, writes []Write) error {
	switch {
	case !p.keyed && len(writes) > 1:
		return fmt.Errorf("%d writes: without keys of its own a projection has one document for each aggregate", len(writes))
	case len(writes) > maxElements:
		return fmt.Errorf("%d writes, and one event may have at most %d", len(writes), maxElements)
	}
	size := 0
	for i := range writes {
		made := p.blank(c)
		made.ID, made.Update, made.Delete = writes[i].ID, writes[i].Update, writes[i].Delete
		if err := p.checkID(c, made.ID); err != nil {
			return err
		}
		n, err := made.size()
		if err != nil {
			return fmt.Errorf("the update of document %v: %w", made.ID, err)
		}
		if size += n; size > maxWritten {
			return fmt.Errorf("updates of more than %d bytes", maxWritten)
		}
		writes[i] = made
	}
	return nil
}

// size is how many bytes an update has, which must not be nested too deeply.
func (w *Write) size() (int, error) {
	if w.Delete {
		return 0, nil
	}
	raw, err := bson.Marshal(w.Update)
	if err == nil {
		err = bounded(raw, maxDepth)
	}
	return len(raw), err
}

// checkID tells what is wrong with the _id of a document.
func (p *Coded) checkID(c *Change, id any) error {
	if !p.keyed {
		if id != any(c.AggregateID) {
			return fmt.Errorf("a write of document %v: without keys of its own a projection writes that of the event's aggregate, %q", id, c.AggregateID)
		}
		return nil
	}
	switch id := id.(type) {
	case int, int32, int64, bson.ObjectID:
		return nil
	case string:
		if !strings.ContainsRune(id, 0) {
			return nil
		}
	}
	return fmt.Errorf("the _id of a document is of type %T, not a string, a whole number or an object id", id)
}
