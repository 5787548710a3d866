package validate

// Interleaved finds writes of a hold that another one had followed already. A
// session is held by one projector at a time, and a hold that is over does not
// begin again; so whoever writes a document after another has taken over worked
// on the session at the same time.
func Interleaved(applies []Apply) Findings {
	var f Findings
	interleaved(applies, func(a Apply, last string, _ int64) {
		f.Add("%s was written to version %d by %s, after %s had taken over", a.Document, a.Version, a.Hold, last)
	})
	return f
}

// interleaved calls found for each such write, with the hold that took over last, and when
// one first took over from the write's own, in seconds since 1970.
func interleaved(applies []Apply, found func(a Apply, last string, since int64)) {
	holder := make(map[string]string)
	over := make(map[[2]string]int64) // by document and hold
	for _, a := range applies {
		if a.Hold == "" {
			continue
		}
		last := holder[a.Document]
		since, ended := over[[2]string{a.Document, a.Hold}]
		switch {
		case ended:
			found(a, last, since)
		case last != a.Hold:
			over[[2]string{a.Document, last}] = a.At
			holder[a.Document] = a.Hold
		}
	}
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
