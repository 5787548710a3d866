package app_test

import (
	"net/url"
	"strings"
	"testing"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/settings"
)

// Drivers and SDKs quote what they were given, escaped in their own ways. Here
// the name of the instance, which is in every line, quotes it.
func TestApp_KeepsSecretsOutOfLogsInEveryForm(t *testing.T) {
	t.Parallel()
	cfg := configured(t, "latest", "secrets")
	cfg.MongoURI = "mongodb://user:canary%22quoted%3C@127.0.0.1:1,127.0.0.1:2/?serverSelectionTimeoutMS=100"
	cfg.ServiceBusConnectionString = settings.Secret("Endpoint=sb://localhost;SharedAccessKeyName=root;SharedAccessKey=canary+key/==;UseDevelopmentEmulator=true")
	cfg.InstanceID = `canary"quoted< ` + url.QueryEscape("canary+key/==")
	p := start(t, cfg, projection.Projections{projection.Latest{Collection: "latest"}})
	until(t, "the projector waits for the database", func() bool { return strings.Contains(p.logs.String(), "waiting for the read database") })
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if text := p.logs.String(); strings.Contains(text, "canary") || !strings.Contains(text, "<redacted>") {
		t.Errorf("the log shows a secret, or nothing was to be hidden: %s", text)
	}
}
