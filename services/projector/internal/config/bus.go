package config

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"changerelay/services/projector/internal/credential"
	"changerelay/services/projector/internal/servicebus"
	"changerelay/services/projector/internal/settings"
)

// Bus says which subscription is read and how it is reached. It is all
// that commands on the subscription need.
type Bus struct {
	ConnectionString settings.Secret `envconfig:"SERVICEBUS_CONNECTION_STRING" desc:"Service Bus connection string; either this or SERVICEBUS_NAMESPACE"`
	Namespace        string          `envconfig:"SERVICEBUS_NAMESPACE" desc:"host name of the Service Bus namespace, entered with Entra ID"`
	WebSockets       bool            `envconfig:"SERVICEBUS_WEBSOCKETS" default:"false" desc:"true connects by websockets on port 443"`
	Credential       string          `envconfig:"AZURE_CREDENTIAL" default:"default" desc:"Entra ID credential"`
	Topic            string          `envconfig:"SERVICEBUS_TOPIC" required:"true" desc:"topic that carries the changes"`
	Subscription     string          `envconfig:"SERVICEBUS_SUBSCRIPTION" required:"true" desc:"subscription to read"`
}

// Bus is the configuration's part about Service Bus.
func (c *Config) Bus() *Bus {
	return &Bus{
		ConnectionString: c.ServiceBusConnectionString,
		Namespace:        c.ServiceBusNamespace,
		WebSockets:       c.ServiceBusWebSockets,
		Credential:       c.AzureCredential,
		Topic:            c.Topic,
		Subscription:     c.Subscription,
	}
}

// check finds what no single field shows.
func (b *Bus) check() []*settings.Problem {
	if (b.ConnectionString == "") == (b.Namespace == "") {
		return []*settings.Problem{settings.Problemf("SERVICEBUS_CONNECTION_STRING", "set either this or SERVICEBUS_NAMESPACE")}
	}
	variable := "SERVICEBUS_CONNECTION_STRING"
	if b.Namespace != "" {
		variable = "AZURE_CREDENTIAL"
	}
	bus, err := b.Reach()
	if err == nil {
		_, err = servicebus.New(bus, zerolog.Nop())
	}
	if err != nil {
		return []*settings.Problem{settings.Problemf(variable, "%s", err)}
	}
	return nil
}

// Reach is how the subscription is reached. It makes no round trip.
func (b *Bus) Reach() (servicebus.Config, error) {
	bus := servicebus.Config{
		ConnectionString: b.ConnectionString.Reveal(),
		Namespace:        b.Namespace,
		WebSockets:       b.WebSockets,
		Topic:            b.Topic,
		Subscription:     b.Subscription,
	}
	if bus.ConnectionString != "" {
		return bus, nil
	}
	var err error
	bus.Credential, err = credential.Of(b.Credential)
	return bus, err
}

// LoadBus reads the environment. The error holds every problem there is.
func LoadBus() (*Bus, error) {
	cfg := &Bus{}
	return cfg, settings.Load(cfg, cfg.check)
}

// ReachDeadLetters opens the subscription's dead-letter queue for a use of it.
func (b *Bus) ReachDeadLetters(ctx context.Context, use func(*servicebus.DeadLetters) error) error {
	bus, err := b.Reach()
	if err != nil {
		return err
	}
	letters, err := servicebus.OpenDeadLetters(bus)
	if err != nil {
		return err
	}
	err = use(letters)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(err, letters.Close(closing))
}
