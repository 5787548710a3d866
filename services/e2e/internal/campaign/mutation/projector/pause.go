package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// pauseGuards are the guards of a projector that is paused.
func pauseGuards() []guard.Guard {
	return []guard.Guard{
		{
			Name:    "pause: a session that comes during a pause is given back",
			File:    session + "/engine.go",
			Cut:     "\t\tcase e.paused():\n\t\t\te.release(ctx, receiver)",
			With:    "\t\tcase e.paused() && receiver == nil:\n\t\t\te.release(ctx, receiver)",
			Package: session,
			Tests:   []string{"TestPause_ASessionThatComesDuringItIsGivenBack"},
		},
		{
			Name:    "pause: it is no stall",
			File:    session + "/engine.go",
			Cut:     "\t\te.step.Store(time.Now().UnixNano())\n\t\te.unanswered",
			With:    "\t\te.unanswered",
			Package: session,
			Tests:   []string{"TestPause_KeepsSessionsAwayUntilItIsOver"},
		},
		{
			Name:    "pause: it is no idleness",
			File:    session + "/engine.go",
			Cut:     "\t\te.idle.Store(0)\n\t\te.step",
			With:    "\t\te.step",
			Package: session,
			Tests:   []string{"TestPause_IsNoIdleness"},
		},
		{
			Name:    "pause: it ends that accepts hang",
			File:    session + "/engine.go",
			Cut:     "\t\te.hung.Store(0)\n\t\te.idle",
			With:    "\t\te.idle",
			Package: session,
			Tests:   []string{"TestPause_EndsThatAcceptsHang"},
		},
		{
			Name:    "pause: it is no silence of the broker",
			File:    session + "/engine.go",
			Cut:     "\t\te.unanswered.Store(0)\n\t}\n\treturn true",
			With:    "\t}\n\treturn true",
			Package: session,
			Tests:   []string{"TestPause_IsNotTakenForTheBrokersSilence"},
		},
		{
			Name:    "pause: what is held is not tried in place",
			File:    session + "/hold.go",
			Cut:     "errors.Is(failure, ErrNotYet) || errors.Is(failure, ErrPaused)",
			With:    "errors.Is(failure, ErrNotYet)",
			Package: session,
			Tests:   []string{"TestPause_ASessionThatIsHeldIsGivenBackAndNotTriedInPlace"},
		},
	}
}
