package validate

// Interleaved finds writes of a hold that another one had followed already. A
// session is held by one projector at a time, and a hold that is over does not
// begin again; so whoever writes a document after another has taken over worked
// on the session at the same time.
func Interleaved(applies []Apply) Findings {
	holder := make(map[string]string)
	over := make(map[[2]string]bool) // by document and hold
	var f Findings
	for _, a := range applies {
		if a.Hold == "" {
			continue
		}
		last := holder[a.Document]
		switch {
		case over[[2]string{a.Document, a.Hold}]:
			f.Add("%s was written to version %d by %s, after %s had taken over", a.Document, a.Version, a.Hold, last)
		case last != a.Hold:
			over[[2]string{a.Document, last}] = true
			holder[a.Document] = a.Hold
		}
	}
	return f
}

// NoneHeld says that no write names its hold, so that Interleaved can find nothing.
func NoneHeld(applies []Apply) bool {
	for _, a := range applies {
		if a.Hold != "" {
			return false
		}
	}
	return true
}

// Takeovers is how often a document was written by another hold than before.
func Takeovers(applies []Apply) int {
	holder, n := make(map[string]string), 0
	for _, a := range applies {
		if last, found := holder[a.Document]; found && last != a.Hold {
			n++
		}
		holder[a.Document] = a.Hold
	}
	return n
}
