package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/harness/poll"
)

// Canaries are secrets that services are given where none is needed, so that one
// that is shown somewhere is recognised. The sandbox takes any key, and the user
// is created in it.
const (
	canaryUser     = "relay"
	canaryPassword = "canary:pass/word@7f3a"
	canaryKey      = "Canary+Key/7f3a9d=="
	canarySecret   = "canary~client~secret~7f3a"
	canaryHeader   = "canary-bearer-7f3a9d"
)

// Settings that hold secrets.
const (
	busConnection = "SERVICEBUS_CONNECTION_STRING"
	clientSecret  = "AZURE_CLIENT_SECRET"
	traceHeaders  = "OTEL_EXPORTER_OTLP_HEADERS"
)

var (
	mongoURIs       = []string{"MONGODB_URI", "READMODEL_MONGODB_URI"}
	sharedAccessKey = regexp.MustCompile(`SharedAccessKey=([^;]*)`)
)

// giveCanaries puts secrets into the settings of a service. Those that open
// something are kept.
func (c *Cluster) giveCanaries(env map[string]string) error {
	env[clientSecret] = canarySecret
	env[traceHeaders] = "authorization=Bearer " + canaryHeader
	if !c.open() {
		return nil
	}
	env[busConnection] = sharedAccessKey.ReplaceAllLiteralString(env[busConnection], "SharedAccessKey="+canaryKey)
	for _, name := range mongoURIs {
		if env[name] == "" {
			continue
		}
		u, err := url.Parse(env[name])
		if err != nil {
			return fmt.Errorf("put a password into %s: %w", name, err)
		}
		u.User = url.UserPassword(canaryUser, canaryPassword)
		env[name] = u.String()
	}
	return nil
}

// open says whether the sandbox is ours and lets anybody in.
func (c *Cluster) open() bool {
	return c.Sandbox != nil && !slices.Contains(c.cfg.SandboxArgs, "--auth") && !slices.Contains(c.cfg.SandboxArgs, "--check-sas")
}

// userTime bounds the creation of the services' user.
const userTime = 30 * time.Second

// createUser makes the user that the services are. One that is there is kept. It
// is tried again, for the servers may suffer something already.
func (c *Cluster) createUser(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, userTime)
	defer cancel()
	const exists = 51003
	return c.withMongo(ctx, func(client *mongo.Client) error {
		return poll.Until(ctx, "the services' user to be created", func(ctx context.Context) (bool, string) {
			err := client.Database("admin").RunCommand(ctx, bson.D{
				{Key: "createUser", Value: canaryUser},
				{Key: "pwd", Value: canaryPassword},
				{Key: "roles", Value: bson.A{"root"}},
			}).Err()
			answer, refused := errors.AsType[mongo.CommandError](err)
			return err == nil || refused && answer.Code == exists, fmt.Sprint(err)
		})
	})
}

func (c *Cluster) withMongo(ctx context.Context, use func(*mongo.Client) error) error {
	client, err := mongo.Connect(options.Client().ApplyURI(c.endpoints.MongoURI).SetServerSelectionTimeout(selectTimeout))
	if err != nil {
		return err
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }() // nothing is left to be lost
	return use(client)
}
