package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// storeGuards are the guards of the read models and their versions.
func storeGuards() []guard.Guard {
	return []guard.Guard{
		{
			Name:    "write: without a majority nothing is applied, whatever else is refused",
			File:    readmodel + "/bulkwriter.go",
			Cut:     " || bulk.WriteConcernError != nil",
			With:    "",
			Package: readmodel,
			Tests:   []string{"TestStore_WithoutAMajorityNothingBeforeARefusedWriteIsApplied"},
		},
		{
			Name:    "coalesce: pushes that keep different numbers are not coalesced",
			File:    readmodel + "/coalesce.go",
			Cut:     "!ok || !same || last != other",
			With:    "!ok || !same || last > 0 && other > 0",
			Package: app,
			Tests:   []string{"TestProjection_PushesThatKeepDifferentNumbersAreNotFolded"},
		},
		{
			Name:    "read model: a write matches a lower sequence only",
			File:    readmodel + "/model.go",
			Cut:     `{Key: bookkeeping + ".sequence", Value: bson.D{{Key: "$lt", Value: below}}},`,
			With:    "",
			Package: readmodel,
			Tests:   []string{"TestStore_StoreConforms"},
		},
		{
			Name:    "read model: a deleted document leaves its sequence behind",
			File:    readmodel + "/model.go",
			Cut:     "SetReplacement(bson.D{{Key: bookkeeping, Value: relay}})",
			With:    "SetReplacement(bson.D{})",
			Package: readmodel,
			Tests:   []string{"TestStore_StoreConforms"},
		},
		{
			Name:    "read model: a duplicate key of another index is no repeat",
			File:    readmodel + "/bulkwriter.go",
			Cut:     "failure.Code == reply.DuplicateKey && !reply.OfAnotherIndex(failure.WriteError):",
			With:    "failure.Code == reply.DuplicateKey:",
			Package: readmodel,
			Tests:   []string{"TestStore_AnotherUniqueIndexIsNotTakenForARepeat"},
		},
		{
			Name:    "read model: another event with the same sequence is no repeat",
			File:    readmodel + "/bulkwriter.go",
			Cut:     "return e.Sequence == at.Sequence && e.ID != at.EventID && !another(e, at)",
			With:    "return false",
			Package: readmodel,
			Tests:   []string{"TestStore_StoreConforms"},
		},
		{
			Name:    "read model: the ledger moves only from below the event",
			File:    readmodel + "/ledger.go",
			Cut:     `Value: bson.D{{Key: "$lt", Value: e.Sequence}}`,
			With:    `Value: bson.D{{Key: "$ne", Value: e.Sequence + "+"}}`,
			Package: readmodel,
			Tests:   []string{"TestLedger_TotalsCountOnceWhereverTheProcessDies"},
		},
		{
			Name:    "read model: a halt marks the read documents",
			File:    readmodel + "/parking.go",
			Cut:     "return s.halts.mark(ctx, e.AggregateID, &mark)",
			With:    "return nil",
			Package: readmodel,
			Tests:   []string{"TestStore_StoreConforms"},
		},
		{
			Name:    "read model: what is written under a halt keeps its mark",
			File:    readmodel + "/model.go",
			Cut:     "if w.Halted != nil {",
			With:    "if false {",
			Package: readmodel,
			Tests:   []string{"TestStore_StoreConforms"},
		},
		{
			Name:    "read model: a halt is lifted together with its mark",
			File:    readmodel + "/parked.go",
			Cut:     "return s.halts.unmark(ctx, aggregate)",
			With:    "return nil",
			Package: readmodel,
			Tests:   []string{"TestStore_StoreConforms"},
		},
		{
			Name:    "versions: one that has not caught up is not switched to",
			File:    command + "/versions.go",
			Cut:     "if err != nil || len(left) == 0 {",
			With:    "if err != nil || len(left) >= 0 {",
			Package: app,
			Tests:   []string{"TestVersions_AVersionIsSwitchedToOnceItHasCaughtUp"},
		},
		{
			Name:    "versions: a halt of one group is none of another",
			File:    projection + "/collections.go",
			Cut:     `return name + "." + group`,
			With:    "return name",
			Package: readmodel,
			Tests:   []string{"TestGroup_HaltsOfOneGroupHoldUpNoOther"},
		},
	}
}
