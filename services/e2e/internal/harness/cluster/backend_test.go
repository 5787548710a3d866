package cluster

import (
	"errors"
	"strings"
	"testing"
)

func TestBackend_EndpointsBehindProxiesKeepTheirCredentials(t *testing.T) {
	t.Parallel()
	var asked []string
	proxy := func(address string) func(string) (string, error) {
		return func(upstream string) (string, error) {
			asked = append(asked, upstream)
			return address, nil
		}
	}
	e := Endpoints{
		MongoURI:   "mongodb://127.0.0.1:1/?replicaSet=rs0",
		ServiceBus: "Endpoint=sb://127.0.0.1:2;SharedAccessKeyName=k;SharedAccessKey=s;UseDevelopmentEmulator=true;",
	}
	got, err := e.Through(proxy("127.0.0.1:11"), proxy("127.0.0.1:22"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "mongodb://127.0.0.1:11/?directConnection=true"; got.MongoURI != want {
		t.Errorf("MongoDB: got %q, want %q: the driver would go around the proxy", got.MongoURI, want)
	}
	if want := strings.Replace(e.ServiceBus, ":2;", ":22;", 1); got.ServiceBus != want {
		t.Errorf("Service Bus: got %q, want %q", got.ServiceBus, want)
	}
	if text := strings.Join(asked, " "); text != "127.0.0.1:1 127.0.0.1:2" {
		t.Errorf("proxies were asked for %q, want the servers' own addresses", text)
	}
}

func TestBackend_EndpointsWithoutAnAddressCannotBeProxied(t *testing.T) {
	t.Parallel()
	never := func(string) (string, error) { return "", errors.New("no proxy") }
	fine := func(string) (string, error) { return "127.0.0.1:1", nil }
	for name, tt := range map[string]struct {
		e     Endpoints
		mongo func(string) (string, error)
		want  string
	}{
		"no MongoDB":       {Endpoints{ServiceBus: "Endpoint=sb://h:1;"}, fine, "MongoDB: no address"},
		"no Service Bus":   {Endpoints{MongoURI: "mongodb://h:1/"}, fine, "Service Bus: no address"},
		"no proxy to have": {Endpoints{MongoURI: "mongodb://h:1/"}, never, "MongoDB: no proxy"},
	} {
		if _, err := tt.e.Through(tt.mongo, fine); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, tt.want)
		}
	}
}
