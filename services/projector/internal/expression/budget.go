package expression

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// What one evaluation may take. Steps and sizes are the same in each replay; the
// time is for what no count foresees.
const (
	maxSteps    = 3_000_000
	maxMade     = 64 << 20 // bytes of all values that are made on the way
	maxResult   = 16 << 20 // bytes of what is stored: no document holds more
	maxTextSize = 16 << 20
	maxDepth    = 1000
	maxTime     = 10 * time.Second
	// checkEvery is how many steps go by without a look at context and clock.
	checkEvery = 256
	// bytesPerStep is how many bytes of text a function goes through in a step.
	bytesPerStep = 64
)

// Sizes of values, in bytes, as far as it matters for a bound.
const (
	slotSize  = 32 // of an element of a list
	entrySize = 64 // of an entry of a map, without its key
)

// ErrInterrupted means that an evaluation was stopped from outside: nothing is
// said about the event.
var ErrInterrupted = errors.New("interrupted")

// boundError says which bound an evaluation has met.
type boundError string

func (b boundError) Error() string { return string(b) }

func exceeds(format string, bound any) error { return boundError(fmt.Sprintf(format, bound)) }

var (
	errTooManySteps = exceeds("takes more than %d steps", maxSteps)
	errTooMuchMade  = exceeds("makes values of more than %d bytes on the way", maxMade)
	errResultTooBig = exceeds("makes a result of more than %d bytes", maxResult)
	errTextTooBig   = exceeds("makes a text of more than %d bytes", maxTextSize)
	errTooDeep      = exceeds("goes through values nested deeper than %d levels", maxDepth)
	errTooLong      = exceeds("takes longer than %s", maxTime)
)

// Spent is what a series of evaluations that share their bounds has used so far. The zero
// Spent is before the first.
type Spent struct {
	began               time.Time
	steps, made, result int
}

// budget is one evaluation's account of what it takes.
type budget struct {
	ctx   context.Context // nil where nothing interrupts
	clock func() time.Time
	*Spent
}

func newBudget(ctx context.Context, clock func() time.Time, spent *Spent) budget {
	if spent == nil {
		spent = &Spent{}
	}
	if spent.began.IsZero() {
		spent.began = clock()
	}
	return budget{ctx, clock, spent}
}

// spend takes steps, before they are done.
func (b *budget) spend(steps int) error {
	if steps > maxSteps-b.steps {
		return errTooManySteps
	}
	before := b.steps / checkEvery
	if b.steps += steps; b.steps/checkEvery == before {
		return nil
	}
	switch {
	case b.ctx != nil && b.ctx.Err() != nil:
		return ErrInterrupted
	case b.clock().Sub(b.began) > maxTime:
		return errTooLong
	}
	return nil
}

// make takes memory, before it is used, and the steps of filling it.
func (b *budget) make(bytes int) error {
	if bytes > maxMade-b.made {
		return errTooMuchMade
	}
	b.made += bytes
	return b.spend(1 + bytes/bytesPerStep)
}

// text is make for a text.
func (b *budget) text(bytes int) error {
	if bytes > maxTextSize {
		return errTextTooBig
	}
	return b.make(bytes)
}

// list is make for a list of n elements.
func (b *budget) list(n int) error {
	if n > maxMade/slotSize {
		return errTooMuchMade
	}
	return b.make(n * slotSize)
}

// scan takes the steps of going through texts.
func (b *budget) scan(texts ...string) error {
	bytes := 0
	for _, text := range texts {
		bytes += len(text)
	}
	return b.spend(1 + bytes/bytesPerStep)
}

// stored takes room in the result.
func (b *budget) stored(bytes int) error {
	if bytes > maxResult-b.result {
		return errResultTooBig
	}
	b.result += bytes
	return b.spend(1 + bytes/bytesPerStep)
}
