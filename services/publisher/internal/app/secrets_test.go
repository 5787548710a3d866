package app_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/settings"
	"changerelay/services/publisher/internal/testserver"
)

// The servers that the commands are pointed at refuse, are not there, or do not
// know the user: whatever goes wrong, what is said of it has no secret.
func TestSecrets_NoCommandSaysASecretWhenItFails(t *testing.T) {
	t.Parallel()
	const password, key = "canary-password", "canary+key/=="
	c := configured(testserver.Servers{}, func(c *config.Config) {
		uri := settings.Secret("mongodb://user:" + password + "@127.0.0.1:1/?serverSelectionTimeoutMS=50&connectTimeoutMS=50")
		c.MongoURI, c.StateMongoURI = uri, uri
		c.ServiceBusConnection = settings.Secret("Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=n;SharedAccessKey=" + key)
	})
	for _, args := range [][]string{
		{"parked", "list"},
		{"parked", "show", "x"},
		{"parked", "replay", "--all"},
		{"parked", "discard", "x"},
		{"setup"},
		{"repartition"},
		{"doctor"},
		{"doctor", "--json"},
		{"status"},
		{"checkpoint", "show"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			var stdout bytes.Buffer
			// It would end by itself, but the doctor takes its time.
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := program(c).Do(ctx, args, &stdout, &stdout)
			if err == nil {
				t.Fatalf("it works without servers: %s", &stdout)
			}
			for _, secret := range []string{password, key} {
				if strings.Contains(err.Error()+stdout.String(), secret) {
					t.Errorf("it says %s and %v, with a secret", &stdout, err)
				}
			}
		})
	}
}
