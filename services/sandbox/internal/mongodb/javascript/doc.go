// Package javascript runs the functions that clients send: $where, $function,
// $accumulator and those of mapReduce.
//
// A Session is what the functions of one command share: an engine of their own,
// made when the first of them is called and gone when the command ends. Nothing
// of one command is seen by another. A script reaches nothing but its arguments:
// no file, no network, no collection.
//
// Whatever a script does, it is bounded: each engine by its memory, all of them by
// their number (Pool), each call by its time, and by the end of the command.
// The engine is QuickJS in Go (modernc.org/quickjs): of those in Go it has a
// bound of memory.
//
// Numbers of scripts are doubles. An int32 that was read and not changed stays
// one; a long, a decimal and the other types of BSON are objects, as the server
// has them. Errors are *mongoerr.Error, or why the command is to end.
package javascript
