package mongoserver

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/access"
	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/mongoerr"
	"changerelay/services/sandbox/internal/scram"
)

// userArguments are those of createUser and updateUser.
type userArguments struct {
	name       access.Name
	password   string
	roles      []access.Name
	customData bson.Raw
	// hasPassword, hasRoles and hasCustomData tell what was given.
	hasPassword, hasRoles, hasCustomData bool
}

func (c *call) userArguments() (userArguments, error) {
	u := userArguments{name: access.Name{DB: c.db}}
	a := arguments{mismatch: mongoerr.TypeMismatch}
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.name:
			u.name.Name = a.text(name, v)
		case "pwd":
			u.password, u.hasPassword = a.text(name, v), true
		case "roles":
			u.roles, u.hasRoles = a.roleNames(c.db, name, v), true
		case "customData":
			u.customData, u.hasCustomData = a.document(name, v), true
		case "digestPassword":
			if !a.boolean(name, v) {
				a.fail(mongoerr.BadValue, "Use of SCRAM-SHA-256 requires undigested passwords")
			}
		case "mechanisms":
			for _, mechanism := range a.array(name, v) {
				if m := a.text(name, mechanism); m != scram.Mechanism {
					a.fail(mongoerr.BadValue, "mechanism %s is not supported, %s is", m, scram.Mechanism)
				}
			}
		default:
			if !isGeneric(name) {
				a.unknown(40415, c.name, name)
			}
		}
	}
	if a.err == nil && (u.name.Name == "" || c.db == "local") {
		a.fail(mongoerr.BadValue, "a user needs a name, and can not be in the local database")
	}
	return u, a.err
}

// roleNames reads roles, each {role, db} or the name of one of the same
// database.
func (a *arguments) roleNames(db, field string, v bson.RawValue) []access.Name {
	var names []access.Name
	for _, element := range a.array(field, v) {
		if name, ok := element.StringValueOK(); ok {
			names = append(names, access.Name{Name: name, DB: db})
			continue
		}
		doc := a.document(field, element)
		role, _ := bsonkit.Get(doc, "role")
		of, _ := bsonkit.Get(doc, "db")
		names = append(names, access.Name{Name: a.text("role", role), DB: a.text("db", of)})
	}
	return names
}

func createUser(ctx context.Context, c *call, _ *reply) error {
	u, err := c.userArguments()
	if err != nil {
		return err
	}
	if !u.hasPassword || !u.hasRoles {
		return mongoerr.New(mongoerr.BadValue, "Must provide a 'pwd' field and a 'roles' field for all user documents")
	}
	doc, err := c.server.accounts.newUser(u.name, u.password, u.roles)
	if err != nil {
		return err
	}
	doc.CustomData = u.customData
	err = c.server.accounts.create(ctx, usersNamespace, doc)
	if mongoerr.Is(err, mongoerr.DuplicateKey) {
		return mongoerr.New(51003, "User \"%s\" already exists", u.name)
	}
	return err
}

// newUser makes the document of a user, whose roles must be there.
func (a *accounts) newUser(name access.Name, password string, roles []access.Name) (userDocument, error) {
	id := uuid.New()
	doc := userDocument{
		ID: name.ID(), UserID: bson.Binary{Subtype: bson.TypeBinaryUUID, Data: id[:]}, User: name.Name, DB: name.DB,
	}
	return doc, errors.Join(doc.setPassword(password), doc.setRoles(a, roles))
}

func (u *userDocument) setPassword(password string) error {
	c, err := scram.NewCredentials(password, scram.DefaultIterations)
	if err != nil || password == "" {
		return mongoerr.New(mongoerr.BadValue, "the password is empty, or has characters that SASLprep does not allow")
	}
	u.Credentials = map[string]credentialDocument{
		scram.Mechanism: {Iterations: c.Iterations, Salt: c.Salt, StoredKey: c.StoredKey, ServerKey: c.ServerKey},
	}
	return nil
}

func (u *userDocument) setRoles(a *accounts, roles []access.Name) error {
	var err error
	u.Roles, err = a.existing(roles)
	return err
}

// existing refuses roles that there are not.
func (a *accounts) existing(roles []access.Name) ([]roleName, error) {
	list := []roleName{}
	for _, role := range roles {
		if _, builtIn := access.BuiltIn(role); !builtIn {
			_, found, err := a.role(role)
			if err != nil {
				return nil, err
			}
			if !found {
				return nil, mongoerr.New(mongoerr.RoleNotFound, "No role named %s", role)
			}
		}
		list = append(list, roleName{Role: role.Name, DB: role.DB})
	}
	return list, nil
}

