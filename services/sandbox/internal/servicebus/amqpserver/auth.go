package amqpserver

import (
	"fmt"
	"time"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/sas"
)

// authorize checks that a token with one of the rights has been shown for an
// address and is good now. It needs the connection's mu.
func (c *conn) authorize(address string, rights sas.Rights, now time.Time) *amqp.Error {
	if c.srv.cfg.Keys == nil {
		return nil
	}
	if (c.proven|c.claims.Rights(address, now))&rights != 0 {
		return nil
	}
	return &amqp.Error{
		Condition: amqp.ConditionUnauthorized,
		Description: fmt.Sprintf("Unauthorized access. '%s' claim(s) are required to perform this operation. Resource: '%s'.",
			rights, address),
	}
}
