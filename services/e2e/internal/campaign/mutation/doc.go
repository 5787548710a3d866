// Package mutation cuts the guards of the services one at a time, and says which
// tests notice.
//
// A guard is a line whose absence loses, doubles or reorders something. Cutting
// it is a change of one place in one source file, given to the compiler as an
// overlay: the working tree is never touched. One program has all the cuts of a
// run, and makes the one that it is told to; see guard.Together. The named tests
// must pass without the cut, and at least one of them must fail with it. A cut that
// does not compile, or whose place is gone, is an error: the list is then out of date.
package mutation
