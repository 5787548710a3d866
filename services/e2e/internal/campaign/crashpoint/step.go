package crashpoint

// Side is one of the servers.
type Side int

// The servers.
const (
	Mongo Side = iota
	ServiceBus
)

// Kind is one of the services.
type Kind int

// The services.
const (
	Publisher Kind = iota
	Projector
)

// Prelude is what has to happen for a step to come by at all.
type Prelude int

// The preludes.
const (
	// Work: the step is a part of the work.
	Work Prelude = iota
	// NewTerm: it is a part of taking over; the leader is killed for it.
	NewTerm
	// Handover: it is a part of stopping; the leader is asked to.
	Handover
	// Unmappable: it is a part of parking; the source gets changes that cannot
	// be mapped.
	Unmappable
	// Resending: it is a part of sending again; an operator asks for that.
	Resending
)

// Step is a moment in the life of a service at which it is killed.
type Step struct {
	Name    string
	Kind    Kind
	Side    Side
	Prelude Prelude
	// After: the server has handled the request, and the process is killed before
	// it has the answer. Otherwise it is killed before the server has the request.
	After bool
	// upTo is how often the step may come by before the process is killed.
	upTo int
	// request and answer tell the step's frames; one of them is nil.
	request, answer func(frame []byte) bool
}

// Steps are all the steps.
func Steps() []Step {
	var steps []Step
	// both is a step whose request, and whose answer, can be the last.
	both := func(s Step) {
		name := s.Name
		s.Name = name + ": before the server has it"
		steps = append(steps, s)
		s.Name, s.After = name+": before its answer is here", true
		steps = append(steps, s)
	}
	both(Step{Name: "take the lease", Prelude: NewTerm, upTo: 1, request: mongo("findAndModify", "leader_leases", upserts)})
	both(Step{Name: "claim the checkpoint", Prelude: NewTerm, upTo: 1, request: mongo("findAndModify", "resume_tokens", byPipeline)})
	both(Step{Name: "open the change stream", Prelude: NewTerm, upTo: 1, request: opensStream})
	both(Step{Name: "read changes", upTo: 20, request: readsStream})
	both(Step{Name: "send messages", Side: ServiceBus, upTo: 200, request: carriesChange})
	both(Step{Name: "save the checkpoint", upTo: 4, request: mongo("update", "resume_tokens", nil)})
	both(Step{Name: "renew the lease", upTo: 2, request: mongo("findAndModify", "leader_leases", renews)})
	both(Step{Name: "park a change", Prelude: Unmappable, upTo: 3, request: mongo("update", "parked_changes", nil)})
	both(Step{Name: "take a resend", Prelude: Resending, upTo: 1, request: mongo("findAndModify", resends, nil)})
	both(Step{Name: "save the progress of a resend", Prelude: Resending, upTo: 1, request: mongo("update", resends, nil)})
	both(Step{Name: "release the lease", Prelude: Handover, upTo: 1, request: mongo("update", "leader_leases", nil)})
	steps = append(steps,
		Step{Name: "accept a session: before the grant is here", Kind: Projector, Side: ServiceBus, upTo: 50, answer: granted},
		Step{Name: "receive messages: before they are here", Kind: Projector, Side: ServiceBus, upTo: 200, answer: carriesChange})
	both(Step{Name: "write to the read model", Kind: Projector, upTo: 50, request: mongo("update", "orders", nil)})
	both(Step{Name: "commit a batch of several collections", Kind: Projector, upTo: 50, request: mongo("commitTransaction", "", nil)})
	both(Step{Name: "complete a message", Kind: Projector, Side: ServiceBus, upTo: 200, request: settles})
	return steps
}

// mongo tells a command on a collection.
func mongo(name, collection string, and func(command) bool) func([]byte) bool {
	return func(message []byte) bool {
		c, ok := parseCommand(message)
		return ok && c.name == name && c.collection == collection && (and == nil || and(c))
	}
}

// opensStream tells the opening of a change stream, of a collection or of several.
func opensStream(message []byte) bool {
	c, ok := parseCommand(message)
	if !ok || c.name != "aggregate" {
		return false
	}
	_, err := c.body.LookupErr("pipeline", "0", "$changeStream")
	return err == nil
}

// readsStream tells a read from a change stream. That of several collections is one
// of their database, whose cursors are of no collection.
func readsStream(message []byte) bool {
	c, ok := parseCommand(message)
	return ok && c.name == "getMore" && (c.collection == "order_events" || c.collection == "$cmd.aggregate")
}

func upserts(c command) bool {
	upsert, _ := c.body.Lookup("upsert").BooleanOK()
	return upsert
}

// byPipeline tells a claim of the checkpoint, which computes the term, from a pin.
func byPipeline(c command) bool {
	_, ok := c.body.Lookup("update").ArrayOK()
	return ok
}

func renews(c command) bool { return !upserts(c) }

func granted(frame []byte) bool { return performative(frame) == attach }

func settles(frame []byte) bool { return performative(frame) == disposition }
