// Package model checks the protocol behind the promises, not the code: it
// walks through every state that small instances of it can reach.
//
// There are six machines, and what one promises the next one builds on:
//
//	election    who may trust the lease          takes, renewals, releases, time
//	beginning   from what a term may begin       claims, an operator's deletions and
//	                                             restores, of record and checkpoint
//	publishing  what the topic has, and what      claims, sends, saves, crashes
//	            the checkpoint says
//	projecting  what the read model has           receives, writes, settlements
//	resending   what a receiver has that begins   chunks, live changes between them,
//	            anew from what is sent again      progress, claims, crashes
//
// Their steps are those that the comments of the services name: election those
// of package lease, beginning those of a claim in package app, publishing those
// of relay and checkpoint, projecting those of session and readmodel, resending those
// of package resend, rebuilding those of package rebuild. A pause
// needs no step of its own: whoever is paused takes none, while calls of his that
// are under way arrive at any later time, or never, or without an answer.
//
// Publishing does not know the lease at all: anybody may claim the checkpoint
// at any time. So what it shows holds for every schedule of leaders, with two
// or three at once, and the lease is there for failover and economy, not for
// safety. Projecting takes any arrivals that publishing allows: each change
// first in order, and repeats of any of them anywhere.
//
// Each machine can be run with one guard cut. Then some promise breaks, and
// the shortest way there is printed; a machine where nothing breaks would prove
// nothing.
package model
