// Package gateway takes in the connections of a namespace's clients, on any
// number of ports, and tells by their first bytes what they speak: TLS or not,
// and within, AMQP or HTTP. So one host and port is enough for every client, as
// it is with the service: AMQP, AMQP over TLS, the management API, and AMQP
// over websockets, which begins as HTTP.
//
// The servers behind it take their connections from two listeners, AMQP and
// HTTP.
package gateway
