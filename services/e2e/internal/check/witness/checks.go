package witness

import (
	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/check/validate"
)

// Check allows nothing of a kind of violation. It cannot pass where the history of that
// kind has no entry: that shows nothing, least of all that nothing is wrong.
func (v Verdict) Check(f Violation) report.Check {
	if v.Unseen[f.Name] {
		return report.Impossible(f.Name, 0, report.Count, "none was ever seen")
	}
	return report.AtMost(f.Name, float64(f.Count), 0, report.Count, f.Samples...)
}

// unseen are the kinds of violations whose history has no entry.
func (w *Witness) unseen(sends []validate.Send) map[string]bool {
	claims, applies := len(w.Checkpoints.History()) == 0, w.Applies.History()
	return map[string]bool{
		OutOfOrder:          len(sends) == 0,
		OverlappingTerms:    len(sends) == 0,
		TermsUnclaimed:      claims,
		TermsShared:         claims,
		CheckpointsWentBack: claims,
		DocumentsWentBack:   len(applies) == 0,
		WorkedOnAtOnce:      validate.NoneHeld(applies),
		LeasesOverlapping:   len(w.Leases.History()) == 0,
	}
}
