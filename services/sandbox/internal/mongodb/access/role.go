package access

import (
	"fmt"
	"slices"
)

// Name is the name of a role or user, which is its own in each database.
type Name struct {
	Name string
	DB   string
}

// String is how error texts and _ids of the server spell it, the database last
// or first.
func (n Name) String() string { return n.Name + "@" + n.DB }

// ID is the _id of its document.
func (n Name) ID() string { return n.DB + "." + n.Name }

// Role is what a role holds.
type Role struct {
	Privileges []Privilege
	Roles      []Name
}

// UnknownRoleError is a role that there is not.
type UnknownRoleError struct{ Role Name }

func (e *UnknownRoleError) Error() string { return fmt.Sprintf("No role named %s", e.Role) }

// Resolve gives what roles allow, with the roles they hold. find gives the
// roles that are not built in; it reports whether there is one. A role that is
// missing is an *UnknownRoleError.
func Resolve(roles []Name, find func(Name) (Role, bool, error)) (Grants, error) {
	grants, seen := Grants{}, map[Name]bool{}
	for waiting := roles; len(waiting) > 0; {
		name := waiting[0]
		waiting = waiting[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		role, ok := BuiltIn(name)
		if !ok {
			var err error
			if role, ok, err = find(name); err != nil {
				return nil, err
			}
		}
		if !ok {
			return nil, &UnknownRoleError{Role: name}
		}
		for _, p := range role.Privileges {
			grants.Allow(p)
		}
		waiting = append(slices.Clip(waiting), role.Roles...)
	}
	return grants, nil
}
