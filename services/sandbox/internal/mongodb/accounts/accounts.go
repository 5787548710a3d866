// Package accounts keeps users and roles where a MongoDB server keeps them, in the
// database admin, and says what each user is granted.
package accounts

import (
	"context"
	"errors"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/match"
	"changerelay/services/sandbox/internal/mongodb/query/modify"
	"changerelay/services/sandbox/internal/mongodb/scram"
)

// Where the server keeps users and roles.
var (
	UsersNamespace = oplog.Namespace{DB: "admin", Collection: "system.users"}
	RolesNamespace = oplog.Namespace{DB: "admin", Collection: "system.roles"}
)

// Store are the users and roles, documents of the admin database like any
// others.
type Store struct {
	engine *engine.Engine
	// Version grows with each change, so that connections know when to read
	// again what their user may do.
	Version atomic.Uint64
}

// New keeps the accounts in the engine, where a server keeps them.
func New(e *engine.Engine) *Store {
	a := &Store{engine: e}
	a.Version.Store(1)
	return a
}

// UserDocument is a user as admin.system.users keeps it.
type UserDocument struct {
	ID          string                                 `bson:"_id"`
	UserID      bson.Binary                            `bson:"userId"`
	User        string                                 `bson:"user"`
	DB          string                                 `bson:"db"`
	Credentials map[scram.Mechanism]credentialDocument `bson:"credentials"`
	CustomData  bson.Raw                               `bson:"customData,omitempty"`
	Roles       []RoleName                             `bson:"roles"`
}

type credentialDocument struct {
	Iterations int    `bson:"iterationCount"`
	Salt       []byte `bson:"salt"`
	StoredKey  []byte `bson:"storedKey"`
	ServerKey  []byte `bson:"serverKey"`
}

// RoleName is {role, db}.
type RoleName struct {
	Role string `bson:"role"`
	DB   string `bson:"db"`
}

// RoleDocument is a role as admin.system.roles keeps it.
type RoleDocument struct {
	ID         string             `bson:"_id"`
	Role       string             `bson:"role"`
	DB         string             `bson:"db"`
	Privileges []access.Privilege `bson:"privileges"`
	Roles      []RoleName         `bson:"roles"`
}

func namesOf(roles []RoleName) []access.Name {
	names := make([]access.Name, len(roles))
	for i, r := range roles {
		names[i] = access.Name{Name: r.Role, DB: r.DB}
	}
	return names
}

// Grants are what a user may do, whether there is one.
func (a *Store) Grants(user access.Name) (access.Grants, bool, error) {
	var doc UserDocument
	found, err := a.Read(UsersNamespace, user, &doc)
	if !found || err != nil {
		return nil, false, err
	}
	grants, err := access.Resolve(namesOf(doc.Roles), a.existingRole)
	return grants, true, err
}

// existingRole is a role, or one that allows nothing in place of one that has
// been dropped since.
func (a *Store) existingRole(name access.Name) (access.Role, bool, error) {
	role, _, err := a.role(name)
	return role, true, err
}

// role finds a role that was created.
func (a *Store) role(name access.Name) (access.Role, bool, error) {
	var doc RoleDocument
	found, err := a.Read(RolesNamespace, name, &doc)
	return access.Role{Privileges: doc.Privileges, Roles: namesOf(doc.Roles)}, found, err
}

// errNoCredentials is a user that there is not, or that has no password.
var errNoCredentials = errors.New("no such user, or without credentials of the mechanism")

// Credentials are those of a user, of one mechanism.
func (a *Store) Credentials(user access.Name, m scram.Mechanism) (scram.Credentials, error) {
	var doc UserDocument
	found, err := a.Read(UsersNamespace, user, &doc)
	if err != nil {
		return scram.Credentials{}, err
	}
	c, ok := doc.Credentials[m]
	if !found || !ok {
		return scram.Credentials{}, errNoCredentials
	}
	return scram.Credentials{Mechanism: m, Salt: c.Salt, Iterations: c.Iterations, StoredKey: c.StoredKey, ServerKey: c.ServerKey}, nil
}

// Mechanisms are those that a user can authenticate with, none for a user that
// there is not.
func (a *Store) Mechanisms(user access.Name) ([]scram.Mechanism, error) {
	var doc UserDocument
	found, err := a.Read(UsersNamespace, user, &doc)
	if !found || err != nil {
		return nil, err
	}
	return doc.Mechanisms(), nil
}

// Verify tells whether a password is the user's.
func (a *Store) Verify(user access.Name, password string) error {
	mechanisms, err := a.Mechanisms(user)
	if err != nil {
		return err
	}
	if len(mechanisms) == 0 {
		return errNoCredentials
	}
	credentials, err := a.Credentials(user, mechanisms[len(mechanisms)-1])
	if err != nil {
		return err
	}
	return credentials.Verify(user.Name, password)
}

// Read decodes a document, and reports whether there is one.
func (a *Store) Read(ns oplog.Namespace, name access.Name, into any) (bool, error) {
	docs, err := a.Find(ns, byID(name))
	if err != nil || len(docs) == 0 {
		return false, err
	}
	return true, bson.Unmarshal(docs[0], into)
}

