package mongoserver

import (
	"maps"

	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/commands/admin"
	"changerelay/services/sandbox/internal/mongodb/commands/data"
	"changerelay/services/sandbox/internal/mongodb/commands/schema"
	"changerelay/services/sandbox/internal/mongodb/serverversion"
)

// newCommands makes the table of all commands, by the names that clients may
// use, and with what a client must be granted to run them.
func newCommands(version serverversion.Version) map[string]*command.Command {
	commands := map[string]*command.Command{}
	for _, table := range []map[string]*command.Command{admin.Commands(), data.Commands(), schema.Commands()} {
		maps.Copy(commands, table)
	}
	assignMembers(commands)
	assignConcerns(commands)
	for alias, name := range map[string]string{
		"buildinfo":     "buildInfo",
		"collstats":     "collStats",
		"dbstats":       "dbStats",
		"deleteIndexes": "dropIndexes",
		"findandmodify": "findAndModify",
		"getlasterror":  "getLastError",
		"ismaster":      "isMaster",
		"reseterror":    "resetError",
	} {
		commands[alias] = commands[name]
	}
	if version.Has(5) {
		delete(commands, "resetError")
		delete(commands, "reseterror")
	} else {
		delete(commands, "hello") // it came with 4.4.2
	}
	if version.Has(6) { // 5.1 removed it
		delete(commands, "getLastError")
		delete(commands, "getlasterror")
	}
	return commands
}

// assignConcerns says of each command which concerns it takes, and how its
// fields are read.
func assignConcerns(commands map[string]*command.Command) {
	for _, name := range []string{"aggregate", "distinct", "explain", "find"} {
		commands[name].Reads = command.AnyReads
	}
	commands["count"].Reads = command.SettledReads
	for _, name := range []string{
		"abortTransaction", "aggregate", "collMod", "commitTransaction", "create", "createIndexes", "createRole", "createUser",
		"delete", "drop", "dropDatabase", "dropIndexes", "dropRole", "dropUser", "findAndModify", "insert",
		"renameCollection", "update", "updateRole", "updateUser",
		"dropAllRolesFromDatabase", "dropAllUsersFromDatabase", "grantPrivilegesToRole", "grantRolesToRole", "grantRolesToUser",
		"revokePrivilegesFromRole", "revokeRolesFromRole", "revokeRolesFromUser",
	} {
		commands[name].Waits = true
	}
	commands["abortTransaction"].Ends, commands["commitTransaction"].Ends = true, true
	for _, name := range []string{"create", "delete", "insert", "update"} {
		commands[name].Typed = true
	}
}

// assignMembers says of each command which members run it.
func assignMembers(commands map[string]*command.Command) {
	for _, name := range []string{
		"abortTransaction", "collMod", "commitTransaction", "create", "createIndexes", "createRole", "createUser", "delete",
		"drop", "dropDatabase", "dropIndexes", "dropRole", "dropUser", "findAndModify", "insert", "renameCollection",
		"update", "updateRole", "updateUser",
		"dropAllRolesFromDatabase", "dropAllUsersFromDatabase", "grantPrivilegesToRole", "grantRolesToRole", "grantRolesToUser",
		"revokePrivilegesFromRole", "revokeRolesFromRole", "revokeRolesFromUser",
	} {
		commands[name].Member = command.PrimaryOnly
	}
	for _, name := range []string{
		"aggregate", "collStats", "count", "dbStats", "distinct", "explain", "find", "listCollections", "listDatabases", "listIndexes",
	} {
		commands[name].Member = command.PrimaryUnlessTold
	}
}
