package contract

import "strings"

// validTraceParent tells a traceparent that a reader may use: W3C Trace Context
// section 3.2.2, with room for a later version's additions (section 3.2.4).
func validTraceParent(s string) bool {
	const (
		length     = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		lengthMost = 128
	)
	switch {
	case len(s) < length || len(s) > lengthMost:
		return false
	case s[2] != '-' || s[35] != '-' || s[52] != '-':
		return false
	case len(s) > length && (s[:2] == "00" || s[length] != '-'):
		return false
	case !lowerHex(s[:2]) || !lowerHex(s[3:35]) || !lowerHex(s[36:52]) || !lowerHex(s[53:55]):
		return false
	case s[:2] == "ff" || strings.Trim(s[3:35], "0") == "" || strings.Trim(s[36:52], "0") == "":
		return false
	}
	return printable(s[length:])
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
