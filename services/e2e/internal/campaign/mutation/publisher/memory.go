package publisher

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// memoryGuards are the guards of that a publisher has room for what it reads.
func memoryGuards() []guard.Guard {
	return []guard.Guard{
		{
			Name:    "memory: an answer of the server is as large as there is room for",
			File:    changestream + "/stream.go",
			Cut:     "return int32(min(max(serverBytes/s.size, 1), serverBatch))",
			With:    "return serverBatch",
			Package: changestream,
			Tests:   []string{"TestStream_AnAnswerIsAsLargeAsThereIsRoomFor"},
		},
		{
			Name:    "memory: two reads of the stream are kept beside a chunk",
			File:    config + "/memory.go",
			Cut:     "c.KeptBytes()/2",
			With:    "c.KeptBytes()",
			Package: config,
			Tests:   []string{"TestKeptBytes_ArePartOfTheWindow"},
		},
		{
			Name:    "memory: a read is as large as there is room for",
			File:    changestream + "/stream.go",
			Cut:     "return cmp.Or(s.source.ReadBytes, readBytes)",
			With:    "return readBytes",
			Package: changestream,
			Tests:   []string{"TestStream_AnAnswerIsAsLargeAsThereIsRoomFor"},
		},
		{
			Name:    "memory: a chunk of what was listed is as large as the plan says",
			File:    backfill + "/listed.go",
			Cut:     "size+list[n].size <= s.plan.Bytes",
			With:    "size+list[n].size <= chunkBytes",
			Package: backfill,
			Tests:   []string{"TestCopy_ReadsNoMoreThanAChunkHoldsOfWhatItListed"},
		},
		{
			Name:    "memory: what a resend keeps of the stream is bounded in bytes",
			File:    resend + "/beside.go",
			Cut:     " || b.keptBytes > b.mostBytes",
			With:    "",
			Package: resend,
			Tests:   []string{"TestResend_KeepsNoMoreBytesThanItMay"},
		},
		{
			Name:    "memory: what a resend keeps of the stream is part of the window",
			File:    config + "/memory.go",
			Cut:     "return c.share(mostKept)",
			With:    "return mostKept",
			Package: config,
			Tests:   []string{"TestKeptBytes_ArePartOfTheWindow"},
		},
		{
			Name:    "memory: more partitions than fit are refused",
			File:    command + "/command.go",
			Cut:     "if err := config.CheckMemory(); err != nil {",
			With:    "if err := config.CheckMemory(); err != nil && false {",
			Package: "services/publisher/cmd/publisher",
			Tests:   []string{"TestRun_RefusesMorePartitionsThanFitInMemory"},
		},
		{
			Name:    "memory: more bytes in flight than fit are refused",
			File:    config + "/memory.go",
			Cut:     "c.MaxInFlightBytes > fit {",
			With:    "fit < 0 {",
			Package: "services/publisher/cmd/publisher",
			Tests:   []string{"TestRun_RefusesMorePartitionsThanFitInMemory"},
		},
		{
			Name:    "memory: Go's limit has room for what each partition reads",
			File:    config + "/memory.go",
			Cut:     "aside + int64(max(c.Partitions, 1)-1)*eachPartition + copies*c.MaxInFlightBytes +",
			With:    "aside + copies*c.MaxInFlightBytes +",
			Package: config,
			Tests:   []string{"TestSoftLimit_StaysBelowTheContainers"},
		},
	}
}
