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
			Name:    "memory: a partition has its share of the bytes in flight",
			File:    stream + "/lead.go",
			Cut:     "s.config.WindowBytes()",
			With:    "s.config.MaxInFlightBytes",
			Package: stream,
			Tests:   []string{"TestLead_APartitionHasItsShareOfTheBytesInFlight"},
		},
		{
			Name:    "memory: the bytes in flight follow the memory limit",
			File:    config + "/config.go",
			Cut:     "c.inFlightBytes(MemoryLimit())",
			With:    "c.inFlightBytes(0)",
			Package: app,
			Tests:   []string{"TestConfig_BytesInFlightFollowTheMemoryLimit"},
		},
		{
			Name:    "memory: the collector stays below the container's limit",
			File:    config + "/memory.go",
			Cut:     "min(alive, ours(container))",
			With:    "max(alive, ours(container))",
			Package: config,
			Tests:   []string{"TestSoftLimit_StaysBelowTheContainers"},
		},
		{
			Name:    "relay: a large send has the time for its size",
			File:    relay + "/send.go",
			Cut:     "context.WithTimeout(ctx, SendTimeout(s.config.SendTimeout, size))",
			With:    "context.WithTimeout(ctx, s.config.SendTimeout)",
			Package: relay,
			Tests:   []string{"TestSend_ALargeMessageHasTheTimeItNeeds"},
		},
		{
			Name:    "relay: no more is under way than goes over in time",
			File:    relay + "/load.go",
			Cut:     "return l.underWay == 0 ||",
			With:    "return l.underWay >= 0 ||",
			Package: relay,
			Tests:   []string{"TestNarrow_MessagesThatShareANarrowLinkAreSentAndNotParked"},
		},
		{
			Name:    "relay: what took long was not accepted in the last second",
			File:    relay + "/load.go",
			Cut:     "max(1, now.Sub(t.began).Seconds())",
			With:    "max(1, min(now.Sub(t.began).Seconds(), 1))",
			Package: relay,
			Tests:   []string{"TestNarrow_MessagesThatShareANarrowLinkAreSentAndNotParked"},
		},
		{
			Name:    "relay: nobody goes before one that waits for room",
			File:    relay + "/breaker.go",
			Cut:     "case b.pace.rate == 0 && !b.crowded && ",
			With:    "case b.pace.rate == 0 && ",
			Package: relay,
			Tests:   []string{"TestNarrow_ALargeMessageHasItsTurnAmongSmallOnes"},
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
			Cut:     "\tif full {",
			With:    "\tif full && !full {",
			Package: app,
			Tests:   []string{"TestPark_ABrakeHaltsTheStreamInFrontOfTheNextUntilSomeAreDealtWith"},
		},
		{
			Name:    "pace: what an outage that becomes a limit allows is counted anew",
			File:    relay + "/pace.go",
			Cut:     "if now.Sub(since) < window || p.refused.Before(since) {",
			With:    "if now.Sub(since) < window {",
			Package: relay,
			Tests:   []string{"TestPace_AnOutageThatBecomesALimitIsNoTimeInWhichAllWasAllowed"},
		},
	}
}
