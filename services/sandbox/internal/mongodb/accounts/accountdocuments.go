package accounts

import (
	"errors"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/scram"
)

// NewUser makes the document of a user, whose roles must be there.
func (a *Store) NewUser(name access.Name, password string, roles []access.Name) (UserDocument, error) {
	id := uuid.New()
	doc := UserDocument{
		ID: name.ID(), UserID: bson.Binary{Subtype: bson.TypeBinaryUUID, Data: id[:]}, User: name.Name, DB: name.DB,
	}
	existing, err := a.Existing(roles)
	doc.Roles = existing
	return doc, errors.Join(doc.SetPassword(password), err)
}

// SetPassword stores what proves the knowledge of a password, which may not be
// empty.
func (u *UserDocument) SetPassword(password string) error {
	c, err := scram.NewCredentials(password, scram.DefaultIterations)
	if err != nil || password == "" {
		return mongoerr.New(mongoerr.BadValue, "the password is empty, or has characters that SASLprep does not allow")
	}
	u.Credentials = map[string]credentialDocument{
		scram.Mechanism: {Iterations: c.Iterations, Salt: c.Salt, StoredKey: c.StoredKey, ServerKey: c.ServerKey},
	}
	return nil
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
