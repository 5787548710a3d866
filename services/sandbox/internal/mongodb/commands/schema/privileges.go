package schema

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
)

// createPrivileges are those of create, which whoever may insert needs not.
func createPrivileges(c *command.Call) []access.Privilege {
	if on, isView := bsonkit.Get(c.Body, "viewOn"); isView {
		return viewPrivileges(c, on)
	}
	if insert := c.OnOwnCollection(access.Insert); len(c.Body) > 0 && c.MayAll(insert) {
		return insert
	}
	return c.OnOwnCollection(access.CreateCollection)
}

// viewPrivileges are those of making a view: whoever makes one must be able to
// read what it shows.
func viewPrivileges(c *command.Call, on bson.RawValue) []access.Privilege {
	below, _ := on.StringValueOK()
	needed := append(c.OnOwnCollection(access.CreateCollection),
		access.Privilege{Resource: access.Collection(c.DB, below), Actions: []access.Action{access.Find}})
	command.EachStage(command.ArrayOf(c.Body, "pipeline"), func(name string, stage bson.RawValue) {
		needed = append(needed, command.StagePrivileges(c, name, stage)...)
	})
	return needed
}

// renamePrivileges are those of renameCollection: either what it is called, or
// those of copying the collection.
func renamePrivileges(c *command.Call) []access.Privilege {
	a := command.Arguments{}
	first, _ := c.Body.IndexErr(0)
	to, _ := bsonkit.Get(c.Body, "to")
	source, target := a.Namespace(a.Text("from", first.Value())), a.Namespace(a.Text("to", to))
	from := access.Collection(source.DB, source.Collection)
	onto := access.Privilege{Resource: access.Collection(target.DB, target.Collection), Actions: []access.Action{access.Insert, access.CreateIndex}}
	if command.IsTrue(c.Body, "dropTarget") {
		onto.Actions = append(onto.Actions, access.DropCollection)
	}
	renaming := []access.Privilege{{Resource: from, Actions: []access.Action{access.RenameCollectionSameDB}}}
	if source.DB == target.DB && !command.IsTrue(c.Body, "dropTarget") && c.MayAll(renaming) {
		return renaming
	}
	return []access.Privilege{{Resource: from, Actions: []access.Action{access.Find, access.DropCollection}}, onto}
}
