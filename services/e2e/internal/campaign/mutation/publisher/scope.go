package publisher

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// scopeGuards are the guards of what commands and terms take for the stream's.
func scopeGuards() []guard.Guard {
	return []guard.Guard{
		{
			Name:    "collections: a stream stands before the latest change that it stood before",
			File:    mongostate + "/streams.go",
			Cut:     `"$max", Value: bson.D{{Key: "stopped"`,
			With:    `"$set", Value: bson.D{{Key: "stopped"`,
			Package: mongostate,
			Tests:   []string{"TestStreams_StandBeforeTheLatestChangeThatTheyStoodBefore"},
		},
		{
			Name:    "begin: what was purged keeps no stream from beginning",
			File:    mongostate + "/gaps.go",
			Cut:     `"$ne", Value: Discarded`,
			With:    `"$ne", Value: Void`,
			Package: mongostate,
			Tests:   []string{"TestLedger_WhatWasDiscardedKeepsNoStreamFromBeginning"},
		},
		{
			Name:    "scope: a lease that another stream holds is none of it",
			File:    mongostate + "/scope.go",
			Cut:     "if !slices.Contains(names, holder.Stream) && slices.Contains(ours, holder.Lease) {",
			With:    "if false {",
			Package: mongostate,
			Tests:   []string{"TestScope_ALeaseThatAnotherStreamHoldsIsRefused"},
		},
		{
			Name:    "resend: the resends of an unknown stream are not none",
			File:    command + "/resends.go",
			Cut:     "return call.Config.Known(ctx, state)",
			With:    "return nil",
			Package: app,
			Tests:   []string{"TestResend_WhatAnOperatorMayGetWrongIsRefused"},
		},
		{
			Name:    "kept aside: the way back is that of its partition",
			File:    stream + "/keptaside.go",
			Cut:     `return " --partition " + number[1]`,
			With:    "return number[1][:0]",
			Package: app,
			Tests:   []string{"TestParked_TheWayBackIsThatOfItsPartition"},
		},
		{
			Name:    "replay: settings of another order are refused",
			File:    command + "/replay.go",
			Cut:     "if !f.accept {",
			With:    "if !f.accept && err != nil {",
			Package: app,
			Tests:   []string{"TestReplay_BySettingsOfAnotherOrderIsRefusedUnlessMeant"},
		},
		{
			Name:    "replay: the aggregate's path decides the order, too",
			File:    config + "/identity.go",
			Cut:     `"FIELD_AGGREGATE_ID", "FIELD_VERSION", "DOC`,
			With:    `"FIELD_VERSION", "DOC`,
			Package: app,
			Tests:   []string{"TestReplay_BySettingsOfAnotherOrderIsRefusedUnlessMeant"},
		},
		{
			Name:    "park: what waits already takes no room",
			File:    relay + "/intake.go",
			Cut:     "err == nil && !waits {",
			With:    "err == nil {",
			Package: relay,
			Tests:   []string{"TestPark_WhatWaitsAlreadyTakesNoRoom"},
		},
		{
			Name:    "park: what waits already is counted once",
			File:    relay + "/intake.go",
			Cut:     "if !waits {\n\t\tr.deps",
			With:    "if waits || !waits {\n\t\tr.deps",
			Package: relay,
			Tests:   []string{"TestPark_WhatWaitsAlreadyTakesNoRoom"},
		},
		{
			Name:    "park: what is being parked takes room",
			File:    relay + "/relay.go",
			Cut:     "max(config.ParkAtOnce, 1)",
			With:    "max(config.ParkAtOnce, 64)",
			Package: relay,
			Tests:   []string{"TestPark_WhatIsBeingParkedTakesRoom"},
		},
		{
			Name:    "park: one at a time where they are counted",
			File:    stream + "/lead.go",
			Cut:     "s.config.ParkLimit > 0",
			With:    "s.config.ParkLimit < 0",
			Package: stream,
			Tests:   []string{"TestLead_OneChangeIsParkedAtATimeWhereTheyAreCounted"},
		},
		{
			Name:    "park: what was dealt with takes no room",
			File:    stream + "/term.go",
			Cut:     "count, err := t.countParked(ctx)",
			With:    "count, err := t.counters.Parked(), error(nil)",
			Package: app,
			Tests:   []string{"TestPark_WhatIsDealtWithTakesNoRoom"},
		},
		{
			Name:    "park: what was dealt with is shown no more",
			File:    stream + "/keptaside.go",
			Cut:     "t.tracker.CountParked(parked, before)",
			With:    "_, _ = before, parked",
			Package: app,
			Tests:   []string{"TestPark_WhatIsDealtWithTakesNoRoom"},
		},
	}
}
