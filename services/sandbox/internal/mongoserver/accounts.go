package mongoserver

import (
	"context"
	"errors"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/access"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/query"
	"changerelay/services/sandbox/internal/scram"
)

// Where the server keeps users and roles.
var (
	usersNamespace = engine.Namespace{DB: "admin", Collection: "system.users"}
	rolesNamespace = engine.Namespace{DB: "admin", Collection: "system.roles"}
)

// accounts are the users and roles, documents of the admin database like any
// others.
type accounts struct {
	engine *engine.Engine
	// version grows with each change, so that connections know when to read
	// again what their user may do.
	version atomic.Uint64
}

func newAccounts(e *engine.Engine) *accounts {
	a := &accounts{engine: e}
	a.version.Store(1)
	return a
}

// userDocument is a user as admin.system.users keeps it.
type userDocument struct {
	ID          string                        `bson:"_id"`
	UserID      bson.Binary                   `bson:"userId"`
	User        string                        `bson:"user"`
	DB          string                        `bson:"db"`
	Credentials map[string]credentialDocument `bson:"credentials"`
	CustomData  bson.Raw                      `bson:"customData,omitempty"`
	Roles       []roleName                    `bson:"roles"`
}

type credentialDocument struct {
	Iterations int    `bson:"iterationCount"`
	Salt       []byte `bson:"salt"`
	StoredKey  []byte `bson:"storedKey"`
	ServerKey  []byte `bson:"serverKey"`
}

// roleName is {role, db}.
type roleName struct {
	Role string `bson:"role"`
	DB   string `bson:"db"`
}

// roleDocument is a role as admin.system.roles keeps it.
type roleDocument struct {
	ID         string             `bson:"_id"`
	Role       string             `bson:"role"`
	DB         string             `bson:"db"`
	Privileges []access.Privilege `bson:"privileges"`
	Roles      []roleName         `bson:"roles"`
}

func namesOf(roles []roleName) []access.Name {
	names := make([]access.Name, len(roles))
	for i, r := range roles {
		names[i] = access.Name{Name: r.Role, DB: r.DB}
	}
	return names
}

// grants are what a user may do, whether there is one.
func (a *accounts) grants(user access.Name) (access.Grants, bool, error) {
	var doc userDocument
	found, err := a.read(usersNamespace, user, &doc)
	if !found || err != nil {
		return nil, false, err
	}
	grants, err := access.Resolve(namesOf(doc.Roles), a.existingRole)
	return grants, true, err
}

// existingRole is a role, or one that allows nothing in place of one that has
// been dropped since.
func (a *accounts) existingRole(name access.Name) (access.Role, bool, error) {
	role, _, err := a.role(name)
	return role, true, err
}

// role finds a role that was created.
func (a *accounts) role(name access.Name) (access.Role, bool, error) {
	var doc roleDocument
	found, err := a.read(rolesNamespace, name, &doc)
	return access.Role{Privileges: doc.Privileges, Roles: namesOf(doc.Roles)}, found, err
}

// errNoCredentials is a user that there is not, or that has no password.
var errNoCredentials = errors.New("no such user, or without credentials of the mechanism")

// credentials are those of a user.
func (a *accounts) credentials(user access.Name) (scram.Credentials, error) {
	var doc userDocument
	found, err := a.read(usersNamespace, user, &doc)
	if err != nil {
		return scram.Credentials{}, err
	}
	c, ok := doc.Credentials[scram.Mechanism]
	if !found || !ok {
		return scram.Credentials{}, errNoCredentials
	}
	return scram.Credentials{Salt: c.Salt, Iterations: c.Iterations, StoredKey: c.StoredKey, ServerKey: c.ServerKey}, nil
}

// read decodes a document, and reports whether there is one.
func (a *accounts) read(ns engine.Namespace, name access.Name, into any) (bool, error) {
	docs, err := a.find(ns, byID(name))
	if err != nil || len(docs) == 0 {
		return false, err
	}
	return true, bson.Unmarshal(docs[0], into)
}

func byID(name access.Name) bson.D { return bson.D{{Key: "_id", Value: name.ID()}} }

// find gives the documents that match.
func (a *accounts) find(ns engine.Namespace, filter bson.D) ([]bson.Raw, error) {
	compiled, err := compileFilter(filter)
	if err != nil {
		return nil, err
	}
	matching, err := a.engine.View(nil, ns).Documents(compiled, nil, engine.Hint{})
	if err != nil {
		return nil, err
	}
	var docs []bson.Raw
	for doc, err := range each(matching) {
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// create stores a new document; one that is there is the server's E11000.
func (a *accounts) create(ctx context.Context, ns engine.Namespace, doc any) error {
	raw, err := bson.Marshal(doc)
	if err != nil {
		return err
	}
	defer a.version.Add(1)
	_, err = a.engine.Insert(ctx, engine.Write{}, ns, []bson.Raw{raw})
	return err
}

// replace exchanges a document, and reports whether there was one.
func (a *accounts) replace(ctx context.Context, ns engine.Namespace, name access.Name, doc any) (bool, error) {
	raw, err := bson.Marshal(doc)
	if err != nil {
		return false, err
	}
	filter, err := compileFilter(byID(name))
	if err != nil {
		return false, err
	}
	defer a.version.Add(1)
	result, err := a.engine.Update(ctx, engine.Write{}, ns, engine.Update{
		Selection: engine.Selection{Filter: filter},
		Apply:     func(bson.Raw) (query.Applied, error) { return query.Applied{Doc: raw, Changed: true}, nil },
	})
	return result.Matched > 0, err
}

// remove deletes a document, and reports whether there was one.
func (a *accounts) remove(ctx context.Context, ns engine.Namespace, name access.Name) (bool, error) {
	filter, err := compileFilter(byID(name))
	if err != nil {
		return false, err
	}
	defer a.version.Add(1)
	result, err := a.engine.Delete(ctx, engine.Write{}, ns, engine.Selection{Filter: filter})
	return result.Matched > 0, err
}

func compileFilter(filter bson.D) (*query.Filter, error) {
	raw, err := bson.Marshal(filter)
	if err != nil {
		return nil, err
	}
	return query.CompileFilter(raw, query.Env{})
}

// declare makes the users and roles of a configuration, in the place of those of
// the same name.
func (a *accounts) declare(ctx context.Context, declared access.Accounts) error {
	for _, r := range declared.Roles {
		if _, err := a.remove(ctx, rolesNamespace, r.Name); err != nil {
			return err
		}
		doc, err := a.newRole(r.Name, r.Privileges, r.Roles)
		if err != nil {
			return err
		}
		if err := a.create(ctx, rolesNamespace, doc); err != nil {
			return err
		}
	}
	for _, u := range declared.Users {
		if _, err := a.remove(ctx, usersNamespace, u.Name); err != nil {
			return err
		}
		doc, err := a.newUser(u.Name, u.Password, u.Roles)
		if err != nil {
			return err
		}
		if err := a.create(ctx, usersNamespace, doc); err != nil {
			return err
		}
	}
	return nil
}
