package data

import (
	"context"

	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func commitTransaction(_ context.Context, c *command.Call, _ *command.Reply) error {
	if !c.Generic.InTransaction() {
		return mongoerr.New(commandFailed, "commitTransaction must be run within a transaction")
	}
	return c.Session.Commit(*c.Generic.TxnNumber)
}

func abortTransaction(_ context.Context, c *command.Call, _ *command.Reply) error {
	if !c.Generic.InTransaction() {
		return mongoerr.New(commandFailed, "abortTransaction must be run within a transaction")
	}
	return c.Session.Abort(*c.Generic.TxnNumber)
}

const commandFailed mongoerr.Code = 125
