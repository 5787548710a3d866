package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// viewGuards are the guards of what readers see.
func viewGuards() []guard.Guard {
	const shown, guessed = "TestSetup_ALostViewShowsAgainWhatReadersSaw", "TestSetup_ALostViewOfAnOlderReleaseIsNotGuessed"
	const gone = "TestSetup_ALostViewIsNotPutOnACollectionThatIsGone"
	return []guard.Guard{
		{
			Name:    "view: one that was lost shows what was noted",
			File:    readmodel + "/seen.go",
			Cut:     "return *noted.On, s.checkShown(ctx, v, *noted.On)",
			With:    "return v.On, nil",
			Package: app,
			Tests:   []string{shown},
		},
		{
			Name:    "view: one that was lost is not put on a collection that is gone",
			File:    readmodel + "/seen.go",
			Cut:     "if IsUnauthorized(err) || len(found) > 0 {",
			With:    "if IsUnauthorized(err) || len(found) >= 0 {",
			Package: app,
			Tests:   []string{gone},
		},
		{
			Name:    "doctor: a view on a collection that is gone is found",
			File:    readmodel + "/examine.go",
			Cut:     `if on[on[v.Name]] == "" {`,
			With:    `if on[v.Name] == "" {`,
			Package: app,
			Tests:   []string{gone},
		},
		{
			Name:    "view: an empty version is not what readers saw",
			File:    readmodel + "/seen.go",
			Cut:     "if some {",
			With:    "if some || !some {",
			Package: app,
			Tests:   []string{guessed},
		},
		{
			Name:    "view: of two versions with documents none is guessed",
			File:    readmodel + "/seen.go",
			Cut:     "case 1:",
			With:    "case 1, 2:",
			Package: app,
			Tests:   []string{guessed},
		},
		{
			Name:    "view: a switch notes what readers see",
			File:    readmodel + "/view.go",
			Cut:     "if err := s.note(ctx, v.View, v.Collection()); err != nil {",
			With:    "if err := error(nil); err != nil {",
			Package: readmodel,
			Tests:   []string{"TestSwitchView_NotesWhatReadersSeeBeforeAndAfter"},
		},
		{
			Name:    "view: a switch notes over a setup in between",
			File:    readmodel + "/view.go",
			Cut:     "return s.note(ctx, v.View, v.Collection())",
			With:    "return ctx.Err()",
			Package: readmodel,
			Tests:   []string{"TestSwitchView_NotesWhatReadersSeeBeforeAndAfter"},
		},
		{
			Name:    "view: setup notes nothing over a switch",
			File:    readmodel + "/seen.go",
			Cut:     `, {Key: "viewOn", Value: was.On}, {Key: "stamp", Value: was.Stamp}})`,
			With:    `})`,
			Package: readmodel,
			Tests:   []string{"TestRefresh_NotesNothingOverASwitch"},
		},
		{
			Name:    "view: setup notes nothing over a switch to what was noted",
			File:    readmodel + "/seen.go",
			Cut:     `, {Key: "stamp", Value: was.Stamp}})`,
			With:    `})`,
			Package: readmodel,
			Tests:   []string{"TestRefresh_NotesNothingOverASwitch"},
		},
		{
			Name:    "view: setup notes what it finds",
			File:    readmodel + "/view.go",
			Cut:     "if v.Versioned() {",
			With:    "if !v.Versioned() {",
			Package: app,
			Tests:   []string{guessed},
		},
		{
			Name:    "positions: the document that shows that they are lost is named",
			File:    readmodel + "/positions.go",
			Cut:     `bson.D{{Key: "document", Value: "$_id"}}`,
			With:    `bson.D{}`,
			Package: readmodel,
			Tests:   []string{"TestPositions_AreCarriedOverToAnotherName"},
		},
	}
}
