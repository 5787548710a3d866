//go:build !race

// One goroutine walks through millions of states: the race detector has nothing
// to see, and would make it ten times as slow.

package model

import (
	"strings"
	"testing"
)

// limit is more states than any of the machines has.
const limit = 6_000_000

func explore[S comparable](t *testing.T, m machine[S]) finding {
	t.Helper()
	found, err := search(m, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d states", found.states)
	return found
}

func holds[S comparable](t *testing.T, m machine[S]) {
	t.Helper()
	if found := explore(t, m); found.broken != "" {
		t.Errorf("broken: %s\n  %s", found.broken, strings.Join(found.way, "\n  "))
	}
}

func breaks[S comparable](t *testing.T, m machine[S], promise string) {
	t.Helper()
	found := explore(t, m)
	if found.broken != promise {
		t.Errorf("broken: got %q, want %q", found.broken, promise)
	}
	t.Logf("broken: %s\n  %s", found.broken, strings.Join(found.way, "\n  "))
}

func TestModel_WhoeverTrustsTheLeaseHoldsIt(t *testing.T) {
	t.Parallel()
	holds(t, electionMachine(allElectionGuards()))
}

func TestModel_TheTopicIsInOrderAndTheCheckpointTrueWhoeverLeads(t *testing.T) {
	t.Parallel()
	holds(t, publishingMachine(allPublishingGuards()))
}

func TestModel_TheReadModelAppliesEachChangeOnceInOrder(t *testing.T) {
	t.Parallel()
	holds(t, projectingMachine(allProjectingGuards()))
}

func TestModel_AStreamBeginsOnceAndPassesOnlyWhatIsKept(t *testing.T) {
	t.Parallel()
	holds(t, beginningMachine(allBeginningGuards()))
}

func TestModel_TheElectionNeedsEachGuard(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*electionGuards){
		"trust from before the call":   func(g *electionGuards) { g.fromBeforeTheCall = false },
		"a deadline below the TTL":     func(g *electionGuards) { g.deadlineBelowTTL = false },
		"a take only when it is over":  func(g *electionGuards) { g.onlyWhenOver = false },
		"the incarnation in the calls": func(g *electionGuards) { g.incarnation = false },
		"the tenure in the calls":      func(g *electionGuards) { g.tenure = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guards := allElectionGuards()
			cut(&guards)
			breaks(t, electionMachine(guards), "whoever trusts the lease holds it")
		})
	}
}

func TestModel_ThePublishingNeedsEachGuard(t *testing.T) {
	t.Parallel()
	const (
		order  = "an aggregate's changes first arrive in order"
		passes = "the checkpoint passes only what the topic has"
		back   = "the checkpoint never goes back"
	)
	for name, guard := range map[string]struct {
		cut    func(*publishingGuards)
		broken string
	}{
		"one send in flight in a lane":      {func(g *publishingGuards) { g.lane = false }, order},
		"failed sends stay at the front":    {func(g *publishingGuards) { g.front = false }, order},
		"the contiguous watermark":          {func(g *publishingGuards) { g.watermark = false }, passes},
		"the idle token when all is done":   {func(g *publishingGuards) { g.idle = false }, passes},
		"the token from the claim's answer": {func(g *publishingGuards) { g.claimIsTheRead = false }, back},
		"the term in the filter of a save":  {func(g *publishingGuards) { g.term = false }, back},
		"the number of a save":              {func(g *publishingGuards) { g.number = false }, back},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guards := allPublishingGuards()
			guard.cut(&guards)
			breaks(t, publishingMachine(guards), guard.broken)
		})
	}
}

func TestModel_TheProjectingNeedsEachGuard(t *testing.T) {
	t.Parallel()
	const (
		once    = "each change is applied once"
		order   = "changes are applied in order"
		applied = "what is completed is applied"
	)
	for name, guard := range map[string]struct {
		cut    func(*projectingGuards)
		broken string
	}{
		"the sequence in the filter of a write": {func(g *projectingGuards) { g.sequence = false }, once},
		"the tombstone of a deleted document":   {func(g *projectingGuards) { g.tombstone = false }, once},
		"complete after the write":              {func(g *projectingGuards) { g.writeFirst = false }, applied},
		"one batch at a time in a session":      {func(g *projectingGuards) { g.serial = false }, order},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guards := allProjectingGuards()
			guard.cut(&guards)
			breaks(t, projectingMachine(guards), guard.broken)
		})
	}
}

