package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"strings"
	"sync"
)

// Endpoints say where the servers are that the relay stands between.
type Endpoints struct {
	MongoURI         string
	ServiceBus       string // connection string
	ManagementURL    string
	SandboxStatusURL string
}

// Given returns the servers that two variables of the environment name, or nil
// where neither is set. One without the other is an error.
func Given(getenv func(string) string, mongoName, busName string) (*Endpoints, error) {
	mongo, bus := getenv(mongoName), getenv(busName)
	switch {
	case mongo == "" && bus == "":
		return nil, nil
	case mongo == "" || bus == "":
		return nil, fmt.Errorf("%s and %s go together: set both or none", mongoName, busName)
	}
	return &Endpoints{MongoURI: mongo, ServiceBus: bus}, nil
}

var (
	mongoAddress = regexp.MustCompile(`^mongodb://([^/]+)/`)
	busAddress   = regexp.MustCompile(`Endpoint=sb://([^;/]+)`)
)

// Through returns the endpoints as they are behind proxies. mongo and bus are
// given the address, host:port, of their server, and return the proxy's.
func (e Endpoints) Through(mongo, bus func(upstream string) (string, error)) (Endpoints, error) {
	at := mongoAddress.FindStringSubmatch(e.MongoURI)
	if at == nil {
		return e, errors.New("put a proxy before MongoDB: no address in its connection string")
	}
	proxy, err := mongo(at[1])
	if err != nil {
		return e, fmt.Errorf("put a proxy before MongoDB: %w", err)
	}
	// Without directConnection the driver follows the server's own word on where
	// it is, around the proxy.
	e.MongoURI = "mongodb://" + proxy + "/?directConnection=true"
	place := busAddress.FindStringSubmatchIndex(e.ServiceBus)
	if place == nil {
		return e, errors.New("put a proxy before Service Bus: no address in its connection string")
	}
	from, to := place[2], place[3]
	if proxy, err = bus(e.ServiceBus[from:to]); err != nil {
		return e, fmt.Errorf("put a proxy before Service Bus: %w", err)
	}
	e.ServiceBus = e.ServiceBus[:from] + proxy + e.ServiceBus[to:]
	return e, nil
}

// lowPort and ports are a range below the one that systems take the ports of
// outgoing connections and of listeners of port 0 from.
const (
	lowPort = 20_000
	ports   = 12_000
)

// FreeAddress returns an address of this machine that nobody listens on, for
// servers that must come back where they were. While nobody listens there, nobody
// else is given it by chance but by another call.
func FreeAddress() (string, error) {
	var err error
	for range 100 {
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", lowPort+rand.IntN(ports))); err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", fmt.Errorf("find a free address: %w", err)
}

// banner gathers the lines that the sandbox prints when it is up.
type banner struct {
	mu     sync.Mutex // guards what follows
	values map[string]string
	ready  bool
}

// line takes one line of the sandbox's standard output: NAME='value', quoted as
// for a shell, or ready.
func (b *banner) line(text []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if string(text) == "ready" {
		b.ready = true
		return
	}
	name, value, found := strings.Cut(string(text), "=")
	if !found {
		return
	}
	if b.values == nil {
		b.values = make(map[string]string)
	}
	b.values[name] = unquote(value)
}

// unquote undoes a shell's single quotes.
func unquote(s string) string {
	inner, found := strings.CutPrefix(s, "'")
	if !found {
		return s
	}
	return strings.ReplaceAll(strings.TrimSuffix(inner, "'"), `'\''`, "'")
}

// reset forgets what was printed, for another run.
func (b *banner) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.values, b.ready = nil, false
}

// endpoints returns what was printed, once the sandbox said that it is ready.
func (b *banner) endpoints() (Endpoints, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ready {
		return Endpoints{}, false, nil
	}
	e := Endpoints{
		MongoURI:         b.values["MONGODB_URI"],
		ServiceBus:       b.values["SERVICEBUS_CONNECTION_STRING"],
		ManagementURL:    b.values["SERVICEBUS_MANAGEMENT_URL"],
		SandboxStatusURL: b.values["SANDBOX_URL"],
	}
	if e.MongoURI == "" || e.ServiceBus == "" {
		return Endpoints{}, true, fmt.Errorf("read the sandbox's addresses: got %v, want MONGODB_URI and SERVICEBUS_CONNECTION_STRING", b.values)
	}
	return e, true, nil
}
