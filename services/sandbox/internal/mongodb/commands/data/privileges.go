package data

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
)

// updatePrivileges are those of update: an upsert inserts.
func updatePrivileges(c *command.Call) []access.Privilege {
	actions := []access.Action{access.Update}
	each := func(statement bson.Raw) {
		if command.IsTrue(statement, "upsert") {
			actions = append(actions, access.Insert)
		}
	}
	for _, sequence := range c.Request.Sequences {
		for _, statement := range sequence.Documents {
			each(statement)
		}
	}
	for it := bsonkit.Iterate(command.ArrayOf(c.Body, "updates")); it.Next(); {
		statement, _ := it.Value().DocumentOK()
		each(statement)
	}
	return c.OnOwnCollection(actions...)
}

// findAndModifyPrivileges are those of findAndModify, which also shows the
// document.
func findAndModifyPrivileges(c *command.Call) []access.Privilege {
	actions := []access.Action{access.Find}
	if command.IsTrue(c.Body, "remove") {
		actions = append(actions, access.Remove)
	} else {
		actions = append(actions, access.Update)
	}
	if command.IsTrue(c.Body, "upsert") {
		actions = append(actions, access.Insert)
	}
	return c.OnOwnCollection(actions...)
}
