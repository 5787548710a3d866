package sas

import (
	"fmt"
	"strings"
)

// Rights is a set of what a key allows.
type Rights uint8

// Rights of a key. The service gives whoever manages all of them.
const (
	Listen Rights = 1 << iota
	Send
	Manage

	All = Listen | Send | Manage
)

var rightNames = []struct {
	right Rights
	name  string
}{{Listen, "Listen"}, {Send, "Send"}, {Manage, "Manage"}}

// String lists the rights as the service writes them.
func (r Rights) String() string {
	var names []string
	for _, n := range rightNames {
		if r&n.right != 0 {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, ",")
}

// ParseRights reads a list such as "Listen,Send".
func ParseRights(list string) (Rights, error) {
	var r Rights
	for word := range strings.SplitSeq(list, ",") {
		found := false
		for _, n := range rightNames {
			if strings.EqualFold(strings.TrimSpace(word), n.name) {
				r |= n.right
				found = true
			}
		}
		if !found {
			return 0, fmt.Errorf("right %q is none of Listen, Send and Manage", word)
		}
	}
	if r&Manage != 0 {
		r = All
	}
	return r, nil
}

// Key is a secret with its rights.
type Key struct {
	Secret string
	Rights Rights
}

// Keys are keys by name. nil Keys check nothing.
type Keys map[string]Key
