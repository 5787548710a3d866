package liars

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"changerelay/services/e2e/internal/check/witness"
)

// planted are the violations that no lie commits, because a trial has one publisher and one
// projector that nobody kills, no second group and no resends, with the test that plants
// them in a history.
var planted = map[string]string{
	witness.OutOfOrder:          "TestDelivery",
	witness.NeverWritten:        "TestDelivery",
	witness.SharedIDs:           "TestDelivery_AnIDThatNamesTwoEventsIsFound",
	witness.TermsUnclaimed:      "TestMessages_FaultsAreFound",
	witness.DocumentsWentBack:   "TestProgress_Regressions",
	witness.CheckpointsWentBack: "TestProgress_CheckpointRegressions",
	witness.MisplacedKeyed:      "TestJudge_FindsWhatDocumentsOfAnotherKeyHaveWrong",
	witness.SkippedEvents:       "TestAtRest_FindsSkippedEvents",
	witness.LostAtSource:        "TestWitness_TheVerdictFindsWhatWasDoneWrong",
	witness.OverlappingTerms:    "TestTerms_OverlappingTerms",
	witness.TermsShared:         "TestTerms_TermsShared",
	witness.LeasesOverlapping:   "TestTerms_LeaseOverlaps",
	witness.Misapplied:          "TestShadow_Misapplied",
	witness.WorkedOnAtOnce:      "TestHolds_Interleaved",
	witness.WrongBeside:         "TestJudge_FindsWhatAnotherGroupHasMadeWrong",
	witness.MisappliedBeside:    "TestJudge_FindsWhatAnotherGroupHasMadeWrong",
	witness.WrongSteps:          "TestJudge_FindsWhatAProjectionInGoHasWrong",
	witness.WrongViews:          "TestJudge_FindsWhatWasBuiltAnewWrong",
	witness.ResentUnlike:        "TestJudge_FindsWhatWasSentAgainWrong",
	witness.ResentUnknown:       "TestDelivery",
	witness.ResentEarly:         "TestResent_WhatOvertakesTheStreamIsFound",
	witness.ResentOutOfOrder:    "TestResent_EachResendIsInOrderByItself",
	witness.ResentForNobody:     "TestResent_GroupsOfNobodyAreFound",
	witness.NotResent:           "TestResent_WhatWasSelectedHasToCome",
	witness.Unselected:          "TestResent_WhatWasNotSelectedIsFound",
	witness.LedgerGaps:          "TestAtRest_FindsLinesOfTheLedger",
	witness.SessionsLocked:      "TestAtStop_FindsLockedSessionsBeforeTheirLocksEnd",
	witness.OrderUnseen:         "TestJudge_TellsOfWhatTheOrderWasNotSeen",
}

// violations are what the witness calls what it finds, by the constants of its files.
func violations(t *testing.T) map[string]string {
	t.Helper()
	names := map[string]string{}
	for _, file := range []string{"verdict.go", "rest.go", "stopped.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "check", "witness", file), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			spec, is := node.(*ast.ValueSpec)
			if !is || len(spec.Values) != 1 || !spec.Names[0].IsExported() {
				return true
			}
			if value, is := spec.Values[0].(*ast.BasicLit); is && value.Kind == token.STRING {
				name, err := strconv.Unquote(value.Value)
				if err != nil {
					t.Fatal(err)
				}
				names[name] = spec.Names[0].Name
			}
			return true
		})
	}
	return names
}

func TestNames_EachViolationHasALieOrATestThatPlantsIt(t *testing.T) {
	t.Parallel()
	all, told := violations(t), map[string]bool{}
	for _, lie := range Lies() {
		for _, name := range lie.Finds {
			told[name] = true
		}
	}
	tests := &strings.Builder{}
	for _, pattern := range []string{"../../check/witness/*_test.go", "../../check/validate/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("found no tests as %s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(text)
		}
	}
	for name, constant := range all {
		test, is := planted[name]
		switch {
		case told[name] == is:
			t.Errorf("%s (%q): a lie finds it: %t, planted by a test: %t; want one of these", constant, name, told[name], is)
		case is && !strings.Contains(tests.String(), "func "+test+"("):
			t.Errorf("%s (%q): there is no test %s", constant, name, test)
		}
	}
	for name := range planted {
		if all[name] == "" {
			t.Errorf("%q is planted, and the witness has no such violation", name)
		}
	}
}
