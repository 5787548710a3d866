// Package sessiontest is what the engine asks of whoever takes sessions from a
// broker, as tests that run against an adapter over real sockets: order, locks
// that are lost in every place, duplicates, accepts that are cancelled, sessions
// that change hands, throttling, connections that are cut or say nothing more,
// tokens that end and entities that go away.
package sessiontest
