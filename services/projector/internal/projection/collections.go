package projection

import (
	"slices"
	"strings"
)

// The projector's own collections in the read database.
const (
	// ParkedMessages holds messages that could not be projected, and all later
	// ones of the same aggregates.
	ParkedMessages = "parked_messages"
	// HaltedAggregates names the aggregates that have parked messages.
	HaltedAggregates = "halted_aggregates"
	// Processes are the running projectors, and Attempts what they were about to
	// apply, noted after one of them has died.
	Processes = "projector_processes"
	Attempts  = "apply_attempts"
	// Positions holds, for each projection with a key of its own and each
	// aggregate, how far its events are applied; all groups share that. Beside it
	// each group keeps there which events were discarded, which aggregates are halted,
	// which sources go on from others and, where it waits for gaps, the last versions of
	// aggregates.
	Positions = "applied_positions"
	// SkippedEvents are events that projections do not apply, by their policies.
	SkippedEvents = "skipped_events"
	// Recomputed holds documents that are recomputed to be compared, and that no reader
	// sees.
	Recomputed = "recomputed_documents"
	// Owners names the group that each read collection belongs to and that each
	// subscription feeds, and Decisions is the ledger of what operators have decided.
	// All groups share both.
	Owners    = "collection_owners"
	Decisions = "projector_ledger"
)

// SharedCollections are the projector's own collections that all groups share.
func SharedCollections() []string { return []string{Owners, Decisions} }

// GroupCollections are the projector's own collections that each group has for itself, so
// that what fails in one group holds up no other.
func GroupCollections() []string {
	return []string{ParkedMessages, HaltedAggregates, Processes, Attempts, Positions, SkippedEvents, Recomputed}
}

// OfGroup is the name that a collection of GroupCollections has in a group.
func OfGroup(name, group string) string {
	if group == "" {
		return name
	}
	return name + "." + group
}

// badCollection says what keeps a name from being a read model's collection.
func badCollection(name string) string {
	if name == "" {
		return "is missing"
	}
	if strings.ContainsAny(name, "$\x00") || strings.HasPrefix(name, "system.") || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") {
		return "is not a valid name"
	}
	stem, _, _ := strings.Cut(name, ".")
	if slices.Contains(slices.Concat(GroupCollections(), SharedCollections()), stem) {
		return "is the projector's own"
	}
	return ""
}
