package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// codedGuards are the guards of projections in Go.
func codedGuards() []guard.Guard {
	decided := func(name, file, cut, with, test string) guard.Guard {
		return guard.Guard{Name: "in go: " + name, File: projection + "/" + file, Cut: cut, With: with, Package: projection, Tests: []string{test}}
	}
	const bounds = "TestCoded_BoundsWhatItIsGiven"
	return []guard.Guard{
		decided("a document without a key of its own is its aggregate's", "coded.go", "if id != any(c.AggregateID) {", `if id == any("") {`, bounds),
		decided("it is written once for each event", "coded.go", "case !p.keyed && len(writes) > 1:", "case !p.keyed && len(writes) > 1000:", bounds),
		decided("an event has no more documents than one transaction is for", "coded.go", "case len(writes) > maxElements:", "case len(writes) > 10*maxElements:", bounds),
		decided("an update that no document can hold is an error", "coded.go", "size += n; size > maxWritten", "size += n; size > 10*maxWritten", bounds),
		decided("a panic ends no process", "coded.go", "value := recover()", "value := any(nil)", "TestCoded_TurnsAPanicIntoAnErrorWithItsStack"),
		decided("a decision that does not come is an error", "coded.go", "case <-timer.C:", "case <-chan bool(nil):", "TestCoded_EndsADecisionThatDoesNotCome"),
		decided("a decision that is called off says nothing of the event", "coded.go", "case <-ctx.Done():\n\t\treturn nil, ErrInterrupted", "case <-ctx.Done():\n\t\treturn nil, nil", "TestCoded_EndsADecisionThatDoesNotCome"),
		decided("an event that changes nothing is noted", "coded.go", "blank.Kept = true\n\t\treturn p.passed(c, &blank), nil", "return nil, nil", "TestCoded_DecidesLikeADeclaredOne"),
		decided("what the code keeps changes no write", "operand.go", "operand = value\n", "operand = o.Value\n", "TestUpdate_EncodesAValueInOneWay"),
		decided("a map is stored in one way", "operand.go", "registry.RegisterKindEncoder(reflect.Map, bson.ValueEncoderFunc(encodeSorted))", "_ = encodeSorted", "TestUpdate_EncodesAValueInOneWay"),
		decided("its policy is its own", "coded.go", "code.Version, code.OnError}", "code.Version, nil}", "TestCoded_SkipsLikeADeclaredOne"),
		decided("an event that is skipped moves the position", "frame.go", "w.Kept = true\n\treturn f.passed(c, &w)", "return []Write{{Projection: f.Name(), Passed: true, Event: w.Event}}", "TestCoded_SkipsLikeADeclaredOne"),
		decided("other code has another content", "coded.go", "p.code.Revision, p.code.Types", `"", p.code.Types`, "TestCoded_ItsRevisionTellsItFromWhatItWas"),
	}
}
