package config

import (
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/credential"
	"changerelay/services/publisher/internal/redact"
	"changerelay/services/publisher/internal/servicebus"
	"changerelay/services/publisher/internal/settings"
	"changerelay/services/publisher/internal/slowlink"
)

// AttemptTimeout bounds one call to a database, outside the loops.
const AttemptTimeout = 5 * time.Second

// CloseTimeout bounds closing the clients.
const CloseTimeout = 2 * time.Second

// selectTimeout is how long an operation looks for a server that can take it,
// before it fails and is tried again by whoever asked.
const selectTimeout = 5 * time.Second

// CommandSelectTimeout is the same for a command, which nobody tries again.
const CommandSelectTimeout = 15 * time.Second

// mongoOptions reads a connection string. Its errors do not quote secrets.
func mongoOptions(uri settings.Secret) (*options.ClientOptions, error) {
	o := options.Client().ApplyURI(uri.Reveal()).
		SetAppName("change-relay-publisher").
		SetDialer(&slowlink.Dialer{})
	if err := o.Validate(); err != nil {
		return nil, errors.New(redact.New(uri.Reveal()).Text(err.Error()))
	}
	// A timeout for every operation would end a change stream that waits.
	o.Timeout = nil
	return o, nil
}

// ConnectMongo returns a client of the service. It makes no round trip.
func ConnectMongo(uri settings.Secret) (*mongo.Client, error) {
	return ConnectWithin(uri, selectTimeout)
}

// ConnectWithin returns a client whose operations look so long for a server.
func ConnectWithin(uri settings.Secret, selecting time.Duration) (*mongo.Client, error) {
	o, err := mongoOptions(uri)
	if err != nil {
		return nil, err
	}
	return mongo.Connect(o.SetServerSelectionTimeout(selecting))
}

// Dial returns how to reach Service Bus. It makes no round trip.
func (c *Config) Dial() (servicebus.Dial, error) {
	o := servicebus.Options{WebSockets: c.ServiceBusWebSockets}
	if c.ServiceBusConnection != "" {
		dial := servicebus.WithConnectionString(c.ServiceBusConnection.Reveal(), o)
		return dial, checkDial(dial())
	}
	token, err := credential.Of(c.AzureCredential)
	if err != nil {
		return nil, err
	}
	return servicebus.WithCredential(c.ServiceBusNamespace, token, o), nil
}

func checkDial(_ *azservicebus.Client, err error) error { return err }
