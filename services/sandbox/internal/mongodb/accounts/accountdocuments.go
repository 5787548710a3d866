package accounts

import (
	"errors"
	"maps"
	"slices"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/scram"
)

// Password is what a user is to prove the knowledge of.
type Password struct {
	Text string
	// Digested tells that it is a client's digest already, for SCRAM-SHA-1 only.
	Digested bool
	// Mechanisms are those that it is for, nil for all.
	Mechanisms []scram.Mechanism
}

// NewUser makes the document of a user, whose roles must be there.
func (a *Store) NewUser(name access.Name, password Password, roles []access.Name) (UserDocument, error) {
	id := uuid.New()
	doc := UserDocument{
		ID: name.ID(), UserID: bson.Binary{Subtype: bson.TypeBinaryUUID, Data: id[:]}, User: name.Name, DB: name.DB,
	}
	existing, err := a.Existing(roles)
	doc.Roles = existing
	return doc, errors.Join(doc.SetPassword(password), err)
}

// SetPassword stores what proves the knowledge of a password, which may not be
// empty, in place of what was stored.
func (u *UserDocument) SetPassword(password Password) error {
	mechanisms := password.Mechanisms
	if mechanisms == nil {
		mechanisms = scram.Mechanisms()
	}
	if password.Digested && slices.Contains(mechanisms, scram.SHA256) {
		return mongoerr.New(mongoerr.BadValue, "Use of SCRAM-SHA-256 requires undigested passwords")
	}
	u.Credentials = map[scram.Mechanism]credentialDocument{}
	for _, m := range mechanisms {
		c, err := password.credentials(m, u.User)
		if err != nil || password.Text == "" {
			return mongoerr.New(mongoerr.BadValue, "the password is empty, or has characters that SASLprep does not allow")
		}
		u.Credentials[m] = credentialDocument{Iterations: c.Iterations, Salt: c.Salt, StoredKey: c.StoredKey, ServerKey: c.ServerKey}
	}
	return nil
}

func (p Password) credentials(m scram.Mechanism, user string) (scram.Credentials, error) {
	secret := p.Text
	if !p.Digested {
		var err error
		if secret, err = m.Secret(user, p.Text); err != nil {
			return scram.Credentials{}, err
		}
	}
	return m.NewCredentials(secret, m.DefaultIterations())
}

// KeepMechanisms takes the credentials of other mechanisms away. Those that are
// kept must be there.
func (u *UserDocument) KeepMechanisms(kept []scram.Mechanism) error {
	for _, m := range kept {
		if _, there := u.Credentials[m]; !there {
			return mongoerr.New(mongoerr.BadValue, "mechanisms field must be a subset of previously set mechanisms")
		}
	}
	maps.DeleteFunc(u.Credentials, func(m scram.Mechanism, _ credentialDocument) bool { return !slices.Contains(kept, m) })
	return nil
}

// Mechanisms are those that the user has credentials of.
func (u *UserDocument) Mechanisms() []scram.Mechanism {
	return slices.Sorted(maps.Keys(u.Credentials))
}

// Existing refuses roles that there are not.
func (a *Store) Existing(roles []access.Name) ([]RoleName, error) {
	list := []RoleName{}
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
		list = append(list, RoleName{Role: role.Name, DB: role.DB})
	}
	return list, nil
}

// ErrRoleExists refuses a role of a name that is taken.
func ErrRoleExists(name access.Name) error {
	return mongoerr.New(51002, "Role \"%s\" already exists", name)
}

// NewRole makes the document of a role, whose own roles must be there.
func (a *Store) NewRole(name access.Name, privileges []access.Privilege, roles []access.Name) (RoleDocument, error) {
	if _, builtIn := access.BuiltIn(name); builtIn {
		return RoleDocument{}, ErrRoleExists(name)
	}
	inherited, err := a.Existing(roles)
	return RoleDocument{ID: name.ID(), Role: name.Name, DB: name.DB, Privileges: privileges, Roles: inherited}, err
}
