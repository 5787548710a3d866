package publisher

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// adoptGuards are the guards of a cut-over from another program.
func adoptGuards() []guard.Guard {
	const adopts, home = command + "/adopt.go", mongostate + "/homemade.go"
	return []guard.Guard{
		{
			Name:    "adopt: not beside a live lease",
			File:    home,
			Cut:     "return !l.Fenced && l.Remaining > 0",
			With:    "return false",
			Package: app,
			Tests:   []string{"TestAdopt_TakesOverUnderLoadAndLosesNothing"},
		},
		{
			Name:    "adopt: not while anything of the other program moves",
			File:    adopts,
			Cut:     "if err := a.awaitQuiet(ctx, found); err != nil {",
			With:    "if err := a.unmoved(ctx, found); err != nil {",
			Package: app,
			Tests:   []string{"TestAdopt_IsRefusedWhileAnythingMoves"},
		},
		{
			Name:    "adopt: not from a token that is gone",
			File:    adopts,
			Cut:     "if !among(now.Tokens, t) {",
			With:    "if !among(now.Tokens, t) && ctx.Err() != nil {",
			Package: app,
			Tests:   []string{"TestAdopt_IsRefusedWhileAnythingMoves"},
		},
		{
			Name:    "adopt: the other program does not lead again",
			File:    adopts,
			Cut:     "if l.Fenced || own {",
			With:    "if l.Fenced || own || len(name) > 0 {",
			Package: app,
			Tests:   []string{"TestAdopt_TakesOverUnderLoadAndLosesNothing"},
		},
		{
			Name:    "adopt: a lease that was renewed is not taken",
			File:    home,
			Cut:     `, {Key: "expiresAt", Value: l.ExpiresAt}},`,
			With:    "},",
			Package: mongostate,
			Tests:   []string{"TestHomeMade_ALeaseThatWasRenewedIsNotTaken"},
		},
		{
			Name:    "adopt: not over a stream that is known",
			File:    adopts,
			Cut:     "if len(scope.Records) > 0 {\n\t\treturn fmt",
			With:    "if len(scope.Records) < 0 {\n\t\treturn fmt",
			Package: app,
			Tests:   []string{"TestAdopt_TakesOverUnderLoadAndLosesNothing"},
		},
		{
			Name:    "adopt: nothing is passed over, and no ledger says so",
			File:    mongostate + "/moves.go",
			Cut:     "case m.Action == Adopt:",
			With:    "case m.Action == \"\":",
			Package: app,
			Tests:   []string{"TestAdopt_TakesOverUnderLoadAndLosesNothing"},
		},
	}
}
