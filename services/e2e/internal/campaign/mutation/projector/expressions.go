package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// expressionGuards are the guards of expressions.
func expressionGuards() []guard.Guard {
	bounds := func(name, file, cut, with, test string) guard.Guard {
		return guard.Guard{Name: "expression: " + name, File: expression + "/" + file, Cut: cut, With: with, Package: expression, Tests: []string{test}}
	}
	const named = "TestBounds_WhatIsBeyondABoundNamesIt"
	const refused = "TestBounds_CompileRefusesWhatIsNotOfTheLanguage"
	return []guard.Guard{
		bounds("steps are counted", "budget.go", "if steps > maxSteps-b.steps {", "if steps > 16*maxSteps-b.steps {", named),
		bounds("what is made on the way is bounded", "budget.go", "if bytes > maxMade-b.made {", "if bytes > 16*maxMade-b.made {", named),
		bounds("what is stored is bounded", "budget.go", "if bytes > maxResult-b.result {", "if bytes > 16*maxResult-b.result {", named),
		bounds("a text's size is bounded", "budget.go", "if bytes > maxTextSize {", "if bytes < 0 {", named),
		bounds("the text of + is bounded before it is made", "arithmetic.go", "e.text(len(s) + len(t))", "e.text(0)", named),
		bounds("the text of replace is bounded before it is made", "texts.go", "e.text(len(text) + int(times)*max(0, len(by)-len(old)))", "e.text(0)", named),
		bounds("nested lists are flattened to a depth", "lists.go", "if depth > maxDepth {\n\t\treturn nil, errTooDeep", "if depth < 0 {\n\t\treturn nil, errTooDeep", named),
		bounds("a pattern's matching is paid by the character", "pattern.go", "c.err = c.spend(c.steps); c.err != nil", "c.err = c.spend(0); c.err != nil", named),
		bounds("a pattern's text is bounded", "pattern.go", "if len(text) > maxPattern {", "if len(text) < 0 {", refused),
		bounds("what a pattern is made into is bounded", "pattern.go", "if len(program.Inst) > maxInstructions {", "if len(program.Inst) < 0 {", refused),
		bounds("the environment as a whole is not of the language", "program.go", `if n.Value == "$env" {`, "if false {", refused),
		bounds("an evaluation takes no longer than its time", "budget.go", "case b.clock().Sub(b.began) > maxTime:", "case b.clock().Sub(b.began) < 0:", "TestBounds_AnEvaluationTakesNoLongerThanItsTime"),
		bounds("an evaluation ends with its context", "budget.go", "case b.ctx != nil && b.ctx.Err() != nil:", "case b.ctx != nil && b.ctx.Err() == nil && b.steps < 0:", "TestBounds_AnEvaluationEndsWithItsContext"),
		bounds("methods are those that decide the same", "times.go", "base == nil || !slices.Contains(methods[reflect.TypeOf(base)], name)", "base == nil || !slices.Contains([]string{name}, name)", "TestBounds_MethodsAreThoseThatDecideTheSame"),
	}
}
