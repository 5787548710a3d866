// Package schema has the commands that make, change, list and drop databases,
// collections, views and indexes.
package schema

import (
	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/command"
)

// Commands are those about databases, collections and indexes, by name, with what a client must be granted to
// run them.
func Commands() map[string]*command.Command {
	return map[string]*command.Command{
		"collMod":          {Run: collMod, Needs: command.OnCollection(access.CollMod)},
		"create":           {Run: create, Needs: command.ByArguments(createPrivileges), InTransaction: true},
		"createIndexes":    {Run: createIndexes, Needs: command.OnCollection(access.CreateIndex), InTransaction: true},
		"drop":             {Run: drop, Needs: command.OnCollection(access.DropCollection)},
		"dropDatabase":     {Run: dropDatabase, Needs: command.OnDatabase(access.DropDatabase)},
		"dropIndexes":      {Run: dropIndexes, Needs: command.OnCollection(access.DropIndex)},
		"listCollections":  {Run: listCollections, Needs: command.ByArguments(listCollectionsPrivileges)},
		"listDatabases":    {Run: listDatabases, Needs: command.AnyUser(), Admin: true},
		"listIndexes":      {Run: listIndexes, Needs: command.OnCollection(access.ListIndexes)},
		"reIndex":          {Run: reIndex, Needs: command.OnCollection("reIndex")},
		"renameCollection": {Run: renameCollection, Needs: command.ByArguments(renamePrivileges), Admin: true},
	}
}
