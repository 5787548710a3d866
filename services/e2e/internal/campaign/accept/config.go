package accept

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"changerelay/services/e2e/internal/harness/cluster"
)

// Environment variables that name the servers to try.
const (
	envMongo      = "TEST_MONGODB_URI"
	envServiceBus = "TEST_SERVICEBUS_CONNECTION_STRING"
)

// Config names the servers. An empty one of them is the sandbox's.
type Config struct {
	MongoURI   string
	ServiceBus string // connection string
}

// Read reads the environment, which must name at least one server.
func Read(getenv func(string) string) (Config, error) {
	c := Config{MongoURI: getenv(envMongo), ServiceBus: getenv(envServiceBus)}
	if c.MongoURI == "" && c.ServiceBus == "" {
		return c, errors.New(envMongo + " and " + envServiceBus + " are not set: set one of them, or both")
	}
	return c, nil
}

// over are the servers to try: those of a sandbox where none is given.
func (c Config) over(sandbox cluster.Endpoints) cluster.Endpoints {
	if c.MongoURI != "" {
		sandbox.MongoURI = c.MongoURI
	}
	if c.ServiceBus != "" {
		sandbox.ServiceBus = c.ServiceBus
	}
	return sandbox
}

var (
	key  = regexp.MustCompile(`(?i)SharedAccess(?:Key|Signature)=([^;]+)`)
	host = regexp.MustCompile(`Endpoint=sb://([^;/]+)`)
)

// redacted returns text without what the connection strings keep secret.
func (c Config) redacted(text string) string {
	secrets := []string{c.MongoURI, c.ServiceBus}
	if found := key.FindStringSubmatch(c.ServiceBus); found != nil {
		secrets = append(secrets, found[1])
	}
	if u, err := url.Parse(c.MongoURI); err == nil && u.User != nil {
		password, _ := u.User.Password()
		secrets = append(secrets, u.User.String(), password, url.QueryEscape(password), url.PathEscape(password))
	}
	// A longer one may hold a shorter one.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return text
}

// hosts says where the servers are, without credentials.
func (c Config) hosts() (mongo, bus string) {
	mongo, bus = "the sandbox's", "the sandbox's"
	if c.MongoURI != "" {
		mongo = "given"
		if u, err := url.Parse(c.MongoURI); err == nil {
			mongo = u.Host
		}
	}
	if found := host.FindStringSubmatch(c.ServiceBus); found != nil {
		bus = found[1]
	} else if c.ServiceBus != "" {
		bus = "given"
	}
	return mongo, bus
}
