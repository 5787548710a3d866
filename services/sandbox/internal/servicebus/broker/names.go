package broker

import (
	"strings"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

const (
	maxEntityName = 260
	maxChildName  = 50 // of a subscription or rule
)

// checkName refuses names that a path could not carry.
func checkName(kind, name string, longest int, slashes bool) *entity.Error {
	if name == "" || len(name) > longest {
		return entity.ErrArgument("The %s name '%s' is not 1 to %d characters long.", kind, name, longest)
	}
	for _, c := range name {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune(".-_~", c) && (c != '/' || !slashes) && (c != '$' || kind != "rule") {
			return entity.ErrArgument("The %s name '%s' contains the invalid character %q.", kind, name, c)
		}
	}
	if slashes && (strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") || strings.Contains(strings.ToLower(name), subscriptionsPart)) {
		return entity.ErrArgument("The %s name '%s' is not a valid path.", kind, name)
	}
	return nil
}
