// Package scram is the server's side of SCRAM-SHA-1 (RFC 5802) and SCRAM-SHA-256
// (RFC 7677) as MongoDB uses them: no channel binding, no authorization identity. It knows
// nothing of BSON; the messages of the exchange are bytes.
//
//	client-first ──▶ Start  ──▶ server-first (nonce, salt, iterations)
//	client-final ──▶ Finish ──▶ server-final (the server's own proof)
//
// What is stored of a password are keys that it cannot be computed back from.
package scram
