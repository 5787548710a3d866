package projector

import "changerelay/services/projector/internal/projection"

// Action is what becomes of an event that a projection cannot apply.
type Action string

// The actions.
const (
	// Halt halts the event's aggregate, for all projections: its events are parked in
	// order until somebody redrives them. Nothing is missing anywhere.
	Halt Action = "halt"
	// Skip leaves the event out of this projection's documents, records it with its whole
	// message, and applies what follows.
	Skip Action = "skip"
	// DeadLetter is Skip, and sends the message to the dead letters. It can be put back as
	// long as nothing later of its aggregate is applied.
	DeadLetter Action = "deadletter"
	// Stop leaves the message where it is, and has all projectors of the group take no
	// more sessions until somebody resumes.
	Stop Action = "stop"
)

// OnError says what becomes of events that a projection cannot apply, by what has
// failed. What it does not say is left to the setting ON_ERROR, and that to Halt.
//
// An event that is skipped is skipped for the projection that fails alone, and recorded
// once, in the transaction that moves the position over it. Its price is that later events
// are applied over the hole: a sum is too low, a state may be one that never existed,
// until the code is mended and the documents are rebuilt. Where one of several projections
// that fail says Halt or Stop, none applies the event. A redrive follows no policy: it
// stops at what fails.
//
// Another OnError is no other projection: it needs no new Revision. See
// docs/projections.md, "What becomes of an event that fails".
type OnError struct {
	// Evaluate is for an event about which Decide returns an error, panics, takes too long
	// or goes beyond the bounds.
	Evaluate Action
	// Store is for one whose writes the read database refuses for what they say.
	Store Action
	// Crash is for one of which as many processes have died as CRASH_LIMIT says. It has
	// failed for every projection that follows it.
	Crash Action
}

// policy is what is said.
func (o OnError) policy() projection.Policy {
	said := projection.Policy{}
	for class, action := range map[projection.Class]Action{projection.Evaluate: o.Evaluate, projection.Store: o.Store, projection.Crash: o.Crash} {
		if action != "" {
			said[class] = projection.Action(action)
		}
	}
	return said
}
