package amqpserver

import (
	"context"
	"net/http"
	"strings"
	"time"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/sas"
)

const cbsAddress = "$cbs"

// tokenJWT is the type of Entra ID's tokens, which package sas says are good. They are good for longer than a client
// keeps one.
const (
	tokenJWT = "jwt"
	jwtLife  = 24 * time.Hour
)

// cbsNode takes tokens (AMQP Claims-based Security, working draft 3). It answers within the read loop: an accept of a
// session begins with two of these round trips.
type cbsNode struct{ c *conn }

func (n cbsNode) accept(_ context.Context, d *delivery) amqp.State {
	req, bad := readRequest(d.payload)
	if bad != nil {
		return amqp.Rejected{Error: bad}
	}
	o := n.c.replies.find(d.link, req.replyTo)
	if o == nil {
		return amqp.Rejected{Error: noReply(d.link, req.replyTo)}
	}
	encoded := n.answer(req).encode(req.id, "status-code", "status-description")
	d.after = func() { o.respond(encoded) }
	return amqp.Accepted{}
}

func (n cbsNode) answer(req *request) response {
	if req.operation != "put-token" {
		return response{status: http.StatusNotImplemented, description: "The operation is not supported: " + req.operation}
	}
	audience := req.properties.String("name")
	if err := n.find(audience); err != nil {
		return refusal(asError(err))
	}
	keys := n.c.srv.cfg.Keys
	if keys == nil {
		return response{status: http.StatusOK, description: "OK"}
	}
	token, _ := req.body.(string)
	claim := sas.Claim{Rights: sas.All, Expires: time.Now().Add(jwtLife)}
	if req.properties.String("type") != tokenJWT {
		var err error
		if claim, err = keys.Verify(token, audience, time.Now()); err != nil {
			return response{status: http.StatusUnauthorized, description: err.Error(), condition: amqp.ConditionUnauthorized}
		}
	}
	n.c.claims.Put(audience, claim)
	return response{status: http.StatusOK, description: "OK"}
}

// find tells why there is no entity that a token could be for. The service asks that first, and clients learn of an
// entity that is not there by the status of this answer.
func (n cbsNode) find(audience string) error {
	path, _ := cutSuffixFold(entityPath(audience), "/"+managementNode)
	if path == "" || !strings.Contains(audience, "://") {
		return nil
	}
	return n.c.srv.cfg.Broker.Exists(path)
}
