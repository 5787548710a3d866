package mutation

// bounding are the guards of the projector's memory.
func bounding() []Guard {
	return []Guard{
		{
			Name:    "memory: parked messages are read by what they weigh",
			File:    readmodel + "/room.go",
			Cut:     "if n > 0 && sum+weight > r.total/pagesAtOnce {",
			With:    "if n < 0 && sum+weight > r.total/pagesAtOnce {",
			Package: projector,
			Tests:   []string{"TestRedrive_ReadsNoMoreBytesThanItHasRoomFor"},
		},
		{
			Name:    "memory: redrives have one room together",
			File:    readmodel + "/room.go",
			Cut:     "share := min(bytes, r.total)",
			With:    "share := min(bytes, 0)",
			Package: projector,
			Tests:   []string{"TestRedrive_ReadsNoMoreBytesThanItHasRoomFor"},
		},
		{
			Name:    "memory: a redrive gives back what it has dealt with",
			File:    delivery + "/redrive.go",
			Cut:     "\tdefer done()\n",
			With:    "\t_ = done\n",
			Package: delivery,
			Tests:   []string{"TestRedrive_ManyAggregatesGoSideBySide"},
		},
		{
			Name:    "memory: without a limit the collector keeps to what the process may take",
			File:    projector + "/memory.go",
			Cut:     "cmp.Or(container, c.beside()+copies*c.inFlightBytes(0))",
			With:    "cmp.Or(container, 1<<40)",
			Package: projector,
			Tests:   []string{"TestSoftLimit_IsNearTheContainersOrWhatTheProcessTakes"},
		},
		{
			Name:    "parked: a message takes the place that was kept for it",
			File:    readmodel + "/parked.go",
			Cut:     "return s.fill(ctx, elements[0].Value(), fields)",
			With:    "return nil",
			Package: readmodel,
			Tests:   []string{"TestStoreConforms"},
		},
		{
			Name:    "memory: what is redriven is part of the bytes in flight",
			File:    projector + "/memory.go",
			Cut:     "return all - all/8, all / 8",
			With:    "return all, all / 8",
			Package: projector,
			Tests:   []string{"TestShares_AreTheBytesInFlightTogether"},
		},
	}
}
