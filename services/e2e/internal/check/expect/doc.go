// Package expect says what message the relay owes for an event's document: every
// part of it, computed from the document and from the contract as it is written
// (docs/message-contract.md). It shares no code with the publisher nor with the
// contract's encoder, so a fault in either shows as a difference.
//
// Of the attributes, position and term are not here: they say who sent, and from
// where, and the document does not know. A snapshot counts as an insert here, for
// either may carry an event; whether anything was copied is for others to know.
package expect
