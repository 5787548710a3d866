package amqpserver

import (
	"slices"
	"strings"

	"changerelay/services/sandbox/internal/servicebus/amqp"
)

// replies are the links of a connection that carry answers to requests, the oldest first. It is guarded by the
// connection's mu.
type replies struct {
	// byAddress has them by the address that requests name as their reply-to.
	byAddress map[string][]*outgoing
	// byNode has them by the node they take answers from.
	byNode map[string][]*outgoing
}

func newReplies() replies {
	return replies{byAddress: map[string][]*outgoing{}, byNode: map[string][]*outgoing{}}
}

func (r *replies) add(o *outgoing) {
	r.byAddress[o.reply] = append(r.byAddress[o.reply], o)
	node := nodeKey(o.link.address)
	r.byNode[node] = append(r.byNode[node], o)
}

// remove may be called more than once, and for a link that was never added.
func (r *replies) remove(o *outgoing) {
	without(r.byAddress, o.reply, o)
	without(r.byNode, nodeKey(o.link.address), o)
}

func without(links map[string][]*outgoing, key string, o *outgoing) {
	i := slices.Index(links[key], o)
	if i < 0 {
		return
	}
	if links[key] = slices.Delete(links[key], i, i+1); len(links[key]) == 0 {
		delete(links, key)
	}
}

// find returns the link for the answer to a request that came in over a link, or nil. A request without a reply-to is
// answered over the connection's link from the same node, best in the same session: both Python clients rely on it.
// Where there are several, the newest is meant.
func (r *replies) find(request *link, replyTo string) *outgoing {
	links := r.byAddress[replyTo]
	if replyTo == "" {
		links = r.byNode[nodeKey(request.address)]
	}
	for _, o := range slices.Backward(links) {
		if o.link.s == request.s {
			return o
		}
	}
	if len(links) == 0 {
		return nil
	}
	return links[len(links)-1]
}

func nodeKey(address string) string { return strings.ToLower(entityPath(address)) }

// noReply refuses a request whose answer nobody would get.
func noReply(request *link, replyTo string) *amqp.Error {
	description := "The request has no reply-to, and the connection has no link that receives from '" + request.address + "'."
	if replyTo != "" {
		description = "The connection has no link that receives at the request's reply-to '" + replyTo + "'."
	}
	return &amqp.Error{Condition: amqp.ConditionNotAllowed, Description: description}
}
