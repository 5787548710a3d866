package publisher

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// eventsGuards are the guards of what a document is as an event, and of what is printed of the source.
func eventsGuards() []guard.Guard {
	return []guard.Guard{
		{
			Name:    "events: of a source that numbers none nothing is printed",
			File:    command + "/events.go",
			Cut:     "if err := call.Config.MayResend(); err != nil {\n\t\treturn err",
			With:    "if err := call.Config.MayResend(); err != nil && false {\n\t\treturn err",
			Package: app,
			Tests:   []string{"TestEvents_ArePrintedAsTheyAreSent"},
		},
		{
			Name:    "events: a shard key is no part of an id",
			File:    mapping + "/mapping.go",
			Cut:     "key = unsharded(key)",
			With:    "_ = unsharded(key)",
			Package: mapping,
			Tests:   []string{"TestMapping_AShardKeyIsNoPartOfAnID"},
		},
	}
}
