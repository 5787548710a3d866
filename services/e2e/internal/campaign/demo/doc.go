// Package demo runs the whole relay before one's eyes: it starts every part as a
// process, writes events at a steady rate, kills a leader and a projector, hands
// the lead over in good order, and judges the outcome by reading the source, the
// topic and the read model itself.
//
//	build → servers → watchers → services → write ∥ faults ∥ board → drain → stop → judge → report
//
// Each step begins on a state that was seen, never on a guess of how long the
// step before takes. Writing goes on for the duration asked for, and until the
// faults are through, because a failover without traffic shows nothing.
//
// What is judged is gathered from outside: a subscription of our own shows what
// the topic accepted and when, change streams show every write to the read model
// and to the checkpoint, and the read model is computed a second time from the
// source. What publishers and projectors say of themselves only feeds the board.
package demo
