// Package crashpoint kills processes at named steps, exactly: between a request
// and the server's handling of it, or between that and the answer.
//
// The services have no hold points for it. Each process reaches its servers
// through a proxy that reads the protocol, MongoDB's wire protocol or AMQP
// 1.0. When the step comes by for the nth time, the proxy holds the request, or
// its answer, and the process is killed with SIGKILL before it can know more.
// So the binaries are those that ship, and a step is a moment that the outside
// world can tell from every other.
//
//	          before ✂          ┌────────┐
//	process ──request──▶ proxy ─┼───────▶│ server
//	        ◀──answer─── proxy ◀┼────────│
//	          after  ✂          └────────┘
package crashpoint
