package config

import (
	"context"
	"fmt"
	"time"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/settings"
)

// Read is what commands that work on the read database need. They take
// the same variables as the service.
type Read struct {
	MongoURI         settings.Secret `envconfig:"READMODEL_MONGODB_URI" required:"true" desc:"MongoDB connection string of the read models"`
	Database         string          `envconfig:"READMODEL_DATABASE" required:"true" desc:"database of the read models"`
	MongoTimeout     time.Duration   `envconfig:"READMODEL_TIMEOUT" default:"15s" desc:"longest time for one MongoDB operation"`
	Group            string          `envconfig:"READMODEL_GROUP" desc:"group of the projectors that parked the messages"`
	ConnectionString settings.Secret `envconfig:"SERVICEBUS_CONNECTION_STRING" desc:"connection string of the namespace that the messages came from"`
	Namespace        string          `envconfig:"SERVICEBUS_NAMESPACE" desc:"host name of that namespace"`
	Topic            string          `envconfig:"SERVICEBUS_TOPIC" desc:"topic that the messages came from"`
	Subscription     string          `envconfig:"SERVICEBUS_SUBSCRIPTION" desc:"subscription that the messages came from"`
	Projections      string          `envconfig:"PROJECTIONS" desc:"YAML file of projections"`
	LatestCollection string          `envconfig:"LATEST_COLLECTION" default:"latest" desc:"collection of the latest data, where PROJECTIONS is not set"`
}

// Load reads the environment and the projections. The error holds every problem
// there is.
func (c *Read) Load(ctx context.Context) (projection.Projections, error) {
	var projections projection.Projections
	err := settings.Load(c, func() (problems []*settings.Problem) {
		var err error
		if projections, err = c.Service().projections(ctx); err != nil {
			problems = append(problems, settings.Problemf("PROJECTIONS", "%s", err))
		}
		return problems
	})
	return projections, err
}

// Service is the configuration as the service has it.
func (c *Read) Service() *Config {
	return &Config{
		MongoURI: c.MongoURI, Database: c.Database, MongoTimeout: c.MongoTimeout, Group: c.Group,
		ServiceBusConnectionString: c.ConnectionString, ServiceBusNamespace: c.Namespace, Topic: c.Topic, Subscription: c.Subscription,
		Projections: c.Projections, LatestCollection: c.LatestCollection,
	}
}

// Subscribed names topic and subscription, as far as the environment does.
func (c *Read) Subscribed() string {
	of := ""
	if c.Topic != "" {
		of += fmt.Sprintf(" of topic %q", c.Topic)
	}
	if c.Subscription != "" {
		of += fmt.Sprintf(" of subscription %q", c.Subscription)
	}
	return of
}
