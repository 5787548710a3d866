package cluster

import (
	"fmt"
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
