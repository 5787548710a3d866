package amqpserver

import (
	"net"
	"time"

	"github.com/rs/zerolog"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/broker"
	"changerelay/services/sandbox/internal/servicebus/sas"
)

// Config of a Server. Zero values take the defaults named.
type Config struct {
	// Listener has the peers' connections. The server closes it.
	Listener net.Listener
	Broker   *broker.Broker
	Logger   zerolog.Logger

	// Keys are whose tokens are good. When set, tokens put to $cbs are verified (signature, expiry, audience) and links
	// need one with the right for what they do; when nil every token is good and none is needed.
	Keys sas.Keys

	// ContainerID names the server to its peers. Default "servicebus-sandbox".
	ContainerID string
	// MaxFrameBytes is the largest frame accepted. Default 65,536.
	MaxFrameBytes uint32
	// MaxConnections refuses connections beyond it; 0 means no limit.
	MaxConnections int
	// MaxSessions bounds the sessions of a connection. Default 5,000, as the service.
	MaxSessions int
	// MaxLinks bounds the links of a session. Default 256, as the service.
	MaxLinks int
	// MaxConnectionLinks bounds the links of all sessions of a connection. Default 20,000.
	MaxConnectionLinks int
	// MaxQueuedBytes bounds what a connection's transfers may hold while they wait for the broker; beyond it nothing
	// more is read from the peer. Default 16 MiB.
	MaxQueuedBytes int
	// MaxTotalBytes bounds, over all connections, what waits for the broker, beside one transfer of each connection, and
	// likewise what is incomplete. Default 256 MiB each.
	MaxTotalBytes int64

	// IdleTimeout closes a connection from which nothing came for that long. The peer is told half of it. Default 2 min.
	IdleTimeout time.Duration
	// LinklessTimeout closes a connection that has had no link for that long. Default 5 min, as the service.
	LinklessTimeout time.Duration
	// LinkIdleTimeout detaches a link without traffic. Default 10 min, as the service.
	LinkIdleTimeout time.Duration
	// AcceptTimeout ends the wait for the next session when the client names no timeout. Default 1 min, as the service.
	AcceptTimeout time.Duration
	// WriteTimeout closes a connection whose peer does not read. Default 30 s.
	WriteTimeout time.Duration
}

func (c Config) withDefaults() Config {
	def(&c.ContainerID, "servicebus-sandbox")
	def(&c.MaxFrameBytes, 65_536)
	c.MaxFrameBytes = max(c.MaxFrameBytes, amqp.MinMaxFrameSize)
	def(&c.MaxSessions, 5_000)
	c.MaxSessions = min(c.MaxSessions, 1<<16)
	def(&c.MaxLinks, 256)
	def(&c.MaxConnectionLinks, 20_000)
	def(&c.MaxQueuedBytes, 16<<20)
	def(&c.MaxTotalBytes, 256<<20)
	def(&c.IdleTimeout, 2*time.Minute)
	def(&c.LinklessTimeout, 5*time.Minute)
	def(&c.LinkIdleTimeout, 10*time.Minute)
	def(&c.AcceptTimeout, time.Minute)
	def(&c.WriteTimeout, 30*time.Second)
	return c
}

func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
