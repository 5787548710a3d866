package mongoserver

import (
	"context"

	"changerelay/services/sandbox/internal/mongoerr"
)

func commitTransaction(_ context.Context, c *call, _ *reply) error {
	if !c.generic.inTransaction() {
		return mongoerr.New(commandFailed, "commitTransaction must be run within a transaction")
	}
	return c.session.Commit(*c.generic.txnNumber)
}

func abortTransaction(_ context.Context, c *call, _ *reply) error {
	if !c.generic.inTransaction() {
		return mongoerr.New(commandFailed, "abortTransaction must be run within a transaction")
	}
	return c.session.Abort(*c.generic.txnNumber)
}

const commandFailed mongoerr.Code = 125
