package admin

import (
	"slices"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
)

// userPrivileges are those of createUser and updateUser: whoever gives a role
// must be granted that where the role is.
func userPrivileges(c *command.Call) []access.Privilege {
	action := access.CreateUser
	if c.Name == "updateUser" {
		action = access.ChangePassword
	}
	return append([]access.Privilege{{Resource: access.Database(c.DB), Actions: []access.Action{action}}}, changingRoles(access.GrantRole)(c)...)
}

// rolePrivileges are those of createRole and updateRole: whoever puts a
// privilege into a role must be granted that where the privilege is.
func rolePrivileges(c *command.Call) []access.Privilege {
	needed := []access.Privilege{{Resource: access.Database(c.DB), Actions: []access.Action{access.CreateRole}}}
	return slices.Concat(needed, changingRoles(access.GrantRole)(c), changingPrivileges(access.GrantRole)(c))
}

// changingRoles needs an action where each of the command's roles is.
func changingRoles(action access.Action) func(*command.Call) []access.Privilege {
	return func(c *command.Call) []access.Privilege {
		var needed []access.Privilege
		a := command.Arguments{}
		roles, _ := bsonkit.Get(c.Body, "roles")
		for _, role := range a.RoleNames(c.DB, "roles", roles) {
			needed = append(needed, access.Privilege{Resource: access.Database(role.DB), Actions: []access.Action{action}})
		}
		return needed
	}
}

// changingPrivileges needs an action where each of the command's privileges is.
func changingPrivileges(action access.Action) func(*command.Call) []access.Privilege {
	return func(c *command.Call) []access.Privilege {
		var needed []access.Privilege
		a := command.Arguments{}
		privileges, _ := bsonkit.Get(c.Body, "privileges")
		for _, p := range a.Privileges(c.DB, "privileges", privileges) {
			at := access.Database(p.Resource.DB)
			if p.Resource.Cluster || p.Resource.Any {
				at = access.Database("admin")
			}
			needed = append(needed, access.Privilege{Resource: at, Actions: []access.Action{action}})
		}
		return needed
	}
}
