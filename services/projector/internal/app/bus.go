package app

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/rs/zerolog"

	"changerelay/services/projector/internal/servicebus"
	"changerelay/services/projector/internal/settings"
)

// busConfig says which subscription is read and how it is reached. It is all
// that commands on the subscription need.
type busConfig struct {
	ConnectionString settings.Secret `envconfig:"SERVICEBUS_CONNECTION_STRING" desc:"Service Bus connection string; either this or SERVICEBUS_NAMESPACE"`
	Namespace        string          `envconfig:"SERVICEBUS_NAMESPACE" desc:"host name of the Service Bus namespace, entered with Entra ID"`
	WebSockets       bool            `envconfig:"SERVICEBUS_WEBSOCKETS" default:"false" desc:"true connects by websockets on port 443"`
	Credential       string          `envconfig:"AZURE_CREDENTIAL" default:"default" desc:"Entra ID credential"`
	Topic            string          `envconfig:"SERVICEBUS_TOPIC" required:"true" desc:"topic that carries the changes"`
	Subscription     string          `envconfig:"SERVICEBUS_SUBSCRIPTION" required:"true" desc:"subscription to read"`
}

// bus is the configuration's part about Service Bus.
func (c *Config) bus() *busConfig {
	return &busConfig{
		ConnectionString: c.ServiceBusConnectionString,
		Namespace:        c.ServiceBusNamespace,
		WebSockets:       c.ServiceBusWebSockets,
		Credential:       c.AzureCredential,
		Topic:            c.Topic,
		Subscription:     c.Subscription,
	}
}

// check finds what no single field shows.
func (b *busConfig) check() []*settings.Problem {
	if (b.ConnectionString == "") == (b.Namespace == "") {
		return []*settings.Problem{settings.Problemf("SERVICEBUS_CONNECTION_STRING", "set either this or SERVICEBUS_NAMESPACE")}
	}
	variable := "SERVICEBUS_CONNECTION_STRING"
	if b.Namespace != "" {
		variable = "AZURE_CREDENTIAL"
	}
	bus, err := b.reach()
	if err == nil {
		_, err = servicebus.New(bus, zerolog.Nop())
	}
	if err != nil {
		return []*settings.Problem{settings.Problemf(variable, "%s", err)}
	}
	return nil
}

// reach is how the subscription is reached. It makes no round trip.
func (b *busConfig) reach() (servicebus.Config, error) {
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
	bus.Credential, err = credentialOf(b.Credential)
	return bus, err
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
