package liars

import (
	"changerelay/services/e2e/internal/campaign/mutation/guard"
	"changerelay/services/e2e/internal/check/witness"
)

// ofRemains are those that leave behind what they should not.
func ofRemains() []Lie {
	return []Lie{
		{
			Name: "one message in 100 is applied and dead-lettered",
			Change: guard.Guard{
				File: settler,
				Cut:  "\tif err := h.receiver.Settle(ctx, m, v); err != nil {\n",
				With: "\tv.DeadLetter = v.DeadLetter || m.SequenceNumber%100 == 0\n\tif err := h.receiver.Settle(ctx, m, v); err != nil {\n",
			},
			Finds: []string{witness.DeadLettered},
		},
		{
			Name: "one message in 100 is applied and never settled",
			Change: guard.Guard{
				File: settler,
				Cut:  "\tif err := h.receiver.Settle(ctx, m, v); err != nil {\n",
				With: "\tif m.SequenceNumber%100 == 0 {\n\t\treturn nil\n\t}\n\tif err := h.receiver.Settle(ctx, m, v); err != nil {\n",
			},
			Finds: []string{witness.StillQueued},
		},
		{
			Name: "aggregates are halted for events that can be applied",
			Change: guard.Guard{
				File: decider,
				Cut:  "\tif !follows {\n",
				With: "\tif c.ID[0] == 'A' && c.ID[1] >= 'A' && c.ID[1] < 'K' {\n\t\treturn nil, fmt.Errorf(\"no reason\")\n\t}\n\tif !follows {\n",
			},
			Finds: []string{witness.HaltedAggregates, witness.ParkedMessages, witness.LostBeforeReadModel},
		},
		{
			Name: "changes are parked that can be sent",
			Change: guard.Guard{
				File: "services/publisher/internal/mapping/events.go",
				Cut:  "\tevent.Type = string(v.text())\n",
				With: "\tif len(document)%97 == 0 {\n\t\treturn problem(m.kind, \"is refused\")\n\t}\n\tevent.Type = string(v.text())\n",
			},
			Finds: []string{witness.ParkedChanges, witness.LostBeforeTopic},
		},
		{
			Name: "the publisher leaves its change stream open",
			Change: guard.Guard{
				File: "services/publisher/internal/changestream/stream.go",
				Cut:  "\tforgotten := s.stream.ID() == 0\n\t_ = s.stream.Close(ctx) // a cursor that is not closed times out on the server\n\tif forgotten {\n",
				With: "\tif s.openTimeout < 0 {\n",
			},
			Finds: []string{witness.CursorsOpen},
		},
		{
			Name: "the publisher says that it gives up its lease, and keeps it",
			Change: guard.Guard{
				File: "services/publisher/internal/mongostate/lease.go",
				Cut:  "\tresult, err := l.records.UpdateOne(ctx, l.heldBy(holder), pipeline)\n",
				With: "\tif holder.ID != \"\" {\n\t\treturn true, nil\n\t}\n\tresult, err := l.records.UpdateOne(ctx, l.heldBy(holder), pipeline)\n",
			},
			Finds: []string{witness.LeasesHeld},
		},
	}
}
