package management

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

const (
	namespace = "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=n;SharedAccessKey=k"
	emulator  = "endpoint=sb://10.1.2.3:5672;SharedAccessKeyName=n;SharedAccessKey=k;UseDevelopmentEmulator=True;"
)

func TestOptions_SayWhereTheAPIAnswers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ address, connection, want string }{
		"a namespace":               {"", namespace, ""},
		"Entra ID":                  {"", "", ""},
		"the emulator":              {"", emulator, "http://10.1.2.3:5300"},
		"the emulator without port": {"", "Endpoint=sb://localhost;SharedAccessKeyName=n;SharedAccessKey=k;UseDevelopmentEmulator=true", "http://localhost:5300"},
		"an address":                {"http://sandbox:1234/", emulator, "http://sandbox:1234"},
	} {
		o, err := Options(tt.address, tt.connection)
		got := ""
		if o.Transport != nil {
			got = o.Transport.(elsewhere).base.String()
		}
		if err != nil || got != tt.want {
			t.Errorf("%s: got %q and %v, want %q", name, got, err, tt.want)
		}
	}
	for _, address := range []string{"localhost:5300", "sb://localhost", "http://", "://", "http://proxy/sb", "http://name:word@host:1", "http://host:1?a=b"} {
		if _, err := Options(address, emulator); err == nil {
			t.Errorf("%q: got no error", address)
		}
	}
}

func TestElsewhere_AsksThereWhatTheNamespaceWouldBeAsked(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Host + r.URL.String() }))
	defer server.Close()
	o, err := Options(server.URL, namespace)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://ns.servicebus.windows.net/changes?api-version=1", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := o.Transport.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if got, want := <-asked, server.Listener.Addr().String()+"/changes?api-version=1"; got != want || request.URL.Host != "ns.servicebus.windows.net" {
		t.Errorf("asked %q, want %q, and the request as it was", got, want)
	}
}
