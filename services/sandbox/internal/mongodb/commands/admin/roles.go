package admin

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/accounts"
	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// roleArguments are those of createRole and updateRole.
type roleArguments struct {
	name       access.Name
	privileges []access.Privilege
	roles      []access.Name
	// hasPrivileges and hasRoles tell what was given.
	hasPrivileges, hasRoles bool
}

func parseRole(c *command.Call) (roleArguments, error) {
	role := roleArguments{name: access.Name{DB: c.DB}}
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.Name:
			role.name.Name = a.Text(name, v)
		case "privileges":
			role.privileges, role.hasPrivileges = a.Privileges(c.DB, name, v), true
		case "roles":
			role.roles, role.hasRoles = a.RoleNames(c.DB, name, v), true
		default:
			if !command.IsGeneric(name) {
				a.Unknown(40415, c.Name, name)
			}
		}
	}
	if a.Err == nil && role.name.Name == "" {
		a.Fail(mongoerr.BadValue, "Role name must be non-empty")
	}
	return role, a.Err
}

func createRole(ctx context.Context, c *command.Call, _ *command.Reply) error {
	role, err := parseRole(c)
	if err != nil {
		return err
	}
	if !role.hasPrivileges || !role.hasRoles {
		return mongoerr.New(mongoerr.BadValue, "\"createRole\" command requires a \"privileges\" array and a \"roles\" array")
	}
	doc, err := c.Server.Accounts.NewRole(role.name, role.privileges, role.roles)
	if err != nil {
		return err
	}
	err = c.Server.Accounts.Create(ctx, accounts.RolesNamespace, doc)
	if mongoerr.Is(err, mongoerr.DuplicateKey) {
		return accounts.ErrRoleExists(role.name)
	}
	return err
}

func updateRole(ctx context.Context, c *command.Call, _ *command.Reply) error {
	role, err := parseRole(c)
	if err != nil {
		return err
	}
	roles, err := c.Server.Accounts.Existing(role.roles)
	if err != nil {
		return err
	}
	found, err := c.Server.Accounts.ChangeRole(ctx, role.name, func(doc *accounts.RoleDocument) error {
		if role.hasPrivileges {
			doc.Privileges = role.privileges
		}
		if role.hasRoles {
			doc.Roles = roles
		}
		return nil
	})
	if err == nil && !found {
		return errNoRole(role.name)
	}
	return err
}

func errNoRole(name access.Name) error {
	return mongoerr.New(mongoerr.RoleNotFound, "Role '%s' not found", name)
}

func dropRole(ctx context.Context, c *command.Call, _ *command.Reply) error {
	name, err := account(c)
	if err != nil {
		return err
	}
	found, err := c.Server.Accounts.Remove(ctx, accounts.RolesNamespace, name)
	if err == nil && !found {
		return errNoRole(name)
	}
	return err
}

// rolesInfo shows one role, several, or all of the database that were created.
func rolesInfo(_ context.Context, c *command.Call, r *command.Reply) error {
	showPrivileges := command.IsTrue(c.Body, "showPrivileges")
	filter, err := accountFilter(c, "role", "showBuiltinRoles", "showAuthenticationRestrictions")
	if err != nil {
		return err
	}
	docs, err := c.Server.Accounts.Find(accounts.RolesNamespace, filter)
	if err != nil {
		return err
	}
	shown := make([]bson.D, 0, len(docs))
	for _, raw := range docs {
		var doc accounts.RoleDocument
		if err := bson.Unmarshal(raw, &doc); err != nil {
			return err
		}
		role := bson.D{
			{Key: "role", Value: doc.Role},
			{Key: "db", Value: doc.DB},
			{Key: "isBuiltin", Value: false},
			{Key: "roles", Value: doc.Roles},
			{Key: "inheritedRoles", Value: doc.Roles},
		}
		if showPrivileges {
			role = append(role, bson.E{Key: "privileges", Value: doc.Privileges})
		}
		shown = append(shown, role)
	}
	return r.Marshalled("roles", shown)
}
