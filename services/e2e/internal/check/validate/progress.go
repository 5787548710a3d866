package validate

// Regressions finds writes that left a read document at the version it had, or
// at a lower one: a redelivery or a stale leader that moved a read model back.
func Regressions(applies []Apply) Findings {
	at := make(map[string]int64)
	var f Findings
	for _, a := range applies {
		if last, found := at[a.Document]; found && a.Version <= last {
			f.Add("%s went from version %d to %d", a.Document, last, a.Version)
		}
		at[a.Document] = a.Version
	}
	return f
}

// CheckpointRegressions finds checkpoint writes that went back: in position, or
// to a lower term.
func CheckpointRegressions(history []Checkpoint) Findings {
	last := make(map[string]Checkpoint)
	var f Findings
	for _, c := range history {
		prev, found := last[c.Stream]
		switch {
		case !found:
		case c.Term < prev.Term:
			f.Add("checkpoint of %s went from term %d to %d", c.Stream, prev.Term, c.Term)
		case c.Position < prev.Position:
			f.Add("checkpoint of %s went from position %s to %s in term %d", c.Stream, prev.Position, c.Position, c.Term)
		}
		last[c.Stream] = c
	}
	return f
}
