package sandbox

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// busGuards are those of Service Bus.
func busGuards() []guard.Guard {
	const (
		bus    = "services/sandbox/internal/servicebus/"
		broker = bus + "broker"
	)
	return []guard.Guard{
		{
			Name:    "sandbox: a deferred message outlives its time until somebody asks for it",
			File:    broker + "/entry.go",
			Cut:     "if e.lock == nil && e.state != entity.StateDeferred {",
			With:    "if e.lock == nil {",
			Package: broker,
			Tests:   []string{"TestSend_ADeferredMessageExpiresWhenItIsAskedFor"},
		},
		{
			Name:    "sandbox: a deferred message that has outlived its time can be peeked at",
			File:    broker + "/look.go",
			Cut:     "(e.state == entity.StateDeferred || !e.expired(now))",
			With:    "!e.expired(now)",
			Package: broker,
			Tests:   []string{"TestSend_ADeferredMessageExpiresWhenItIsAskedFor"},
		},
		{
			Name:    "sandbox: a deferred message that has outlived its time is not received",
			File:    broker + "/deferred.go",
			Cut:     "if e.expired(now) {",
			With:    "if e.expired(now) && false {",
			Package: broker,
			Tests:   []string{"TestSend_ADeferredMessageExpiresWhenItIsAskedFor"},
		},
		{
			Name:    "sandbox: the number of a message that was dead-lettered as it arrived is not given again",
			File:    broker + "/restore.go",
			Cut:     "		s.source.numbers.saw(e.seq)",
			With:    "		s.numbers.saw(e.seq)",
			Package: broker,
			Tests:   []string{"TestJournal_NumbersOfDeadLettersAreNotGivenAgain"},
		},
		{
			Name:    "sandbox: an id that was sent again after its window is known for another one",
			File:    broker + "/history.go",
			Cut:     "if h.known[id]--; h.known[id] == 0 {",
			With:    "if h.known[id]--; true {",
			Package: broker,
			Tests:   []string{"TestJournal_ARepeatIsKnownForAWholeWindowAfterARestart"},
		},
		{
			Name:    "sandbox: messages that are due together are not all in one record",
			File:    broker + "/alarm.go",
			Cut:     "if len(b.log.pending.Buf) >= recordSize {",
			With:    "if false {",
			Package: broker,
			Tests:   []string{"TestRecord_NoneHasMoreThanItMust"},
		},
		{
			Name:    "sandbox: messages that a lost session gives back are not all in one record",
			File:    broker + "/session.go",
			Cut:     "		x.store.b.log.divide(recordSize)\n",
			With:    "",
			Package: broker,
			Tests:   []string{"TestRecord_NoneHasMoreThanItMust"},
		},
		{
			Name:    "sandbox: messages that a receiver finds expired are not all in one record",
			File:    broker + "/receiver.go",
			Cut:     "			s.b.log.divide(recordSize)\n",
			With:    "",
			Package: broker,
			Tests:   []string{"TestRecord_NoneHasMoreThanItMust"},
		},
		{
			Name:    "sandbox: deferred messages that have expired are not all in one record",
			File:    broker + "/deferred.go",
			Cut:     "			s.b.log.divide(recordSize)\n",
			With:    "",
			Package: broker,
			Tests:   []string{"TestRecord_NoneHasMoreThanItMust"},
		},
		{
			Name:    "sandbox: the states of sessions are not all in one record of a snapshot",
			File:    broker + "/compact.go",
			Cut:     "			p.divide(w, recordSize)\n",
			With:    "",
			Package: broker,
			Tests:   []string{"TestRecord_NoneHasMoreThanItMust"},
		},
		{
			Name:    "sandbox: a batch of any size is not in one record",
			File:    broker + "/send.go",
			Cut:     "		in.b.log.divide(batchSize)\n",
			With:    "",
			Package: broker,
			Tests:   []string{"TestRecord_ABatchIsOneUpToASize"},
		},
		{
			Name:    "sandbox: a batch is in one record",
			File:    broker + "/send.go",
			Cut:     "in.b.log.divide(batchSize)",
			With:    "in.b.log.divide(recordSize)",
			Package: broker,
			Tests:   []string{"TestRecord_ABatchIsOneUpToASize"},
		},
		{
			Name:    "sandbox: a long of a rule stays one",
			File:    bus + "management/rule.go",
			Cut:     `reflect.Int64: "long"`,
			With:    `reflect.Int64: "int"`,
			Package: bus + "management",
			Tests:   []string{"TestHTTP_ValuesOfARuleKeepTheirTypes"},
		},
		{
			Name:    "sandbox: an int of a rule in an older journal is told as one",
			File:    bus + "record/rule.go",
			Cut:     "if n, ok := m[k].(int64); ok && fitsInt(n) {",
			With:    "if n, ok := m[k].(int64); ok && fitsInt(n) && false {",
			Package: bus + "management",
			Tests:   []string{"TestClient_ListsRulesOfAnOlderJournal"},
		},
		{
			Name:    "sandbox: a long of a rule stays one in the journal",
			File:    bus + "record/rule.go",
			Cut:     "if n, ok := v.(int64); ok && fitsInt(n) {",
			With:    "if n, ok := v.(int64); ok && fitsInt(n) && false {",
			Package: broker,
			Tests:   []string{"TestJournal_ARestoredNamespaceIsTheSame"},
		},
		{
			Name:    "sandbox: an int of a rule fits into one",
			File:    bus + "management/rule.go",
			Cut:     "n, err := strconv.ParseInt(e.Text, 10, 32)",
			With:    "n, err := strconv.ParseInt(e.Text, 10, 64)",
			Package: bus + "management",
			Tests:   []string{"TestHTTP_BadRequestsAreRefusedWithTheReason"},
		},
		{
			Name:    "sandbox: a whole number of a configuration is an int where it fits",
			File:    bus + "emulatorconfig/read.go",
			Cut:     "if int64(int32(n)) == n {",
			With:    "if int64(int32(n)) == n && false {",
			Package: bus + "emulatorconfig",
			Tests:   []string{"TestRead_ReadUnderstandsTheEmulatorsFile"},
		},
	}
}
