package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// beginningGuards are the guards that tell a read model which began in the middle of an
// aggregate from a whole one.
func beginningGuards() []guard.Guard {
	const conforms, resent = "TestStore_StoreConforms", "TestBegins_WhatIsResentFromBeforeIsCountedAndListed"
	live := []string{"TestBegins_ALiveEventFromBeforeHaltsItsAggregate"}
	return []guard.Guard{
		{
			Name:    "beginning: a document keeps the event that it began with",
			File:    readmodel + "/model.go",
			Cut:     `update = with(update, "$setOnInsert", beginning(bookkeeping+"."+begun, first)...)`,
			With:    `update = with(update, "$set", beginning(bookkeeping+"."+begun, first)...)`,
			Package: readmodel,
			Tests:   []string{conforms},
		},
		{
			Name:    "beginning: a document notes the event that it began with",
			File:    readmodel + "/model.go",
			Cut:     "if first != nil {",
			With:    "if first != nil && first.AggregateID == bookkeeping {",
			Package: app,
			Tests:   live,
		},
		{
			Name:    "beginning: the ledger notes the event that an aggregate began with",
			File:    readmodel + "/ledger.go",
			Cut:     `with(position, "$setOnInsert", beginning(begun, first)...)`,
			With:    `with(position, "$setOnInsert", beginning(begun, first)[:0]...)`,
			Package: app,
			Tests:   live,
		},
		{
			Name:    "beginning: a position that is set field by field ends a tombstone",
			File:    readmodel + "/model.go",
			Cut:     `unset = append(unset, bson.E{Key: bookkeeping + "." + name, Value: ""})`,
			With:    `_ = append(unset, bson.E{Key: bookkeeping + "." + name, Value: ""})`,
			Package: readmodel,
			Tests:   []string{"TestBegins_APositionLeavesNothingElseOfTheOneBefore"},
		},
		{
			Name:    "beginning: a live event from before is no repeat",
			File:    readmodel + "/begins.go",
			Cut:     "if lack && live {",
			With:    "if lack && live && first == w.Event.Sequence {",
			Package: app,
			Tests:   live,
		},
		{
			Name:    "beginning: a resent event from before is noted",
			File:    readmodel + "/begins.go",
			Cut:     "lacking = append(lacking, w)",
			With:    "_ = append(lacking, w)",
			Package: app,
			Tests:   []string{resent},
		},
		{
			Name:    "beginning: an event that made no document when it came is a repeat",
			File:    readmodel + "/begins.go",
			Cut:     "return w.Makes()",
			With:    "return true, nil",
			Package: readmodel,
			Tests:   []string{conforms},
		},
		{
			Name:    "beginning: of events without versions nothing is said",
			File:    readmodel + "/begins.go",
			Cut:     "if !e.Version.Known {",
			With:    "if e.Sequence == \"\" {",
			Package: readmodel,
			Tests:   []string{"TestBegins_EventsWithoutVersionsNoteNoBeginning"},
		},
		{
			Name:    "beginning: what an operator has discarded is not missed",
			File:    readmodel + "/begins.go",
			Cut:     "if discarded {",
			With:    "if discarded && w.Delete {",
			Package: app,
			Tests:   live,
		},
		{
			Name:    "beginning: an aggregate that has begun anew lacks nothing",
			File:    readmodel + "/begins.go",
			Cut:     "!l.Within && l.First <= l.Missing ||",
			With:    "!l.Within && l.First == \"\" ||",
			Package: app,
			Tests:   []string{"TestBegins_ADocumentThatIsResentTooLateIsBegunAnew"},
		},
		{
			Name:    "beginning: what was deleted since is not missed",
			File:    readmodel + "/begins.go",
			Cut:     " || l.Latest <= l.Deleted",
			With:    "",
			Package: readmodel,
			Tests:   []string{"TestBegins_WhatADeletionEndsIsNotMissed"},
		},
		{
			Name:    "beginning: what an operator has accepted is not said again",
			File:    readmodel + "/begins.go",
			Cut:     " || l.accepted() {",
			With:    " {",
			Package: app,
			Tests:   []string{resent},
		},
		{
			Name:    "switch: a version that began later lacks what was before",
			File:    command + "/versions.go",
			Cut:     "if len(late) > 0 {",
			With:    "if len(late) > maxBehind {",
			Package: app,
			Tests:   []string{"TestSwitch_IsRefusedForAVersionThatBeganLater"},
		},
		{
			Name:    "switch: a version that lacks what was resent is not seen",
			File:    command + "/versions.go",
			Cut:     "if len(lacking) > 0 {",
			With:    "if len(lacking) > maxBehind {",
			Package: app,
			Tests:   []string{"TestSwitch_IsRefusedForAVersionThatLacksWhatWasResent"},
		},
		{
			Name:    "switch: events that make no document do not make a version begin later",
			File:    readmodel + "/begins.go",
			Cut:     `or(none("entry"), after(entry)),`,
			With:    `or(none("entry"), after(document)),`,
			Package: app,
			Tests:   []string{"TestSwitch_AVersionThatDoesNotFollowTheFirstEventsIsNoLater"},
		},
		{
			Name:    "begins: status tells of those that no redrive helps",
			File:    command + "/statuscommand.go",
			Cut:     "if len(begun) > 0 {",
			With:    "if len(begun) < 0 {",
			Package: app,
			Tests:   []string{"TestBegins_TheWayBackThatIsNamedWorks"},
		},
		{
			Name:    "begins: the doctor tells of those that no redrive helps",
			File:    internal + "doctor/database.go",
			Cut:     "f.add(d.Early > 0, Fault,",
			With:    "f.add(d.Early < 0, Fault,",
			Package: app,
			Tests:   []string{"TestBegins_TheWayBackThatIsNamedWorks"},
		},
	}
}
