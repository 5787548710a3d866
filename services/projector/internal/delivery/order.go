package delivery

import (
	"cmp"
	"slices"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/session"
)

// byVersion returns messages in the order of their versions, and the place each
// had; nil where they are in order already, or not all of them have one.
func byVersion(messages []session.Message) (ordered []session.Message, places []int) {
	versions, known := make([]int64, len(messages)), true
	for i := range messages {
		version := contract.MessageVersion(messages[i].Message)
		versions[i], known = version.Number, known && version.Known
	}
	if !known || slices.IsSorted(versions) {
		return messages, nil
	}
	places = make([]int, len(messages))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(versions[a], versions[b]) })
	ordered = make([]session.Message, len(messages))
	for i, place := range places {
		ordered[i] = messages[place]
	}
	return ordered, places
}

// inPlace puts verdicts over ordered messages in the order in which those came:
// as many as there are from the first on.
func inPlace(verdicts []session.Verdict, places []int) []session.Verdict {
	if places == nil {
		return verdicts
	}
	came, done := make([]session.Verdict, len(places)), make([]bool, len(places)+1)
	for i := range verdicts {
		came[places[i]], done[places[i]] = verdicts[i], true
	}
	return came[:slices.Index(done, false)]
}
