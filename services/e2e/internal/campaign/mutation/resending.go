package mutation

// resending are the guards of what is sent again beside the stream.
func resending() []Guard {
	const (
		resend  = "services/publisher/internal/resend"
		anew    = "TestResend_WhoeverBeginsAnewMissesNothing"
		earlier = "TestResends_NoEarlierTermTakesOrSavesOne"
	)
	return []Guard{
		{
			Name:    "resend: a role that may not see resends publishes all the same",
			File:    leading + "/resend.go",
			Cut:     "if mongostate.Forbidden(err) {",
			With:    "if mongostate.Forbidden(err) && ctx == nil {",
			Package: publisher,
			Tests:   []string{"TestResend_ARoleThatMayNotSeeResendsPublishes"},
		},
		{
			Name:    "resend: Atlas says in its own code what a role may not do",
			File:    state + "/purge.go",
			Cut:     "8000, // AtlasError",
			With:    "",
			Package: publisher,
			Tests:   []string{"TestResend_ARoleThatMayNotSeeResendsPublishes"},
		},
		{
			Name:    "resend: what is handed on while a chunk is read goes behind it",
			File:    resend + "/beside.go",
			Cut:     "if event, carries := b.event(change); carries && in[event.AggregateID] {",
			With:    "if event, carries := b.event(change); carries && in[event.AggregateID] && false {",
			Package: resend,
			Tests:   []string{anew},
		},
		{
			Name:    "resend: nothing is added to an aggregate that goes on in the next chunk",
			File:    resend + "/beside.go",
			Cut:     "in[event.AggregateID] = i < len(c.changes)-c.open",
			With:    "in[event.AggregateID] = i < len(c.changes)",
			Package: resend,
			Tests:   []string{anew},
		},
		{
			Name:    "resend: a snapshot is not older than what was handed on",
			File:    resend + "/runner.go",
			Cut:     "if now.Before(behind) {",
			With:    "if now.Before(behind) && now.IsZero() {",
			Package: resend,
			Tests:   []string{anew},
		},
		{
			Name:    "resend: nor older than the checkpoint of the term",
			File:    resend + "/beside.go",
			Cut:     "latest: relay.Point{Position: from},",
			With:    "latest: relay.Point{Position: from[:0]},",
			Package: resend,
			Tests:   []string{anew},
		},
		{
			Name:    "resend: a chunk that too much has passed is read again",
			File:    resend + "/beside.go",
			Cut:     "if overrun {",
			With:    "if overrun && c.open < 0 {",
			Package: resend,
			Tests:   []string{"TestResend_AChunkIsReadAgainWhereTooMuchHasPassed"},
		},
		{
			Name:    "resend: progress is saved in the term that has taken it",
			File:    state + "/resends.go",
			Cut:     "append(slices.Clone(whole), bson.E{Key: partField(part, \"term\"), Value: p.Term})",
			With:    "append(slices.Clone(whole), bson.E{Key: partField(part, \"term\"), Value: bson.D{{Key: \"$gte\", Value: p.Term}}})",
			Package: state,
			Tests:   []string{earlier},
		},
		{
			Name:    "resend: it is taken by no term that was over when it began",
			File:    state + "/resends.go",
			Cut:     "err = s.Fence(ctx, i, kept.Term)",
			With:    "err = s.Fence(ctx, i, min(kept.Term, 0))",
			Package: state,
			Tests:   []string{earlier},
		},
		{
			Name:    "resend: one at a time",
			File:    state + "/resends.go",
			Cut:     "case err == nil && !last.State.Ended():",
			With:    "case err == nil && !last.State.Ended() && s.of < 0:",
			Package: state,
			Tests:   []string{"TestResends_OnlyOneThatRunsIsTaken"},
		},
		{
			Name:    "resend: a term takes it from earlier ones before it sends anything",
			File:    leading + "/term.go",
			Cut:     "if err := t.fenceResends(ctx); err != nil {",
			With:    "if err := ctx.Err(); err != nil {",
			Package: publisher,
			Tests:   []string{"TestResend_ATermThatSendsHasTakenItFromEarlierOnes"},
		},
		{
			Name:    "resend: the checkpoint does not depend on it",
			File:    relay + "/watermark.go",
			Cut:     `if point := w.at(w.first).point; point.Token != nil || point.Position != "" {`,
			With:    `if point := w.at(w.first).point; point.Token != nil || point.Position != "" || w.first >= 0 {`,
			Package: relay,
			Tests:   []string{"TestResent_LeavesTheCheckpointWhereTheStreamIs"},
		},
		{
			Name:    "resend: what cannot be sent again is not parked, and stops nothing",
			File:    relay + "/resent.go",
			Cut:     "change.Resent.Finished(Failed, aggregateID, reason)",
			With:    "_ = aggregateID",
			Package: relay,
			Tests:   []string{"TestResent_WhatCannotBeSentIsNotParked"},
		},
		{
			Name:    "copy: what was listed before a time that is given is listed anew",
			File:    backfill + "/source.go",
			Cut:     "s.start, s.list = start, nil",
			With:    "s.start = start",
			Package: backfill,
			Tests:   []string{"TestFilter_ACopyReadsWhatCameBeforeTheTimeThatIsGiven"},
		},
		{
			Name:    "copy: what may go on in the next chunk is told",
			File:    backfill + "/open.go",
			Cut:     "if found.short || s.rest.begun || len(s.plan.Order) == 1 {",
			With:    "if found.short || !s.rest.begun || len(s.plan.Order) == 1 {",
			Package: backfill,
			Tests:   []string{"TestFilter_ACopyTellsWhatMayGoOnInItsNextChunk"},
		},
		{
			Name:    "contract: a resent message has an id of its own",
			File:    "pkg/contract/resend.go",
			Cut:     "return e.ID + resendMark + e.Resend.ID",
			With:    "return e.ID",
			Package: publisher,
			Tests:   []string{"TestResend_AggregatesAloneWithTheIDsThatTheyHad"},
		},
		{
			Name:    "resend: for another group it is passed by",
			File:    delivery + "/resent.go",
			Cut:     "for count < len(messages) && !contract.ResendOf(messages[count].Message).For(h.config.Group) {",
			With:    "for count < 0 && !contract.ResendOf(messages[count].Message).For(h.config.Group) {",
			Package: delivery,
			Tests:   []string{"TestResent_ForAnotherGroupIsNotEvenRead"},
		},
	}
}
