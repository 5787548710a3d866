package scenario

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"changerelay/services/e2e/internal/harness/cluster"
)

// managing is the official client of the management API, which trusts the
// sandbox's certificate.
func managing(t *testing.T, e cluster.Endpoints) *admin.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: certificateOf(t, e), MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := admin.NewClientFromConnectionString(e.ServiceBus, &admin.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: transport}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func certificateOf(t *testing.T, e cluster.Endpoints) *x509.CertPool {
	t.Helper()
	request, err := http.NewRequestWithContext(within(t), http.MethodGet, e.ManagementURL+"/$certificate", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	certificate, err := io.ReadAll(response.Body)
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(certificate) {
		t.Fatalf("certificate of the sandbox: got %q, %v", certificate, err)
	}
	return roots
}

// changeTopic changes the topic's properties.
func changeTopic(t *testing.T, r *relay, change func(*admin.TopicProperties)) {
	t.Helper()
	client := managing(t, r.Endpoints())
	err := onTopic(within(t), client, r.Names().Topic, change)
	if err != nil {
		t.Fatal(err)
	}
}

func onTopic(ctx context.Context, client *admin.Client, name string, change func(*admin.TopicProperties)) error {
	got, err := client.GetTopic(ctx, name, nil)
	if err != nil {
		return err
	}
	change(&got.TopicProperties)
	_, err = client.UpdateTopic(ctx, name, got.TopicProperties, nil)
	return err
}
