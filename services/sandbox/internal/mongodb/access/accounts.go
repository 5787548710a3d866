package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Accounts are the users and roles that a server begins with.
type Accounts struct {
	Roles []DeclaredRole
	Users []DeclaredUser
}

// DeclaredRole is a role with its name.
type DeclaredRole struct {
	Name Name
	Role
}

// DeclaredUser is a user with its password.
type DeclaredUser struct {
	Name     Name
	Password string
	Roles    []Name
}

// accountsFile is what Read reads: the arguments of createRole and createUser.
type accountsFile struct {
	Roles []struct {
		Role       string
		DB         string
		Privileges []privilegeFile
		Roles      []roleFile
	}
	Users []struct {
		User  string
		DB    string
		Pwd   string
		Roles []roleFile
	}
}

type roleFile struct{ Role, DB string }

type privilegeFile struct {
	Resource resourceDocument
	Actions  []Action
}

// Read reads users and roles in JSON:
//
//	{"roles": [{"role": …, "db": …, "privileges": [{"resource": …, "actions": […]}], "roles": […]}],
//	 "users": [{"user": …, "db": …, "pwd": …, "roles": [{"role": …, "db": …}]}]}
//
// A role stands before those that hold it. A database not given is admin.
func Read(from io.Reader) (Accounts, error) {
	decoder := json.NewDecoder(from)
	decoder.DisallowUnknownFields()
	var file accountsFile
	if err := decoder.Decode(&file); err != nil {
		return Accounts{}, err
	}
	var accounts Accounts
	for _, r := range file.Roles {
		role := DeclaredRole{Name: nameOf(r.Role, r.DB), Role: Role{Privileges: []Privilege{}, Roles: rolesOf(r.Roles)}}
		if r.Role == "" {
			return Accounts{}, errors.New("a role has no name")
		}
		for _, p := range r.Privileges {
			resource, err := p.Resource.resource()
			privilege := Privilege{Resource: resource, Actions: p.Actions}
			if err := errors.Join(err, privilege.Check()); err != nil {
				return Accounts{}, fmt.Errorf("role %s: %w", role.Name, err)
			}
			role.Privileges = append(role.Privileges, privilege)
		}
		accounts.Roles = append(accounts.Roles, role)
	}
	for _, u := range file.Users {
		if u.User == "" || u.Pwd == "" {
			return Accounts{}, fmt.Errorf("user %q has no name or no pwd", u.User)
		}
		accounts.Users = append(accounts.Users, DeclaredUser{Name: nameOf(u.User, u.DB), Password: u.Pwd, Roles: rolesOf(u.Roles)})
	}
	if len(accounts.Users) == 0 {
		return Accounts{}, errors.New("there is no user")
	}
	return accounts, nil
}

func rolesOf(list []roleFile) []Name {
	names := make([]Name, len(list))
	for i, r := range list {
		names[i] = nameOf(r.Role, r.DB)
	}
	return names
}

func nameOf(name, db string) Name {
	if db == "" {
		db = "admin"
	}
	return Name{Name: name, DB: db}
}
