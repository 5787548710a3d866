package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// positionGuards are the guards of positions that are lost.
func positionGuards() []guard.Guard {
	return []guard.Guard{
		{
			Name:    "positions: without any no aggregate is begun anew",
			File:    readmodel + "/positions.go",
			Cut:     "if len(all) > 0 {",
			With:    "if len(all) < 0 {",
			Package: readmodel,
			Tests:   []string{"TestPositions_WithoutThemNothingIsCountedAgain"},
		},
		{
			Name:    "positions: an event that is passed by makes none unseen",
			File:    readmodel + "/ledger.go",
			Cut:     "places, time.Now(), false)",
			With:    "places, time.Now(), true)",
			Package: readmodel,
			Tests:   []string{"TestPositions_WithoutThemNothingIsCountedAgain"},
		},
		{
			Name:    "positions: a document that shows the event is left alone",
			File:    readmodel + "/ledger.go",
			Cut:     ", u.unapplied(writes)}",
			With:    "}",
			Package: readmodel,
			Tests:   []string{"TestPositions_OneThatIsLostIsMissedByItsDocument"},
		},
		{
			Name:    "positions: of writes that go together the right one is blamed",
			File:    readmodel + "/refusal.go",
			Cut:     "sent = refusal.failed.writes\n",
			With:    "sent = refusal.failed.writes[:1]\n",
			Package: readmodel,
			Tests:   []string{"TestPositions_OneThatIsLostIsMissedByItsDocument"},
		},
		{
			Name:    "positions: a projector that has lost them does not start",
			File:    app + "/app.go",
			Cut:     "if err := a.checkPositions(ctx); err != nil {",
			With:    "if err := ctx.Err(); err != nil {",
			Package: app,
			Tests:   []string{"TestPositions_AProjectorThatHasLostThemStopsAndCountsNothingAgain"},
		},
		{
			Name:    "positions: a projector that has lost them stops",
			File:    app + "/place.go",
			Cut:     "if err := a.checkPositions(ctx); errors.Is(err, readmodel.ErrPositionsLost) {",
			With:    "if err := ctx.Err(); errors.Is(err, readmodel.ErrPositionsLost) {",
			Package: app,
			Tests:   []string{"TestPositions_AProjectorThatHasLostThemStopsAndCountsNothingAgain"},
		},
	}
}

// suspectGuards are the guards of documents that may tell that positions are lost.
func suspectGuards() []guard.Guard {
	const stray = "TestPositions_OneStrayDocumentIsNoProof"
	return []guard.Guard{
		{
			Name:    "positions: one document beside positions is no proof",
			File:    readmodel + "/suspects.go",
			Cut:     "if len(found) == 1 {",
			With:    "if len(found) == 0 {",
			Package: app,
			Tests:   []string{"TestPositions_AStrayDocumentIsNamedAndStopsNobody"},
		},
		{
			Name:    "positions: one document without any position is proof",
			File:    readmodel + "/suspects.go",
			Cut:     "err != nil || some {",
			With:    "err != nil || some || !some {",
			Package: readmodel,
			Tests:   []string{"TestPositions_AreCarriedOverToAnotherName"},
		},
		{
			Name:    "positions: what a look has found another remembers",
			File:    readmodel + "/suspects.go",
			Cut:     "s.found[name] = one",
			With:    "_ = one",
			Package: readmodel,
			Tests:   []string{stray},
		},
		{
			Name:    "positions: what is gone is suspected no more",
			File:    readmodel + "/suspects.go",
			Cut:     "found := map[string]suspect{}",
			With:    "found := map[string]suspect{}\n\tfor _, known := range s.suspects.of(part.Name) {\n\t\tfound[\"known\"] = known\n\t}",
			Package: readmodel,
			Tests:   []string{stray},
		},
		{
			Name:    "positions: a document that was found twice is one",
			File:    readmodel + "/suspects.go",
			Cut:     "found[fmt.Sprint(look.collection, d.Document)]",
			With:    "found[fmt.Sprint(len(found))]",
			Package: readmodel,
			Tests:   []string{stray},
		},
		{
			Name:    "positions: a document is warned of once",
			File:    app + "/place.go",
			Cut:     "if !a.warned[document] {",
			With:    "for range 2 {",
			Package: app,
			Tests:   []string{"TestPositions_AStrayDocumentIsNamedAndStopsNobody"},
		},
	}
}

// seenGuards are the guards of transactions that dead processes have left open.
func seenGuards() []guard.Guard {
	return []guard.Guard{
		{
			Name:    "idle: a transaction looks for a dead one in its way",
			File:    readmodel + "/transaction.go",
			Cut:     "if reply.Has(err, reply.WriteConflict) &&",
			With:    "if reply.Has(err, reply.DuplicateKey) &&",
			Package: readmodel,
			Tests:   []string{"TestIdle_ATransactionOfADeadProjectorIsEnded"},
		},
		{
			Name:    "idle: a single write looks for a dead transaction in its way",
			File:    readmodel + "/writes.go",
			Cut:     "if reply.Has(err, maxTimeExpired) &&",
			With:    "if reply.Has(err, reply.DuplicateKey) &&",
			Package: readmodel,
			Tests:   []string{"TestIdle_ATransactionOfADeadProjectorIsEnded"},
		},
		{
			Name:    "idle: transactions of others are left alone",
			File:    readmodel + "/transaction.go",
			Cut:     "{Key: \"appName\", Value: Application},\n",
			With:    "",
			Package: readmodel,
			Tests:   []string{"TestIdle_ATransactionOfTheLivingIsLeftAlone"},
		},
		{
			Name:    "idle: a transaction that works is left alone",
			File:    readmodel + "/transaction.go",
			Cut:     "Value: idleFor.Microseconds()",
			With:    "Value: 0 * idleFor.Microseconds()",
			Package: readmodel,
			Tests:   []string{"TestIdle_ATransactionOfTheLivingIsLeftAlone"},
		},
		{
			Name:    "idle: what is ended is logged and counted",
			File:    readmodel + "/transaction.go",
			Cut:     "s.ended(len(sessions))",
			With:    "_ = s.ended",
			Package: app,
			Tests:   []string{"TestIdle_ATransactionThatIsEndedIsLoggedAndCounted"},
		},
	}
}
