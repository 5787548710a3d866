package checkpoint

import (
	"net"
	"net/netip"
	"strings"
)

// emulator ends the value of a namespace that is one of an emulator.
const emulator = " (emulator)"

// Namespace is the value of SERVICEBUS_NAMESPACE among a stream's settings: the
// address of the namespace, and whether an emulator is there, whose address says
// nothing of what it is.
func Namespace(address string, emulated bool) string {
	if emulated {
		return address + emulator
	}
	return address
}

// otherNamespace compares namespaces. The service knows one by its host's name,
// whatever the port, and no two have one name. An emulator, and what is at an IP
// address or localhost, may be the same at any other such address: a proxy's, or
// that of its next start.
func otherNamespace(was, is string) (Meaning, bool) {
	was, local := hostOf(was)
	is, alsoLocal := hostOf(is)
	if local && alsoLocal {
		return Warned, was != is
	}
	return Another, was != is
}

// hostOf is the host's name of a namespace, or its whole address where that is no
// name that is the namespace's own.
func hostOf(namespace string) (host string, local bool) {
	address, local := strings.CutSuffix(strings.ToLower(namespace), emulator)
	host = address
	if name, _, err := net.SplitHostPort(address); err == nil {
		host = name
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil || host == "localhost" {
		local = true
	}
	if local {
		return address, true
	}
	return strings.TrimSuffix(host, "."), false
}
