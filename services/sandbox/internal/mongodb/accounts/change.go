package accounts

import (
	"slices"

	"changerelay/services/sandbox/internal/mongodb/access"
)

// GrantRoles adds roles that are not in the list yet.
func GrantRoles(list, granted []RoleName) []RoleName {
	for _, role := range granted {
		if !slices.Contains(list, role) {
			list = append(list, role)
		}
	}
	return list
}

// RevokeRoles takes roles out of the list.
func RevokeRoles(list, revoked []RoleName) []RoleName {
	return slices.DeleteFunc(slices.Clone(list), func(role RoleName) bool { return slices.Contains(revoked, role) })
}

// Grant adds actions to those that the role has on the same resource.
func (r *RoleDocument) Grant(privileges []access.Privilege) {
	for _, p := range privileges {
		at := slices.IndexFunc(r.Privileges, func(has access.Privilege) bool { return has.Resource == p.Resource })
		if at < 0 {
			r.Privileges = append(r.Privileges, access.Privilege{Resource: p.Resource})
			at = len(r.Privileges) - 1
		}
		for _, action := range p.Actions {
			if !slices.Contains(r.Privileges[at].Actions, action) {
				r.Privileges[at].Actions = append(r.Privileges[at].Actions, action)
			}
		}
	}
}

// Revoke takes actions away that the role has on the same resource.
func (r *RoleDocument) Revoke(privileges []access.Privilege) {
	for _, p := range privileges {
		for i, has := range r.Privileges {
			if has.Resource == p.Resource {
				r.Privileges[i].Actions = slices.DeleteFunc(has.Actions, func(a access.Action) bool { return slices.Contains(p.Actions, a) })
			}
		}
	}
	r.Privileges = slices.DeleteFunc(r.Privileges, func(p access.Privilege) bool { return len(p.Actions) == 0 })
}
