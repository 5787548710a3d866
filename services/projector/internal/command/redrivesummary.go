package command

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"changerelay/services/projector/internal/delivery"
)

// mostReasons bounds the kinds of reasons that a summary tells apart.
const mostReasons = 20

// otherReasons are those beyond.
const otherReasons = "other reasons"

// reasonKind are the reasons of one kind.
type reasonKind struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	// Example is the whole text of the first.
	Example string `json:"example"`
}

// tally counts by kind why something was not done, the most frequent kind first.
type tally []reasonKind

func (r *tally) add(reason string) {
	kind := kindOf(reason)
	at := r.find(kind)
	if at < 0 && len(*r) >= mostReasons {
		kind = otherReasons
		at = r.find(kind)
	}
	if at < 0 {
		*r = append(*r, reasonKind{Kind: kind, Example: reason})
		at = len(*r) - 1
	}
	(*r)[at].Count++
	slices.SortStableFunc(*r, func(a, b reasonKind) int { return cmp.Compare(b.Count, a.Count) })
}

func (r *tally) find(kind string) int {
	return slices.IndexFunc(*r, func(k reasonKind) bool { return k.Kind == kind })
}

// particular is what a reason says of one aggregate or event: quoted texts, but for the
// names of projections and types of events, the aggregate of a command, and numbers.
var particular = regexp.MustCompile(`((?:projection|event type) )?("(?:[^"\\]|\\.)*")|--aggregate (?:'(?:[^']|'\\'')*'|\S+)|\b\d[\d:.TZ-]*\b`)

// kindOf is a reason without what is particular to an aggregate or event.
func kindOf(reason string) string {
	return particular.ReplaceAllStringFunc(reason, func(part string) string {
		if strings.HasPrefix(part, "projection ") || strings.HasPrefix(part, "event type ") {
			return part
		}
		return "…"
	})
}

// redriveSummary is the last line of a redrive of all aggregates.
type redriveSummary struct {
	Step       string `json:"step"` // done
	Aggregates int    `json:"aggregates"`
	Lifted     int    `json:"lifted"`
	Applied    int    `json:"applied"`
	Repeated   int    `json:"repeated"`
	PassedBy   int    `json:"passed_by"`
	Lost       int    `json:"lost,omitempty"`
	// StillHalted are those that stopped, and Reasons say why, by kind.
	StillHalted int   `json:"still_halted"`
	Reasons     tally `json:"reasons,omitempty"`
	DryRun      bool  `json:"dry_run,omitempty"`
}

func (s *redriveSummary) add(done delivery.Redriven) {
	s.Aggregates++
	s.Applied, s.Repeated, s.PassedBy, s.Lost = s.Applied+done.Applied, s.Repeated+done.Repeated, s.PassedBy+done.PassedBy, s.Lost+done.Lost
	if done.Lifted {
		s.Lifted++
		return
	}
	s.StillHalted++
	if done.Reason != "" {
		s.Reasons.add(done.Reason)
	}
}

// returnSummary is the last line of a dlq redrive of all.
type returnSummary struct {
	redriveSummary
	DeadLetters int `json:"dead_letters"`
	// Fates count the dead letters by what became of them.
	Fates map[delivery.ReturnFate]int `json:"fates"`
}

func (s *returnSummary) tell(one *delivery.Return) {
	s.DeadLetters++
	if s.Fates == nil {
		s.Fates = map[delivery.ReturnFate]int{}
	}
	s.Fates[one.Fate]++
	if one.Reason != "" {
		s.Reasons.add(one.Reason)
	}
}
