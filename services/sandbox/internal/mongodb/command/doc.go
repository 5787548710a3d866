// Package command serves MongoDB clients with the commands that it is given: it
// listens, reads requests off connections, finds who asks for what, and writes
// the replies. Commands themselves are in the packages below commands; each is a
// function of a Call, which says what was asked and by whom, and of a Reply.
//
// # Flow
//
//	connection ─ read loop ─▶ serve loop ─ fail point ─ session ─ command ─▶ reply
//
// Each connection has two goroutines. One reads requests, so that a client that
// goes away is noticed while a command of its waits; the other runs them one
// after another and writes the replies. Commands are found by name in
// a table that also says what they may be used for: in transactions, as retryable
// writes, on the admin database only.
//
// # Errors
//
// Commands return *mongoerr.Error; any other error is an internal one. They are
// turned into replies in one place, which also adds the labels a client
// decides by. An error inside a transaction aborts it, as on the server.
//
// A command, option, stage or operator that is not supported is refused with
// the server's own kind of error, naming it. Nothing is accepted and ignored
// but options that change no result (comment, readPreference, hints to a
// planner).
package command
