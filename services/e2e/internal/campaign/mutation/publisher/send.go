package publisher

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// sendGuards are the guards of a message that fails.
func sendGuards() []guard.Guard {
	return []guard.Guard{
		{
			Name:    "servicebus: a send is never cut off between its frames",
			File:    servicebus + "/topic.go",
			Cut:     "if ctx.Err() != nil {\n\t\treturn ctx.Err()\n\t}\n\tdone := make",
			With:    "if ctx != nil {\n\t\treturn send(ctx)\n\t}\n\tdone := make",
			Package: servicebus,
			Tests:   []string{"TestTopic_ASendThatIsCutOffBetweenFramesSpoilsNoOther"},
		},
		{
			Name:    "relay: a few refusals park nothing",
			File:    relay + "/trouble.go",
			Cut:     "t.strikes >= strikes && took",
			With:    "took",
			Package: relay,
			Tests:   []string{"TestSend_AFewRefusalsParkNothingHoweverShortThePatience"},
		},
		{
			Name:    "relay: what has failed is not mixed with what has not",
			File:    relay + "/lanes.go",
			Cut:     "return l.alone > 0 || l.trouble != nil",
			With:    "return l.alone > 0",
			Package: relay,
			Tests:   []string{"TestSend_AMessageThatFailsIsNotMixedWithOthers"},
		},
		{
			Name:    "relay: too many parked changes halt the stream",
			File:    relay + "/intake.go",
			Cut:     "r.config.ParkRoom >= 0 && n > r.config.ParkRoom",
			With:    "r.config.ParkRoom >= 0 && n < 0",
			Package: app,
			Tests:   []string{"TestPark_ABrakeHaltsTheStreamInFrontOfTheNextUntilSomeAreDealtWith"},
		},
	}
}
