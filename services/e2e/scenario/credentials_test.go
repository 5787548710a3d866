package scenario

import (
	"context"
	"strings"
	"testing"

	"changerelay/services/e2e/internal/harness/cluster"
)

// Credentials that are refused are said to be, and not shown themselves: not in
// the log, nor on a page, nor in what is stored, where closeAtEnd looks for them.
func TestCredentials_RefusedCredentialsAreSaidToBeAndNotShown(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		edit func(*cluster.Config)
		says string
	}{
		"a password":          {wrongPasswords, "auth error"},
		"a shared access key": {wrongKeys, "unauthorized"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := guardedCluster(t, documented(t), 1, 1, tt.edit)
			if err := c.StartServices(); err != nil {
				t.Fatal(err)
			}
			write := writingAsRoot(t, c)
			await(t, "the publisher to say what is refused", func(ctx context.Context) (bool, string) {
				write(ctx) // so that there is something to send
				s, err := c.Publishers[0].PublisherStatus(ctx)
				return err == nil && strings.Contains(s.LastError, tt.says), s.State + ": " + s.LastError
			})
			await(t, "the projector to say what is refused", func(ctx context.Context) (bool, string) {
				s, err := c.Projectors[0].ProjectorStatus(ctx)
				return err == nil && strings.Contains(s.LastError, tt.says), s.State + ": " + s.LastError
			})
		})
	}
}

func wrongPasswords(c *cluster.Config) {
	wrong := strings.Replace(c.Backend.MongoURI, "root:root@", "publisher:wrong%2Fcanary%3A7f3a@", 1)
	c.PublisherEnv["MONGODB_URI"], c.ProjectorEnv["READMODEL_MONGODB_URI"] = wrong, wrong
}

func wrongKeys(c *cluster.Config) {
	wrong := strings.Replace(c.Backend.ServiceBus, "SAS_KEY_VALUE", "Wrong+Canary/Key7f3a==", 1)
	c.PublisherEnv["SERVICEBUS_CONNECTION_STRING"], c.ProjectorEnv["SERVICEBUS_CONNECTION_STRING"] = wrong, wrong
}
