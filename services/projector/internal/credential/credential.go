// Package credential makes Entra ID credentials by the names that AZURE_CREDENTIAL
// takes.
package credential

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// named are the credentials by name. Which identity they stand for is said by the
// SDK's own variables, such as AZURE_CLIENT_ID.
var named = map[string]func() (azcore.TokenCredential, error){
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

// Of returns the credential of that name. It makes no round trip; an unknown name
// is an error that lists the known ones.
func Of(name string) (azcore.TokenCredential, error) {
	create, known := named[name]
	if !known {
		return nil, fmt.Errorf("%q is not one of %q", name, slices.Sorted(maps.Keys(named)))
	}
	return create()
}
