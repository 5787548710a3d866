package mongoserver

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/access"
	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/mongoerr"
)

// roleArguments are those of createRole and updateRole.
type roleArguments struct {
	name       access.Name
	privileges []access.Privilege
	roles      []access.Name
	// hasPrivileges and hasRoles tell what was given.
	hasPrivileges, hasRoles bool
}

func (c *call) roleArguments() (roleArguments, error) {
	role := roleArguments{name: access.Name{DB: c.db}}
	a := arguments{mismatch: mongoerr.TypeMismatch}
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.name:
			role.name.Name = a.text(name, v)
		case "privileges":
			role.privileges, role.hasPrivileges = a.privileges(c.db, name, v), true
		case "roles":
			role.roles, role.hasRoles = a.roleNames(c.db, name, v), true
		default:
			if !isGeneric(name) {
				a.unknown(40415, c.name, name)
			}
		}
	}
	if a.err == nil && role.name.Name == "" {
		a.fail(mongoerr.BadValue, "Role name must be non-empty")
	}
	return role, a.err
}

// privileges reads {resource, actions}, which for roles outside the admin
// database must be on their own.
func (a *arguments) privileges(db, field string, v bson.RawValue) []access.Privilege {
	privileges := []access.Privilege{}
	for _, doc := range a.documents(field, v) {
		var p access.Privilege
		if err := bson.Unmarshal(doc, &p); err != nil {
			a.fail(mongoerr.FailedToParse, "%s", err)
			return nil
		}
		if err := p.Check(); err != nil {
			a.fail(mongoerr.FailedToParse, "%s", err)
		}
		if db != "admin" && p.Resource.DB != db {
			a.fail(mongoerr.InvalidRoleModification,
				"Roles on the '%s' database cannot be granted privileges that target other databases or the cluster", db)
		}
		privileges = append(privileges, p)
	}
	return privileges
}

func createRole(ctx context.Context, c *call, _ *reply) error {
	role, err := c.roleArguments()
	if err != nil {
		return err
	}
	if !role.hasPrivileges || !role.hasRoles {
		return mongoerr.New(mongoerr.BadValue, "\"createRole\" command requires a \"privileges\" array and a \"roles\" array")
	}
	doc, err := c.server.accounts.newRole(role.name, role.privileges, role.roles)
	if err != nil {
		return err
	}
	err = c.server.accounts.create(ctx, rolesNamespace, doc)
	if mongoerr.Is(err, mongoerr.DuplicateKey) {
		return errRoleExists(role.name)
	}
	return err
}

func errRoleExists(name access.Name) error {
	return mongoerr.New(51002, "Role \"%s\" already exists", name)
}

// newRole makes the document of a role, whose own roles must be there.
func (a *accounts) newRole(name access.Name, privileges []access.Privilege, roles []access.Name) (roleDocument, error) {
	if _, builtIn := access.BuiltIn(name); builtIn {
		return roleDocument{}, errRoleExists(name)
	}
	inherited, err := a.existing(roles)
	return roleDocument{ID: name.ID(), Role: name.Name, DB: name.DB, Privileges: privileges, Roles: inherited}, err
}

func updateRole(ctx context.Context, c *call, _ *reply) error {
	role, err := c.roleArguments()
	if err != nil {
		return err
	}
	var doc roleDocument
	found, err := c.server.accounts.read(rolesNamespace, role.name, &doc)
	if err != nil {
		return err
	}
	if !found {
		return errNoRole(role.name)
	}
	if role.hasPrivileges {
		doc.Privileges = role.privileges
	}
	if role.hasRoles {
		if doc.Roles, err = c.server.accounts.existing(role.roles); err != nil {
			return err
		}
	}
	if found, err = c.server.accounts.replace(ctx, rolesNamespace, role.name, doc); err == nil && !found {
		return errNoRole(role.name)
	}
	return err
}

func errNoRole(name access.Name) error {
	return mongoerr.New(mongoerr.RoleNotFound, "Role '%s' not found", name)
}

func dropRole(ctx context.Context, c *call, _ *reply) error {
	name, err := c.account()
	if err != nil {
		return err
	}
	found, err := c.server.accounts.remove(ctx, rolesNamespace, name)
	if err == nil && !found {
		return errNoRole(name)
	}
	return err
}

// rolesInfo shows one role, several, or all of the database that were created.
func rolesInfo(_ context.Context, c *call, r *reply) error {
	showPrivileges := isTrue(c.body, "showPrivileges")
	filter, err := c.accountFilter("role", "showBuiltinRoles", "showAuthenticationRestrictions")
	if err != nil {
		return err
	}
	docs, err := c.server.accounts.find(rolesNamespace, filter)
	if err != nil {
		return err
	}
	shown := make([]bson.D, 0, len(docs))
	for _, raw := range docs {
		var doc roleDocument
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
	return r.marshalled("roles", shown)
}
