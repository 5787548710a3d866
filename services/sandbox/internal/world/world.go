package world

import "time"

// World is what both servers are given.
type World struct {
	Name       string     `json:"name"`
	MongoDB    MongoDB    `json:"mongodb"`
	ServiceBus ServiceBus `json:"service_bus"`
}

// Link is the network between a server and its clients, for each connection.
type Link struct {
	// RoundTrip is the time there and back, Jitter the most that is added to each way.
	RoundTrip Duration `json:"round_trip"`
	Jitter    Duration `json:"jitter"`
	// BytesPerSecond is the bandwidth of each direction.
	BytesPerSecond int64 `json:"bytes_per_second"`
}

// Latency is how long a server takes for something: half of the times no longer than P50, and 99 of 100 no longer than
// P99.
type Latency struct {
	P50 Duration `json:"p50"`
	P99 Duration `json:"p99"`
}

// ServiceBus is the world of a namespace.
type ServiceBus struct {
	Link
	// Send, Settle and Accept are the service's own times, without the network.
	Send   Latency `json:"send"`
	Settle Latency `json:"settle"`
	Accept Latency `json:"accept"`

	// CreditsPerSecond are what all operations of the namespace may cost in a second.
	CreditsPerSecond int64 `json:"credits_per_second"`
	Costs            Costs `json:"costs"`
	// MessagesPerSecond and ThroughputBytes are what the namespace carries in a second, each way. What is more waits, for
	// QueueTime at most; then it is refused.
	MessagesPerSecond int64    `json:"messages_per_second"`
	ThroughputBytes   int64    `json:"throughput_bytes_per_second"`
	QueueTime         Duration `json:"queue_time"`
	// BusyWait is the wait that a refused client is told.
	BusyWait Duration `json:"busy_wait"`

	MaxMessageBytes  int64 `json:"max_message_bytes"`
	MaxBatchBytes    int64 `json:"max_batch_bytes"`
	MaxBatchMessages int64 `json:"max_batch_messages"`
	// MaxEntities bounds queues and topics together, MaxSubscriptions those of a topic.
	MaxEntities      int64 `json:"max_entities"`
	MaxSubscriptions int64 `json:"max_subscriptions"`
	MaxConnections   int64 `json:"max_connections"`
	// MaxSessionLinks bounds the links of an AMQP session.
	MaxSessionLinks int64 `json:"max_session_links"`

	// LinkIdle detaches a link without traffic, ConnectionIdle closes a connection without links.
	LinkIdle       Duration `json:"link_idle"`
	ConnectionIdle Duration `json:"connection_idle"`
	// AcceptWait is how long the next session is waited for.
	AcceptWait Duration `json:"accept_wait"`
}

// Costs are the credits that operations take: each message sent, received, peeked and settled, each request to the
// management API, each evaluation of a filter.
type Costs struct {
	Send       int64 `json:"send"`
	Receive    int64 `json:"receive"`
	Peek       int64 `json:"peek"`
	Settle     int64 `json:"settle"`
	Management int64 `json:"management"`
	Filter     int64 `json:"filter"`
}

// MongoDB is the world of a replica set.
type MongoDB struct {
	Link
	// Majority is how long a write takes to be acknowledged by a majority.
	Majority Duration `json:"majority"`
	// JournalInterval is how long a change may take to be seen by change streams when no writer waits for a majority.
	JournalInterval Duration `json:"journal_interval"`
	// Lag is how far the member that a majority needs is behind: how much later a majority has what was written.
	Lag Duration `json:"lag"`
	// ResumePerEntry is how long a change stream that is resumed takes for each entry of the oplog it passes.
	ResumePerEntry Duration `json:"resume_per_entry"`
	MaxConnections int64    `json:"max_connections"`
}

// Duration is a time in JSON: "1.5ms".
type Duration time.Duration
