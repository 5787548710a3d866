// Package namespace knows how a Service Bus namespace is entered: its host, the
// sockets to it, and the tokens that prove who comes. Both adapters that take
// sessions, by the official client and by plain AMQP, enter by it.
package namespace

import (
	"crypto/tls"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// Access says which namespace is entered, and how.
type Access struct {
	// Host is the namespace's host name, with a port where it has one of its own.
	Host string
	// WebSockets goes through port 443, as some networks ask, instead of 5671.
	WebSockets bool
	// Emulator is true for the emulator, which has no TLS.
	Emulator bool
	// TLS is nil for the system's roots.
	TLS *tls.Config

	// One of these proves who comes: a key and its name, a signature that was
	// made before, or a credential.
	KeyName, Key, Signature string
	Credential              azcore.TokenCredential
}

var errNotValid = errors.New("the Service Bus connection string is not valid")

// Read reads a connection string. Its errors do not quote it.
func Read(connectionString string) (Access, error) {
	var a Access
	for part := range strings.SplitSeq(connectionString, ";") {
		if part == "" {
			continue
		}
		key, value, found := strings.Cut(part, "=")
		if !found {
			return Access{}, errNotValid
		}
		switch strings.ToLower(key) {
		case "endpoint":
			endpoint, err := url.Parse(value)
			if err != nil {
				return Access{}, errNotValid
			}
			a.Host = endpoint.Host
		case "sharedaccesskeyname":
			a.KeyName = value
		case "sharedaccesskey":
			a.Key = value
		case "sharedaccesssignature":
			a.Signature = value
		case "usedevelopmentemulator":
			is, err := strconv.ParseBool(value)
			if err != nil {
				return Access{}, errNotValid
			}
			a.Emulator = is
		}
	}
	if a.Host == "" || a.Signature == "" && (a.KeyName == "" || a.Key == "") {
		return Access{}, errNotValid
	}
	return a, nil
}

// Audience is what a claim for an entity is about.
func (a *Access) Audience(entity string) string {
	scheme := "amqps"
	if a.Emulator {
		scheme = "amqp"
	}
	return scheme + "://" + a.Host + "/" + entity
}
