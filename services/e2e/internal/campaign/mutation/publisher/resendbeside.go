package publisher

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// besideGuards are the guards of how the chunks of a resend go between the changes of the
// stream.
func besideGuards() []guard.Guard {
	const (
		anew   = "TestResend_WhoeverBeginsAnewMissesNothing"
		behind = "TestBehind_AChunkWaitsForTheStream"
	)
	return []guard.Guard{
		{
			Name:    "resend: what is handed on while a chunk is read goes behind it",
			File:    resend + "/beside.go",
			Cut:     "if !carries || !in[event.AggregateID] {",
			With:    "if !carries || in != nil {",
			Package: resend,
			Tests:   []string{anew},
		},
		{
			Name:    "resend: nothing goes along from before the chunk that it has not",
			File:    resend + "/beside.go",
			Cut:     "b.kept = slices.DeleteFunc(b.kept, b.isRead)",
			With:    "",
			Package: resend,
			Tests:   []string{"TestResend_WhatWasNotSelectedGoesAlongOnlyBehindWhatWas"},
		},
		{
			Name:    "resend: nothing goes along that is not behind what was selected",
			File:    resend + "/beside.go",
			Cut:     "event.Version.Number > v.Number {",
			With:    "event.Version.Known {",
			Package: resend,
			Tests:   []string{"TestResend_WhatWasNotSelectedGoesAlongOnlyBehindWhatWas"},
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
			Name:    "resend: a change tells of what was committed before it alone",
			File:    resend + "/beside.go",
			Cut:     "b.come(b.last) //",
			With:    "b.come(b.last.Next()) //",
			Package: resend,
			Tests:   []string{behind},
		},
		{
			Name:    "resend: an empty answer tells nothing of the time of the last change",
			File:    resend + "/beside.go",
			Cut:     "b.last.Before(at)",
			With:    "!at.Before(b.last)",
			Package: resend,
			Tests:   []string{behind},
		},
		{
			Name:    "resend: nor of the time of the checkpoint",
			File:    resend + "/beside.go",
			Cut:     "last: timeOf(from),",
			With:    "",
			Package: resend,
			Tests:   []string{behind},
		},
		{
			Name:    "resend: of a stream that is behind nothing is kept that the chunk has",
			File:    resend + "/beside.go",
			Cut:     "if b.isRead(change) {",
			With:    "if b.isRead(change) && b.overrun {",
			Package: resend,
			Tests:   []string{"TestBehind_WhatAChunkHasIsNotKept"},
		},
	}
}
