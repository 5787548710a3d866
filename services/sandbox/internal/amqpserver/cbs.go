package amqpserver

import (
	"context"
	"net/http"
	"time"

	"changerelay/services/sandbox/internal/amqp"
)

const cbsAddress = "$cbs"

// cbsNode takes tokens (AMQP Claims-based Security, working draft 3). It answers within the read loop: an accept of a
// session begins with two of these round trips.
type cbsNode struct{ c *conn }

func (n cbsNode) accept(_ context.Context, d *delivery) amqp.State {
	req, bad := readRequest(d.payload)
	if bad != nil {
		return amqp.Rejected{Error: bad}
	}
	answer := n.answer(req)
	if o := n.c.replies[req.replyTo]; o != nil {
		o.respond(answer.encode(req.id, "status-code", "status-description"))
	}
	return amqp.Accepted{}
}

func (n cbsNode) answer(req *request) response {
	if req.operation != "put-token" {
		return response{status: http.StatusNotImplemented, description: "The operation is not supported: " + req.operation}
	}
	token, _ := req.body.(string)
	audience := req.properties.String("name")
	keys := n.c.srv.cfg.Keys
	if keys == nil {
		return response{status: http.StatusOK, description: "OK"}
	}
	expires, err := verifySAS(keys, token, audience, time.Now())
	if err != nil {
		return response{
			status:      http.StatusUnauthorized,
			description: "InvalidSignature: The token has an invalid signature or does not fit: " + err.Error(),
			condition:   amqp.ConditionUnauthorized,
		}
	}
	n.c.claims.put(audience, expires)
	return response{status: http.StatusOK, description: "OK"}
}
