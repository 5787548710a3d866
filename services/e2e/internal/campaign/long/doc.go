// Package long runs one campaign after another, each with settings that its seed draws:
// faults of all kinds, operators' mistakes, crash points, and releases beside each
// other. It writes what came of all of them as one section of a document.
package long
