package admin

import (
	"context"
	"maps"
	"slices"

	"changerelay/services/sandbox/internal/mongodb/command"
)

// listCommands tells which commands there are.
func listCommands(_ context.Context, c *command.Call, r *command.Reply) error {
	r.OpenDocument("commands")
	for _, name := range slices.Sorted(maps.Keys(c.Server.Table())) {
		described := c.Server.Table()[name]
		r.OpenDocument(name)
		r.Text("help", "https://www.mongodb.com/docs/manual/reference/command/"+name)
		r.Boolean("slaveOk", described.Member != command.PrimaryOnly)
		r.Boolean("adminOnly", described.Admin)
		r.Close()
	}
	r.Close()
	return nil
}
