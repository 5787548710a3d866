package servicebus

import (
	"errors"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/rs/zerolog"
)

// A connection is replaced when its doubts reach the limit. A hung accept
// weighs more than a failed one: the client mends what it notices itself.
const (
	doubtLimit = 4
	hungAccept = 2
)

// unansweredAccepts is how many times as long as an accept waits nothing may come over a
// connection.
const unansweredAccepts = 3

var errClosed = errors.New("the subscription is closed")

// connection is one client, replaced when its AMQP connection, which all its
// sessions share, has ended or is in doubt.
type connection struct {
	// dial makes a client that calls heard when something comes over its connection, and
	// ended when that ends.
	dial    func(heard, ended func()) (*azservicebus.Client, error)
	discard func(*azservicebus.Client)
	log     zerolog.Logger

	mu     sync.Mutex
	client *azservicebus.Client // guarded by mu; nil until it is needed
	doubts int                  // guarded by mu: since the last good answer
	silent time.Time            // guarded by mu: since when accepts wait and nothing has come; zero for not
	closed bool                 // guarded by mu
}

// current returns the client in use.
func (c *connection) current() (*azservicebus.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	if c.client == nil {
		var client *azservicebus.Client
		client, err := c.dial(c.heard, func() { c.ended(client) })
		if err != nil {
			return nil, err
		}
		c.client = client
	}
	return c.client, nil
}

// uses tells whether client is still the one in use.
func (c *connection) uses(client *azservicebus.Client) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.client == client
}

// trust notes a good answer of the service.
func (c *connection) trust() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doubts = 0
}

// waits notes that an accept waits for its answer.
func (c *connection) waits() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silent.IsZero() {
		c.silent = time.Now()
	}
}

// heard notes that something has come.
func (c *connection) heard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent = time.Time{}
}

// unanswered notes that an accept has waited for so long and was not answered. It replaces
// client where nothing else has come either, for several times as long.
func (c *connection) unanswered(client *azservicebus.Client, waited time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != client || c.silent.IsZero() || time.Since(c.silent) < unansweredAccepts*waited {
		return
	}
	c.log.Warn().Dur("silent_ms", time.Since(c.silent)).Msg("the Service Bus connection answers nothing and is replaced")
	c.replace()
}

// doubt adds to the doubts about client, and replaces it when there are too
// many. Its sessions end with it, and their messages come again.
func (c *connection) doubt(client *azservicebus.Client, weight int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != client {
		return
	}
	c.doubts += weight
	if c.doubts < doubtLimit {
		return
	}
	// Failed accepts have been told of by whoever asked; hung ones are news.
	level := zerolog.DebugLevel
	if weight >= hungAccept {
		level = zerolog.WarnLevel
	}
	c.log.WithLevel(level).Int("doubts", c.doubts).Msg("the Service Bus connection is replaced")
	c.replace()
}

// ended notes that client has lost its connection, and replaces it.
func (c *connection) ended(client *azservicebus.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == client {
		c.replace()
	}
}

// replace has the next accept make a new client. c.mu is held.
func (c *connection) replace() {
	c.discard(c.client)
	c.client, c.doubts, c.silent = nil, 0, time.Time{}
}

func (c *connection) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.client != nil {
		c.discard(c.client)
		c.client = nil
	}
}
