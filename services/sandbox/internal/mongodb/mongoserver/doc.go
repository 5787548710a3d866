// Package mongoserver puts the MongoDB side together: the commands that there are,
// by the names and for the version that clients know, on a command.Server. To
// clients it is the primary of a replica set of one member.
//
// A command, option, stage or operator that is not supported is refused with
// the server's own kind of error, naming it. Nothing is accepted and ignored
// but options that change no result (comment, readPreference, hints to a
// planner). The tests of this package hold all of it to recorded replies of a
// real server, and to the official driver.
package mongoserver