func TestModel_TheBeginningNeedsEachGuard(t *testing.T) {
	t.Parallel()
	for name, guard := range map[string]struct {
		cut    func(*beginningGuards)
		broken string
	}{
		"a checkpoint that is gone stops the stream":  {func(g *beginningGuards) { g.missing = false }, beginsOnce},
		"a claim makes no checkpoint that there was":  {func(g *beginningGuards) { g.create = false }, beginsOnce},
		"a record that is gone stops the stream":      {func(g *beginningGuards) { g.lost = false }, beginsOnce},
		"a ledger without record and checkpoint does": {func(g *beginningGuards) { g.ledger = false }, beginsOnce},
		"a new stream is the first in its topic":      {func(g *beginningGuards) { g.topic = false }, beginsOnce},
		"the claim in the filter of a save":           {func(g *beginningGuards) { g.claim = false }, passesKept},
		"a save that is gone refuses the next":        {func(g *beginningGuards) { g.behind = false }, passesKept},
		"what is parked counts a save":                {func(g *beginningGuards) { g.mark = false }, passesKept},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guards := allBeginningGuards()
			guard.cut(&guards)
			breaks(t, beginningMachine(guards), guard.broken)
		})
	}
}

func TestModel_WhoeverBeginsAnewFromAResendMissesNothing(t *testing.T) {
	t.Parallel()
	holds(t, resendingMachine(allResendingGuards()))
}

func TestModel_TheResendingNeedsEachGuard(t *testing.T) {
	t.Parallel()
	for name, guard := range map[string]struct {
		cut    func(*resendingGuards)
		broken string
	}{
		"an id of its own":                   {func(g *resendingGuards) { g.ids = false }, missesNothing},
		"what is handed on meanwhile":        {func(g *resendingGuards) { g.keep = false }, missesNothing},
		"that is kept before the time":       {func(g *resendingGuards) { g.first = false }, resentInOrder},
		"a time behind what was handed on":   {func(g *resendingGuards) { g.raise = false }, missesNothing},
		"nothing added to what goes on":      {func(g *resendingGuards) { g.open = false }, resentInOrder},
		"a chunk is saved when it is there":  {func(g *resendingGuards) { g.finish = false }, resentInOrder},
		"no earlier term goes on":            {func(g *resendingGuards) { g.fence = false }, missesNothing},
		"the term in the filter of progress": {func(g *resendingGuards) { g.term = false }, progressForward},
		"a chunk waits for the stream":       {func(g *resendingGuards) { g.behind = false }, overtakesNothing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guards := allResendingGuards()
			guard.cut(&guards)
			breaks(t, resendingMachine(guards), guard.broken)
		})
	}
}

func TestModel_ReadersSeeOldOrNewWhileAVersionIsBuiltAnew(t *testing.T) {
	t.Parallel()
	holds(t, rebuildingMachine(allRebuildingGuards()))
}

func TestModel_TheRebuildingNeedsEachGuard(t *testing.T) {
	t.Parallel()
	for name, guard := range map[string]struct {
		cut    func(*rebuildingGuards)
		broken string
	}{
		"every projector knows":                  {func(g *rebuildingGuards) { g.known = false }, readersGoOn},
		"a silent one looks first":               {func(g *rebuildingGuards) { g.silent = false }, readersGoOn},
		"live events in their place":             {func(g *rebuildingGuards) { g.next = false }, nextIsWhole},
		"it follows when the resend is done":     {func(g *rebuildingGuards) { g.resent = false }, readersGoOn},
		"and when all of it has arrived":         {func(g *rebuildingGuards) { g.arrived = false }, readersGoOn},
		"the current one is written to the end":  {func(g *rebuildingGuards) { g.both = false }, readersGoOn},
		"a number is given to one version alone": {func(g *rebuildingGuards) { g.number = false }, nextIsWhole},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guards := allRebuildingGuards()
			guard.cut(&guards)
			breaks(t, rebuildingMachine(guards), guard.broken)
		})
	}
}
