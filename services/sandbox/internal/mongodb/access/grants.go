package access

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Privilege is a set of actions on a resource.
type Privilege struct {
	Resource Resource `bson:"resource"`
	Actions  []Action `bson:"actions"`
}

// Check refuses actions that there are not.
func (p Privilege) Check() error {
	for _, action := range p.Actions {
		if !IsAction(action) {
			return fmt.Errorf("Unrecognized action privilege strings: %s", action) //nolint:staticcheck // the server's text
		}
	}
	return nil
}

// Grants are all that a user's roles allow. The nil Grants allow nothing.
type Grants map[Resource]map[Action]bool

// Allow adds a privilege.
func (g Grants) Allow(p Privilege) {
	actions := g[p.Resource]
	if actions == nil {
		actions = map[Action]bool{}
		g[p.Resource] = actions
	}
	for _, action := range p.Actions {
		actions[action] = true
	}
}

// Allows reports whether an action on a resource is granted.
func (g Grants) Allows(r Resource, action Action) bool {
	for _, grant := range r.grantedBy() {
		if actions := g[grant]; actions[action] || actions[anyAction] {
			return true
		}
	}
	return false
}

// AllowsAll reports whether every action of the privileges is granted.
func (g Grants) AllowsAll(privileges ...Privilege) bool {
	for _, p := range privileges {
		for _, action := range p.Actions {
			if !g.Allows(p.Resource, action) {
				return false
			}
		}
	}
	return true
}

// Privileges lists the grants, in the order of their resources.
func (g Grants) Privileges() []Privilege {
	list := make([]Privilege, 0, len(g))
	for resource, actions := range g {
		list = append(list, Privilege{Resource: resource, Actions: slices.Sorted(maps.Keys(actions))})
	}
	slices.SortFunc(list, func(a, b Privilege) int {
		return strings.Compare(fmt.Sprint(a.Resource), fmt.Sprint(b.Resource))
	})
	return list
}
