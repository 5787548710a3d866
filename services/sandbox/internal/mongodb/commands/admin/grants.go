package admin

import (
	"context"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/accounts"
	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// grantArguments are those of the commands that give or take roles or
// privileges.
type grantArguments struct {
	// to is the user or role in the command's first field.
	to         access.Name
	roles      []access.Name
	privileges []access.Privilege
}

// parseGrant reads what the command gives or takes: the field roles or the field
// privileges, whichever it has.
func parseGrant(c *command.Call, field string) (grantArguments, error) {
	g := grantArguments{to: access.Name{DB: c.DB}}
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch {
		case name == c.Name:
			g.to.Name = a.Text(name, v)
		case name == field && field == "roles":
			g.roles = a.RoleNames(c.DB, name, v)
		case name == field:
			g.privileges = a.Privileges(c.DB, name, v)
		case !command.IsGeneric(name):
			a.Unknown(40415, c.Name, name)
		}
	}
	if len(g.roles)+len(g.privileges) == 0 {
		a.Fail(mongoerr.BadValue, "\"%s\" command requires a non-empty \"%s\" array", c.Name, field)
	}
	return g, a.Err
}

// changeUserRoles is grantRolesToUser, or revokeRolesFromUser.
func changeUserRoles(change func(list, roles []accounts.RoleName) []accounts.RoleName) run {
	return func(ctx context.Context, c *command.Call, _ *command.Reply) error {
		g, err := parseGrant(c, "roles")
		if err != nil {
			return err
		}
		roles, err := c.Server.Accounts.Existing(g.roles)
		if err != nil {
			return err
		}
		found, err := c.Server.Accounts.ChangeUser(ctx, g.to, func(doc *accounts.UserDocument) error {
			doc.Roles = change(doc.Roles, roles)
			return nil
		})
		if err == nil && !found {
			return errNoUser(g.to)
		}
		return err
	}
}

// run is what a command does.
type run = func(context.Context, *command.Call, *command.Reply) error

// grantRolesToRole refuses roles of other databases, unless the role is of the
// database admin, and those that hold it already.
func grantRolesToRole(ctx context.Context, c *command.Call, _ *command.Reply) error {
	g, err := parseGrant(c, "roles")
	if err != nil {
		return err
	}
	for _, role := range g.roles {
		if role.DB != c.DB && c.DB != "admin" {
			return mongoerr.New(mongoerr.InvalidRoleModification,
				"Roles on the '%s' database cannot be granted roles from other databases", c.DB)
		}
		cycle, err := c.Server.Accounts.Holds(role, g.to)
		if err != nil {
			return err
		}
		if cycle {
			return mongoerr.New(mongoerr.InvalidRoleModification,
				"Granting %s to %s would introduce a cycle in the role graph", role, g.to)
		}
	}
	return changeRoleRoles(ctx, c, g, accounts.GrantRoles)
}

func revokeRolesFromRole(ctx context.Context, c *command.Call, _ *command.Reply) error {
	g, err := parseGrant(c, "roles")
	if err != nil {
		return err
	}
	return changeRoleRoles(ctx, c, g, accounts.RevokeRoles)
}

func changeRoleRoles(ctx context.Context, c *command.Call, g grantArguments, change func(list, roles []accounts.RoleName) []accounts.RoleName) error {
	roles, err := c.Server.Accounts.Existing(g.roles)
	if err != nil {
		return err
	}
	return changeRole(ctx, c, g.to, func(doc *accounts.RoleDocument) error {
		doc.Roles = change(doc.Roles, roles)
		return nil
	})
}

// changePrivileges is grantPrivilegesToRole, or revokePrivilegesFromRole.
func changePrivileges(change func(*accounts.RoleDocument, []access.Privilege)) run {
	return func(ctx context.Context, c *command.Call, _ *command.Reply) error {
		g, err := parseGrant(c, "privileges")
		if err != nil {
			return err
		}
		return changeRole(ctx, c, g.to, func(doc *accounts.RoleDocument) error {
			change(doc, g.privileges)
			return nil
		})
	}
}

// changeRole refuses the roles of the server's own, and those that are not there.
func changeRole(ctx context.Context, c *command.Call, name access.Name, change func(*accounts.RoleDocument) error) error {
	if _, builtIn := access.BuiltIn(name); builtIn {
		return mongoerr.New(mongoerr.InvalidRoleModification, "%s is a built-in role and cannot be modified.", name)
	}
	found, err := c.Server.Accounts.ChangeRole(ctx, name, change)
	if err == nil && !found {
		return errNoRole(name)
	}
	return err
}

func dropAllUsers(ctx context.Context, c *command.Call, r *command.Reply) error {
	n, err := c.Server.Accounts.RemoveAll(ctx, accounts.UsersNamespace, c.DB)
	r.Int32("n", int32(n))
	return err
}

func dropAllRoles(ctx context.Context, c *command.Call, r *command.Reply) error {
	n, err := c.Server.Accounts.RemoveAll(ctx, accounts.RolesNamespace, c.DB)
	r.Int32("n", int32(n))
	return err
}
