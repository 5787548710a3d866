package command

import (
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/mongowire"
)

// refuseLegacy refuses what is older than OP_MSG where the version has it no more:
// 5.1 has left only what a driver begins a connection with
// (https://www.mongodb.com/docs/manual/legacy-opcodes/). Where the client waits
// for no reply, the error ends the connection.
func (c *Call) refuseLegacy() error {
	switch {
	case !c.Request.Legacy || !c.Server.Version.Has(6):
		return nil
	case c.Request.Plain && c.Request.Flags&mongowire.MoreToCome != 0:
		return errHangUp
	case c.Request.Plain:
		return mongoerr.New(5739101, "OP_QUERY and OP_GET_MORE are no longer supported. The client driver may require an upgrade.")
	}
	switch c.Name {
	case "hello", "isMaster", "ismaster", "authenticate", "buildInfo", "buildinfo", "saslContinue", "saslStart":
		return nil
	}
	return mongoerr.New(mongoerr.UnsupportedOpQueryCommand,
		"Unsupported OP_QUERY command: %s. The client driver may require an upgrade. For more details see https://dochub.mongodb.org/core/legacy-opcode-removal", c.Name)
}
