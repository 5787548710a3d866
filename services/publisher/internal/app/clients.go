package app

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
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

// commandSelectTimeout is the same for a command, which nobody tries again.
const commandSelectTimeout = 15 * time.Second

// mongoOptions reads a connection string. Its errors do not quote secrets.
func mongoOptions(uri settings.Secret) (*options.ClientOptions, error) {
	o := options.Client().ApplyURI(uri.Reveal()).
		SetAppName("change-relay-publisher")
	if err := o.Validate(); err != nil {
		return nil, errors.New(redact.New(uri.Reveal()).Text(err.Error()))
	}
	// A timeout for every operation would end a change stream that waits.
	o.Timeout = nil
	return o, nil
}

// connectMongo returns a client of the service. It makes no round trip.
func connectMongo(uri settings.Secret) (*mongo.Client, error) {
	return connectWithin(uri, selectTimeout)
}

// connectWithin returns a client whose operations look so long for a server.
func connectWithin(uri settings.Secret, selecting time.Duration) (*mongo.Client, error) {
	o, err := mongoOptions(uri)
	if err != nil {
		return nil, err
	}
	return mongo.Connect(o.SetServerSelectionTimeout(selecting))
}

// dial returns how to reach Service Bus. It makes no round trip.
func (c *Config) dial() (servicebus.Dial, error) {
	o := servicebus.Options{WebSockets: c.ServiceBusWebSockets}
	if c.ServiceBusConnection != "" {
		dial := servicebus.WithConnectionString(c.ServiceBusConnection.Reveal(), o)
		return dial, checkDial(dial())
	}
	credential, err := credentialOf(c.AzureCredential)
	if err != nil {
		return nil, err
	}
	return servicebus.WithCredential(c.ServiceBusNamespace, credential, o), nil
}

// credentials are the Entra ID credentials by the names of AZURE_CREDENTIAL.
// Which identity they stand for is said by the SDK's own variables, such as
// AZURE_CLIENT_ID.
var credentials = map[string]func() (azcore.TokenCredential, error){
	"default":     func() (azcore.TokenCredential, error) { return azidentity.NewDefaultAzureCredential(nil) },
	"workload":    func() (azcore.TokenCredential, error) { return azidentity.NewWorkloadIdentityCredential(nil) },
	"environment": func() (azcore.TokenCredential, error) { return azidentity.NewEnvironmentCredential(nil) },
	"cli":         func() (azcore.TokenCredential, error) { return azidentity.NewAzureCLICredential(nil) },
	"managed": func() (azcore.TokenCredential, error) {
		o := &azidentity.ManagedIdentityCredentialOptions{}
		if id := os.Getenv("AZURE_CLIENT_ID"); id != "" {
			o.ID = azidentity.ClientID(id)
		}
		return azidentity.NewManagedIdentityCredential(o)
	},
}

func credentialOf(name string) (azcore.TokenCredential, error) {
	create, known := credentials[name]
	if !known {
		return nil, fmt.Errorf("%q is not one of %q", name, slices.Sorted(maps.Keys(credentials)))
	}
	return create()
}

func checkDial(_ *azservicebus.Client, err error) error { return err }
