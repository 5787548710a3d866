// Package management says how the management API of a Service Bus namespace is
// reached, which is asked for the properties of entities. The namespace itself
// has it at its own host over HTTPS, and the SDK knows no other. The emulator and
// the sandbox have it at a port of its own over HTTP
// (https://learn.microsoft.com/azure/service-bus-messaging/overview-emulator).
package management

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// emulatorPort is where the emulator has the management API.
const emulatorPort = "5300"

var errNoURL = errors.New("is no URL of the management API, such as http://localhost:5300, with a host and a port alone")

// Options has the SDK's management client ask at address, a URL. Where that is
// empty, it asks the emulator at its port if the connection string is one of an
// emulator, and the namespace otherwise. The error says what is wrong with address.
func Options(address, connectionString string) (azcore.ClientOptions, error) {
	if host, emulated := Endpoint(connectionString); address == "" && emulated {
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		address = "http://" + net.JoinHostPort(host, emulatorPort)
	}
	if address == "" {
		return azcore.ClientOptions{}, nil
	}
	base, err := url.Parse(address)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return azcore.ClientOptions{}, errNoURL
	}
	only := url.URL{Scheme: base.Scheme, Host: base.Host}
	if !strings.EqualFold(strings.TrimSuffix(address, "/"), only.String()) {
		return azcore.ClientOptions{}, errNoURL
	}
	return azcore.ClientOptions{Transport: elsewhere{&only}}, nil
}

// Endpoint is the host that a connection string names, with the port if there is
// one, and whether it is an emulator's.
func Endpoint(connectionString string) (host string, emulated bool) {
	for part := range strings.SplitSeq(connectionString, ";") {
		name, value, _ := strings.Cut(part, "=")
		switch {
		case strings.EqualFold(name, "Endpoint"):
			_, host, _ = strings.Cut(value, "//")
			host = strings.TrimRight(host, "/")
		case strings.EqualFold(name, "UseDevelopmentEmulator"):
			emulated = strings.EqualFold(value, "true")
		}
	}
	return host, emulated
}

// elsewhere sends requests to a base URL in place of the namespace's host.
type elsewhere struct{ base *url.URL }

// Do implements policy.Transporter.
func (e elsewhere) Do(request *http.Request) (*http.Response, error) {
	moved := request.Clone(request.Context())
	moved.URL.Scheme, moved.URL.Host, moved.Host = e.base.Scheme, e.base.Host, e.base.Host
	return http.DefaultClient.Do(moved)
}