func byID(name access.Name) bson.D { return bson.D{{Key: "_id", Value: name.ID()}} }

// Find gives the documents that match.
func (a *Store) Find(ns oplog.Namespace, filter bson.D) ([]bson.Raw, error) {
	compiled, err := compileFilter(filter)
	if err != nil {
		return nil, err
	}
	view, err := a.engine.View(nil, ns)
	if err != nil {
		return nil, err
	}
	matching, err := view.Documents(compiled, nil, storage.Hint{})
	if err != nil {
		return nil, err
	}
	var docs []bson.Raw
	for {
		doc, err := matching.Next()
		if doc == nil || err != nil {
			return docs, err
		}
		docs = append(docs, doc)
	}
}

// Create stores a new document; one that is there is the server's E11000.
func (a *Store) Create(ctx context.Context, ns oplog.Namespace, doc any) error {
	raw, err := bson.Marshal(doc)
	if err != nil {
		return err
	}
	defer a.Version.Add(1)
	_, err = a.engine.Insert(ctx, engine.Write{}, ns, []bson.Raw{raw})
	return err
}

// ChangeUser changes a user in one step, and reports whether there is one.
func (a *Store) ChangeUser(ctx context.Context, name access.Name, change func(*UserDocument) error) (bool, error) {
	return changeAccount(ctx, a, UsersNamespace, name, change)
}

// ChangeRole changes a role in one step, and reports whether there is one.
func (a *Store) ChangeRole(ctx context.Context, name access.Name, change func(*RoleDocument) error) (bool, error) {
	return changeAccount(ctx, a, RolesNamespace, name, change)
}

// changeAccount runs change under the engine's lock: it must not read accounts.
func changeAccount[T any](ctx context.Context, a *Store, ns oplog.Namespace, name access.Name, change func(*T) error) (bool, error) {
	filter, err := compileFilter(byID(name))
	if err != nil {
		return false, err
	}
	defer a.Version.Add(1)
	result, err := a.engine.Update(ctx, engine.Write{}, ns, engine.Update{
		Selection: engine.Selection{Filter: filter},
		Apply: func(raw bson.Raw) (modify.Applied, error) {
			var doc T
			if err := bson.Unmarshal(raw, &doc); err != nil {
				return modify.Applied{}, err
			}
			if err := change(&doc); err != nil {
				return modify.Applied{}, err
			}
			made, err := bson.Marshal(doc)
			return modify.Applied{Doc: made, Changed: true}, err
		},
	})
	return result.Matched > 0, err
}

// Remove deletes a document, and reports whether there was one.
func (a *Store) Remove(ctx context.Context, ns oplog.Namespace, name access.Name) (bool, error) {
	filter, err := compileFilter(byID(name))
	if err != nil {
		return false, err
	}
	defer a.Version.Add(1)
	result, err := a.engine.Delete(ctx, engine.Write{}, ns, engine.Selection{Filter: filter})
	return result.Matched > 0, err
}

func compileFilter(filter bson.D) (*match.Filter, error) {
	raw, err := bson.Marshal(filter)
	if err != nil {
		return nil, err
	}
	return match.Compile(raw, expression.Env{})
}

// RemoveAll deletes the users or roles of a database, and reports how many there
// were.
func (a *Store) RemoveAll(ctx context.Context, ns oplog.Namespace, db string) (int, error) {
	filter, err := compileFilter(bson.D{{Key: "db", Value: db}})
	if err != nil {
		return 0, err
	}
	defer a.Version.Add(1)
	result, err := a.engine.Delete(ctx, engine.Write{}, ns, engine.Selection{Filter: filter, Multi: true})
	return result.Matched, err
}

// Holds reports whether a role is another, or holds it through others.
func (a *Store) Holds(role, other access.Name) (bool, error) {
	seen := map[access.Name]bool{}
	for left := []access.Name{role}; len(left) > 0; {
		next := left[0]
		left = left[1:]
		if next == other {
			return true, nil
		}
		if seen[next] {
			continue
		}
		seen[next] = true
		held, _, err := a.role(next)
		if err != nil {
			return false, err
		}
		left = append(left, held.Roles...)
	}
	return false, nil
}

// Declare makes the users and roles of a configuration, in the place of those of
// the same name.
func (a *Store) Declare(ctx context.Context, declared access.Accounts) error {
	for _, r := range declared.Roles {
		if _, err := a.Remove(ctx, RolesNamespace, r.Name); err != nil {
			return err
		}
		doc, err := a.NewRole(r.Name, r.Privileges, r.Roles)
		if err != nil {
			return err
		}
		if err := a.Create(ctx, RolesNamespace, doc); err != nil {
			return err
		}
	}
	for _, u := range declared.Users {
		if _, err := a.Remove(ctx, UsersNamespace, u.Name); err != nil {
			return err
		}
		doc, err := a.NewUser(u.Name, Password{Text: u.Password}, u.Roles)
		if err != nil {
			return err
		}
		if err := a.Create(ctx, UsersNamespace, doc); err != nil {
			return err
		}
	}
	return nil
}
