package sdksuite

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/rs/zerolog"

	"changerelay/services/sandbox"
)

// entities are those that the SDK's own template creates before its tests.
const entities = `{"UserConfig": {"Namespaces": [{"Name": "sdk", "Topics": [], "Queues": [
	{"Name": "testQueue", "Properties": {"LockDuration": "PT5M"}},
	{"Name": "testQueueWithSessions", "Properties": {"LockDuration": "PT5M", "RequiresSession": true}}
]}], "Logging": {"Type": "Console"}}}`

// keys are those of the template, less the one that may do everything.
var keys = []sandbox.SASKey{
	{Name: "NoManage", Secret: "no-manage", Rights: "Listen,Send"},
	{Name: "SendOnly", Secret: "send-only", Rights: "Send"},
	{Name: "ListenOnly", Secret: "listen-only", Rights: "Listen"},
}

// newServer makes a sandbox as the tests want one.
func newServer() (*sandbox.Sandbox, error) {
	return sandbox.New(sandbox.Config{
		Entities: strings.NewReader(entities), CheckSAS: true, SASKeys: keys, Log: zerolog.Nop(),
	})
}

// environment is what the tests ask for, and the certificate they have to
// trust in a file below dir.
func environment(s *sandbox.Sandbox, dir string) ([]string, error) {
	certificate := filepath.Join(dir, "certificate.pem")
	if err := os.WriteFile(certificate, s.ServiceBusCertificatePEM(), 0o600); err != nil {
		return nil, err
	}
	root, ok := strings.CutSuffix(s.ServiceBusConnectionString(), "UseDevelopmentEmulator=true;")
	endpoint, _, _ := strings.Cut(root, ";")
	at, err := url.Parse(strings.TrimPrefix(endpoint, "Endpoint="))
	if err != nil || !ok {
		return nil, fmt.Errorf("connection string %q is not as expected: %w", root, err)
	}
	env := []string{
		"AZURE_RECORD_MODE=live",
		// Bad credentials are refused here, and not by a directory far away.
		"AZURE_AUTHORITY_HOST=https://" + at.Host,
		"SSL_CERT_FILE=" + certificate,
		"SERVICEBUS_ENDPOINT=" + at.Host,
		"SERVICEBUS_ENDPOINT_PREMIUM=" + at.Host,
		"SERVICEBUS_CONNECTION_STRING=" + root,
		"SERVICEBUS_CONNECTION_STRING_PREMIUM=" + root,
	}
	for i, name := range []string{"NO_MANAGE", "SEND_ONLY", "LISTEN_ONLY"} {
		env = append(env, fmt.Sprintf("SERVICEBUS_CONNECTION_STRING_%s=%s;SharedAccessKeyName=%s;SharedAccessKey=%s",
			name, endpoint, keys[i].Name, keys[i].Secret))
	}
	return env, nil
}
