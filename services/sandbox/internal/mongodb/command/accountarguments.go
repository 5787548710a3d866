package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// RoleNames reads roles, each {role, db} or the name of one of the same
// database.
func (a *Arguments) RoleNames(db, field string, v bson.RawValue) []access.Name {
	var names []access.Name
	for _, element := range a.Array(field, v) {
		if name, ok := element.StringValueOK(); ok {
			names = append(names, access.Name{Name: name, DB: db})
			continue
		}
		doc := a.Document(field, element)
		role, _ := bsonkit.Get(doc, "role")
		of, _ := bsonkit.Get(doc, "db")
		names = append(names, access.Name{Name: a.Text("role", role), DB: a.Text("db", of)})
	}
	return names
}

// Privileges reads {resource, actions}, which for roles outside the admin
// database must be on their own.
func (a *Arguments) Privileges(db, field string, v bson.RawValue) []access.Privilege {
	privileges := []access.Privilege{}
	for _, doc := range a.Documents(field, v) {
		var p access.Privilege
		if err := bson.Unmarshal(doc, &p); err != nil {
			a.Fail(mongoerr.FailedToParse, "%s", err)
			return nil
		}
		if err := p.Check(); err != nil {
			a.Fail(mongoerr.FailedToParse, "%s", err)
		}
		if db != "admin" && p.Resource.DB != db {
			a.Fail(mongoerr.InvalidRoleModification,
				"Roles on the '%s' database cannot be granted privileges that target other databases or the cluster", db)
		}
		privileges = append(privileges, p)
	}
	return privileges
}
