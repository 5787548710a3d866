package admin

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/accounts"
	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/scram"
)

// userArguments are those of createUser and updateUser.
type userArguments struct {
	name       access.Name
	password   accounts.Password
	roles      []access.Name
	customData bson.Raw
	// hasPassword, hasRoles and hasCustomData tell what was given.
	hasPassword, hasRoles, hasCustomData bool
}

func parseUser(c *command.Call) (userArguments, error) {
	u := userArguments{name: access.Name{DB: c.DB}}
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.Name:
			u.name.Name = a.Text(name, v)
		case "pwd":
			u.password.Text, u.hasPassword = a.Text(name, v), true
		case "roles":
			u.roles, u.hasRoles = a.RoleNames(c.DB, name, v), true
		case "customData":
			u.customData, u.hasCustomData = a.Document(name, v), true
		case "digestPassword":
			u.password.Digested = !a.Boolean(name, v)
		case "mechanisms":
			u.password.Mechanisms = readMechanisms(&a, name, v)
		default:
			if !command.IsGeneric(name) {
				a.Unknown(40415, c.Name, name)
			}
		}
	}
	if a.Err == nil && (u.name.Name == "" || c.DB == "local") {
		a.Fail(mongoerr.BadValue, "a user needs a name, and cannot be in the local database")
	}
	return u, a.Err
}

func readMechanisms(a *command.Arguments, name string, v bson.RawValue) []scram.Mechanism {
	var mechanisms []scram.Mechanism
	for _, element := range a.Array(name, v) {
		m := scram.Mechanism(a.Text(name, element))
		if !m.Known() {
			a.Fail(mongoerr.BadValue, "Unknown auth mechanism '%s'", m)
		}
		mechanisms = append(mechanisms, m)
	}
	if len(mechanisms) == 0 {
		a.Fail(mongoerr.BadValue, "mechanisms field must not be empty")
	}
	return mechanisms
}

func mechanismNames(mechanisms []scram.Mechanism) []string {
	names := make([]string, len(mechanisms))
	for i, m := range mechanisms {
		names[i] = string(m)
	}
	return names
}

func createUser(ctx context.Context, c *command.Call, _ *command.Reply) error {
	u, err := parseUser(c)
	if err != nil {
		return err
	}
	if !u.hasPassword || !u.hasRoles {
		return mongoerr.New(mongoerr.BadValue, "Must provide a 'pwd' field and a 'roles' field for all user documents")
	}
	doc, err := c.Server.Accounts.NewUser(u.name, u.password, u.roles)
	if err != nil {
		return err
	}
	doc.CustomData = u.customData
	err = c.Server.Accounts.Create(ctx, accounts.UsersNamespace, doc)
	if mongoerr.Is(err, mongoerr.DuplicateKey) {
		return mongoerr.New(51003, "User \"%s\" already exists", u.name)
	}
	return err
}

func updateUser(ctx context.Context, c *command.Call, _ *command.Reply) error {
	u, err := parseUser(c)
	if err != nil {
		return err
	}
	roles, err := c.Server.Accounts.Existing(u.roles)
	if err != nil {
		return err
	}
	proof := accounts.UserDocument{User: u.name.Name}
	if u.hasPassword {
		if err := proof.SetPassword(u.password); err != nil {
			return err
		}
	}
	found, err := c.Server.Accounts.ChangeUser(ctx, u.name, func(doc *accounts.UserDocument) error {
		if u.hasRoles {
			doc.Roles = roles
		}
		if u.hasCustomData {
			doc.CustomData = u.customData
		}
		if u.hasPassword {
			doc.Credentials = proof.Credentials
		} else if u.password.Mechanisms != nil {
			return doc.KeepMechanisms(u.password.Mechanisms)
		}
		return nil
	})
	if err == nil && !found {
		return errNoUser(u.name)
	}
	return err
}

func errNoUser(name access.Name) error {
	return mongoerr.New(mongoerr.UserNotFound, "User '%s' not found", name)
}

func dropUser(ctx context.Context, c *command.Call, _ *command.Reply) error {
	name, err := account(c)
	if err != nil {
		return err
	}
	found, err := c.Server.Accounts.Remove(ctx, accounts.UsersNamespace, name)
	if err == nil && !found {
		return errNoUser(name)
	}
	return err
}

// account is the user or role of the command's database in its first field.
func account(c *command.Call) (access.Name, error) {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		if name := string(it.Key()); name != c.Name && !command.IsGeneric(name) {
			a.Unknown(40415, c.Name, name)
		}
	}
	first, _ := c.Body.IndexErr(0)
	return access.Name{Name: a.Text(c.Name, first.Value()), DB: c.DB}, a.Err
}

// usersInfo shows one user, several, or all of the database. Credentials are
// shown to nobody.
func usersInfo(_ context.Context, c *command.Call, r *command.Reply) error {
	filter, err := accountFilter(c, "user", "showCredentials", "showPrivileges", "showAuthenticationRestrictions")
	if err != nil {
		return err
	}
	docs, err := c.Server.Accounts.Find(accounts.UsersNamespace, filter)
	if err != nil {
		return err
	}
	shown := make([]bson.D, 0, len(docs))
	for _, raw := range docs {
		var doc accounts.UserDocument
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
			bson.E{Key: "roles", Value: doc.Roles}, bson.E{Key: "mechanisms", Value: mechanismNames(doc.Mechanisms())}))
	}
	return r.Marshalled("users", shown)
}

// accountFilter finds what usersInfo and rolesInfo ask for: 1 for all of the
// database, one by name or by {field, db}, or an array of those.
func accountFilter(c *command.Call, field string, optional ...string) (bson.D, error) {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch {
		case name == c.Name || command.IsGeneric(name) || name == "showPrivileges" && field == "role":
		case !slices.Contains(optional, name):
			a.Unknown(40415, c.Name, name)
		case a.Truth(name, v):
			a.Fail(mongoerr.NotImplemented, "%s with %s is not supported", c.Name, name)
		}
	}
	first, _ := c.Body.IndexErr(0)
	asked := first.Value()
	if bsonkit.IsNumber(asked.Type) {
		return bson.D{{Key: "db", Value: c.DB}}, a.Err
	}
	elements := []bson.RawValue{asked}
	if asked.Type == bson.TypeArray {
		elements = a.Array(c.Name, asked)
	}
	ids := bson.A{}
	for _, element := range elements {
		name := access.Name{DB: c.DB}
		if doc, ok := element.DocumentOK(); ok {
			of, _ := bsonkit.Get(doc, "db")
			name.DB = a.Text("db", of)
			element, _ = bsonkit.Get(doc, field)
		}
		name.Name = a.Text(field, element)
		ids = append(ids, name.ID())
	}
	return bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}}, a.Err
}
