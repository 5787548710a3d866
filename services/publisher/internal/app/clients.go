package app

import (
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/redact"
	"changerelay/services/publisher/internal/servicebus"
	"changerelay/services/publisher/internal/settings"
)

// selectTimeout is how long an operation looks for a server that can take it,
// before it fails and is tried again by whoever asked.
const selectTimeout = 5 * time.Second

// mongoOptions reads a connection string. Its errors do not quote secrets.
func mongoOptions(uri settings.Secret) (*options.ClientOptions, error) {
	o := options.Client().ApplyURI(uri.Reveal()).
		SetAppName("change-relay-publisher").
		SetServerSelectionTimeout(selectTimeout)
	if err := o.Validate(); err != nil {
		return nil, errors.New(redact.New(uri.Reveal()).Text(err.Error()))
	}
	// A timeout for every operation would end a change stream that waits.
	o.Timeout = nil
	return o, nil
}

// connectMongo returns a client. It makes no round trip.
func connectMongo(uri settings.Secret) (*mongo.Client, error) {
	o, err := mongoOptions(uri)
	if err != nil {
		return nil, err
	}
	return mongo.Connect(o)
}

// dial returns how to reach Service Bus. It makes no round trip.
func (c *Config) dial() (servicebus.Dial, error) {
	if c.ServiceBusConnection != "" {
		dial := servicebus.WithConnectionString(c.ServiceBusConnection.Reveal())
		return dial, checkDial(dial())
	}
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, err
	}
	return servicebus.WithCredential(c.ServiceBusNamespace, credential), nil
}

func checkDial(_ *azservicebus.Client, err error) error { return err }
