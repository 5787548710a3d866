// Package emulatorconfig reads the Config.json of the official Service Bus
// emulator and sets a namespace up by it.
//
// Everything the emulator documents is understood; what the namespace cannot
// do, or what nobody knows, is refused with its JSON path, all problems at
// once. One property is ours: EnablePartitioning on queues and topics, which
// the emulator does not have and the service does.
package emulatorconfig
