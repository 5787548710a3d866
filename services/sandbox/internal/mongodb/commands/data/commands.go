// Package data has the commands that read and write documents, and the cursors
// and change streams that they open. A command that is not supported, or an
// option of one, is refused by name; nothing is accepted and ignored but what
// changes no result.
package data

import (
	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/command"
)

// Commands are those that read and write documents, by name, with what a client must be granted to
// run them.
func Commands() map[string]*command.Command {
	return map[string]*command.Command{
		"abortTransaction":  {Run: abortTransaction, Needs: command.AnyUser(), Admin: true, InTransaction: true},
		"aggregate":         {Run: aggregate, Needs: command.ByArguments(command.AggregatePrivileges), InTransaction: true},
		"collStats":         {Run: collStats, Needs: command.OnCollection(access.CollStats)},
		"commitTransaction": {Run: commitTransaction, Needs: command.AnyUser(), Admin: true, InTransaction: true},
		"count":             {Run: count, Needs: command.OnCollection(access.Find)},
		"delete":            {Run: deleteDocuments, Needs: command.OnCollection(access.Remove), Write: true, InTransaction: true},
		"distinct":          {Run: distinct, Needs: command.OnCollection(access.Find), InTransaction: true},
		"explain":           {Run: explain, Needs: command.ByArguments(explainPrivileges)},
		"find":              {Run: find, Needs: command.OnCollection(access.Find), InTransaction: true},
		"findAndModify":     {Run: findAndModify, Needs: command.ByArguments(findAndModifyPrivileges), Write: true, InTransaction: true},
		"getMore":           {Run: getMore, Needs: command.AnyUser(), InTransaction: true},
		"insert":            {Run: insert, Needs: command.OnCollection(access.Insert), Write: true, InTransaction: true},
		"killCursors":       {Run: killCursors, Needs: command.AnyUser(), InTransaction: true},
		"mapReduce":         {Run: mapReduce, Needs: command.ByArguments(mapReducePrivileges), Typed: true, Waits: true},
		"mapreduce":         {Run: mapReduce, Needs: command.ByArguments(mapReducePrivileges), Typed: true, Waits: true},
		"update":            {Run: update, Needs: command.ByArguments(updatePrivileges), Write: true, InTransaction: true},
		"validate":          {Run: validate, Needs: command.OnCollection("validate")},
	}
}
