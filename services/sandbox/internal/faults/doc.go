// Package faults puts failures on demand behind one small HTTP API:
//
//	POST   /faults       starts the fault that the JSON body describes
//	GET    /faults       lists the faults that last, and the kinds there are
//	DELETE /faults       ends all that last
//	DELETE /faults/{id}  ends one
//
// A body names its kind, and beside it the kind's own fields:
//
//	{"kind": "servicebus.delay", "path": "changes", "delay": "200ms", "for": "30s"}
//
// A fault either happens at once (a cut connection) or lasts until it is ended
// (latency). Any that lasts takes a "for", after which it ends by itself.
//
// The package knows no fault. Whoever has some makes a Kind of each with
// NewKind and gives it to the Registry.
package faults