func updateUser(ctx context.Context, c *call, _ *reply) error {
	u, err := c.userArguments()
	if err != nil {
		return err
	}
	var doc userDocument
	found, err := c.server.accounts.read(usersNamespace, u.name, &doc)
	if err != nil {
		return err
	}
	if !found {
		return errNoUser(u.name)
	}
	if u.hasPassword {
		err = errors.Join(err, doc.setPassword(u.password))
	}
	if u.hasRoles {
		err = errors.Join(err, doc.setRoles(c.server.accounts, u.roles))
	}
	if u.hasCustomData {
		doc.CustomData = u.customData
	}
	if err != nil {
		return err
	}
	if found, err = c.server.accounts.replace(ctx, usersNamespace, u.name, doc); err == nil && !found {
		return errNoUser(u.name)
	}
	return err
}

func errNoUser(name access.Name) error {
	return mongoerr.New(mongoerr.UserNotFound, "User '%s' not found", name)
}

func dropUser(ctx context.Context, c *call, _ *reply) error {
	name, err := c.account()
	if err != nil {
		return err
	}
	found, err := c.server.accounts.remove(ctx, usersNamespace, name)
	if err == nil && !found {
		return errNoUser(name)
	}
	return err
}

// account is the user or role of the command's database in its first field.
func (c *call) account() (access.Name, error) {
	a := arguments{mismatch: mongoerr.TypeMismatch}
	for it := bsonkit.Iterate(c.body); it.Next(); {
		if name := string(it.Key()); name != c.name && !isGeneric(name) {
			a.unknown(40415, c.name, name)
		}
	}
	first, _ := c.body.IndexErr(0)
	return access.Name{Name: a.text(c.name, first.Value()), DB: c.db}, a.err
}

// usersInfo shows one user, several, or all of the database. Credentials are
// shown to nobody.
func usersInfo(_ context.Context, c *call, r *reply) error {
	filter, err := c.accountFilter("user", "showCredentials", "showPrivileges", "showAuthenticationRestrictions")
	if err != nil {
		return err
	}
	docs, err := c.server.accounts.find(usersNamespace, filter)
	if err != nil {
		return err
	}
	shown := make([]bson.D, 0, len(docs))
	for _, raw := range docs {
		var doc userDocument
		if err := bson.Unmarshal(raw, &doc); err != nil {
			return err
		}
		user := bson.D{
			{Key: "_id", Value: doc.ID}, {Key: "userId", Value: doc.UserID}, {Key: "user", Value: doc.User}, {Key: "db", Value: doc.DB},
		}
		if doc.CustomData != nil {
			user = append(user, bson.E{Key: "customData", Value: doc.CustomData})
		}
		shown = append(shown, append(user,
			bson.E{Key: "roles", Value: doc.Roles}, bson.E{Key: "mechanisms", Value: bson.A{scram.Mechanism}}))
	}
	return r.marshalled("users", shown)
}

// accountFilter finds what usersInfo and rolesInfo ask for: 1 for all of the
// database, one by name or by {field, db}, or an array of those.
func (c *call) accountFilter(field string, optional ...string) (bson.D, error) {
	a := arguments{mismatch: mongoerr.TypeMismatch}
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch {
		case name == c.name || isGeneric(name) || name == "showPrivileges" && field == "role":
		case !slices.Contains(optional, name):
			a.unknown(40415, c.name, name)
		case a.truth(name, v):
			a.fail(mongoerr.NotImplemented, "%s with %s is not supported", c.name, name)
		}
	}
	first, _ := c.body.IndexErr(0)
	asked := first.Value()
	if bsonkit.IsNumber(asked.Type) {
		return bson.D{{Key: "db", Value: c.db}}, a.err
	}
	elements := []bson.RawValue{asked}
	if asked.Type == bson.TypeArray {
		elements = a.array(c.name, asked)
	}
	ids := bson.A{}
	for _, element := range elements {
		name := access.Name{DB: c.db}
		if doc, ok := element.DocumentOK(); ok {
			of, _ := bsonkit.Get(doc, "db")
			name.DB = a.text("db", of)
			element, _ = bsonkit.Get(doc, field)
		}
		name.Name = a.text(field, element)
		ids = append(ids, name.ID())
	}
	return bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}}, a.err
}
