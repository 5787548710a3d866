package mongoserver

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/access"
	"changerelay/services/sandbox/internal/bsonkit"
)

// requirement says what a client must be granted to run a command, where the
// server asks for authentication. The zero requirement lets nobody run it.
type requirement struct {
	// anybody may run it, without having said who they are.
	anybody bool
	// privileges are those that the command needs with its arguments; none is
	// enough for every user.
	privileges func(*call) []access.Privilege
}

// anybody needs no authentication.
func anybody() requirement { return requirement{anybody: true} }

// anyUser needs authentication and no privilege.
func anyUser() requirement {
	return requirement{privileges: func(*call) []access.Privilege { return nil }}
}

// onCluster needs actions on the deployment.
func onCluster(actions ...access.Action) requirement {
	return requirement{privileges: func(*call) []access.Privilege {
		return []access.Privilege{{Resource: access.Cluster(), Actions: actions}}
	}}
}

// onDatabase needs actions on the command's database.
func onDatabase(actions ...access.Action) requirement {
	return requirement{privileges: func(c *call) []access.Privilege {
		return []access.Privilege{{Resource: access.Database(c.db), Actions: actions}}
	}}
}

// onCollection needs actions on the collection in the command's first field.
func onCollection(actions ...access.Action) requirement {
	return requirement{privileges: func(c *call) []access.Privilege { return c.onOwnCollection(actions...) }}
}

// arguments gives what the command needs by its arguments.
func byArguments(privileges func(*call) []access.Privilege) requirement {
	return requirement{privileges: privileges}
}

// onOwnCollection are actions on the collection in the first field; on the
// database, which more is needed for, where that is none.
func (c *call) onOwnCollection(actions ...access.Action) []access.Privilege {
	first, _ := c.body.IndexErr(0)
	name, _ := first.Value().StringValueOK()
	return []access.Privilege{{Resource: access.Collection(c.db, name), Actions: actions}}
}

// updatePrivileges are those of update: an upsert inserts.
func updatePrivileges(c *call) []access.Privilege {
	actions := []access.Action{access.Update}
	each := func(statement bson.Raw) {
		if isTrue(statement, "upsert") {
			actions = append(actions, access.Insert)
		}
	}
	for _, sequence := range c.request.Sequences {
		for _, statement := range sequence.Documents {
			each(statement)
		}
	}
	for it := bsonkit.Iterate(arrayOf(c.body, "updates")); it.Next(); {
		statement, _ := it.Value().DocumentOK()
		each(statement)
	}
	return c.onOwnCollection(actions...)
}

// findAndModifyPrivileges are those of findAndModify, which also shows the
// document.
func findAndModifyPrivileges(c *call) []access.Privilege {
	actions := []access.Action{access.Find}
	if isTrue(c.body, "remove") {
		actions = append(actions, access.Remove)
	} else {
		actions = append(actions, access.Update)
	}
	if isTrue(c.body, "upsert") {
		actions = append(actions, access.Insert)
	}
	return c.onOwnCollection(actions...)
}

// createPrivileges are those of create, which whoever may insert needs not.
func createPrivileges(c *call) []access.Privilege {
	if on, isView := bsonkit.Get(c.body, "viewOn"); isView {
		return c.viewPrivileges(on)
	}
	if insert := c.onOwnCollection(access.Insert); len(c.body) > 0 && c.mayAll(insert) {
		return insert
	}
	return c.onOwnCollection(access.CreateCollection)
}

// viewPrivileges are those of making a view: whoever makes one must be able to
// read what it shows.
func (c *call) viewPrivileges(on bson.RawValue) []access.Privilege {
	below, _ := on.StringValueOK()
	needed := append(c.onOwnCollection(access.CreateCollection),
		access.Privilege{Resource: access.Collection(c.db, below), Actions: []access.Action{access.Find}})
	eachStage(arrayOf(c.body, "pipeline"), func(name string, stage bson.RawValue) {
		needed = append(needed, c.stagePrivileges(name, stage)...)
	})
	return needed
}

// renamePrivileges are those of renameCollection: either what it is called, or
// those of copying the collection.
func renamePrivileges(c *call) []access.Privilege {
	a := arguments{}
	first, _ := c.body.IndexErr(0)
	to, _ := bsonkit.Get(c.body, "to")
	source, target := a.namespace(a.text("from", first.Value())), a.namespace(a.text("to", to))
	from := access.Collection(source.DB, source.Collection)
	onto := access.Privilege{Resource: access.Collection(target.DB, target.Collection), Actions: []access.Action{access.Insert, access.CreateIndex}}
	if isTrue(c.body, "dropTarget") {
		onto.Actions = append(onto.Actions, access.DropCollection)
	}
	renaming := []access.Privilege{{Resource: from, Actions: []access.Action{access.RenameCollectionSameDB}}}
	if source.DB == target.DB && !isTrue(c.body, "dropTarget") && c.mayAll(renaming) {
		return renaming
	}
	return []access.Privilege{{Resource: from, Actions: []access.Action{access.Find, access.DropCollection}}, onto}
}

// userPrivileges are those of createUser and updateUser: whoever gives a role
// must be granted that where the role is.
func userPrivileges(c *call) []access.Privilege {
	action := access.CreateUser
	if c.name == "updateUser" {
		action = access.ChangePassword
	}
	return append([]access.Privilege{{Resource: access.Database(c.db), Actions: []access.Action{action}}}, c.grantPrivileges()...)
}

// rolePrivileges are those of createRole and updateRole: whoever puts a
// privilege into a role must be granted that where the privilege is.
func rolePrivileges(c *call) []access.Privilege {
	needed := append([]access.Privilege{{Resource: access.Database(c.db), Actions: []access.Action{access.CreateRole}}}, c.grantPrivileges()...)
	a := arguments{}
	privileges, _ := bsonkit.Get(c.body, "privileges")
	for _, p := range a.privileges(c.db, "privileges", privileges) {
		at := access.Database(p.Resource.DB)
		if p.Resource.Cluster || p.Resource.Any {
			at = access.Database("admin")
		}
		needed = append(needed, access.Privilege{Resource: at, Actions: []access.Action{access.GrantRole}})
	}
	return needed
}

func (c *call) grantPrivileges() []access.Privilege {
	var needed []access.Privilege
	a := arguments{}
	roles, _ := bsonkit.Get(c.body, "roles")
	for _, role := range a.roleNames(c.db, "roles", roles) {
		needed = append(needed, access.Privilege{Resource: access.Database(role.DB), Actions: []access.Action{access.GrantRole}})
	}
	return needed
}

// isTrue reads a flag of a command.
func isTrue(doc bson.Raw, name string) bool {
	v, ok := bsonkit.Get(doc, name)
	a := arguments{}
	return ok && a.truth(name, v)
}

// arrayOf gives an array of a command, empty for none.
func arrayOf(doc bson.Raw, name string) bson.Raw {
	v, _ := bsonkit.Get(doc, name)
	if v.Type != bson.TypeArray {
		return nil
	}
	return v.Value
}
