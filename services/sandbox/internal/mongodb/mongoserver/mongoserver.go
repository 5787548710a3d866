package mongoserver

import "changerelay/services/sandbox/internal/mongodb/command"

// New makes a server of all commands there are. It binds the address, so that
// Addr is known, and serves nothing yet.
func New(config command.Config) (*command.Server, error) {
	config.Commands = newCommands(config.Version)
	return command.New(config)
}
