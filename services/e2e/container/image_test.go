//go:build docker

package container

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"changerelay/services/e2e/internal/harness/docker"
)

// The containers of all tests have a read-only root file system and no
// capabilities; what is left to see is that an image says what it is.
func TestImage_AnImageIsHealthyUnprivilegedAndSaysItsVersion(t *testing.T) {
	s := start(t, 1)
	for service, c := range map[string]*docker.Container{"publisher": s.publishers[0], "projector": s.projectors[0]} {
		await(t, c.Name+" to be healthy by its own check", func(context.Context) (bool, string) {
			found, err := c.Inspect()
			must(t, err)
			return found.State.Health.Status == "healthy", fmt.Sprint(found.State.Health)
		})
		found, err := c.Inspect()
		must(t, err)
		if found.Config.User != "65532:65532" {
			t.Errorf("user of %s: got %q, want 65532:65532", service, found.Config.User)
		}
		version := found.Config.Labels["org.opencontainers.image.version"]
		metrics, err := c.Get(within(t), "/metrics")
		must(t, err)
		if want := fmt.Sprintf("%s_build_info{version=%q} 1", service, version); version == "" || !strings.Contains(string(metrics), want) {
			t.Errorf("metrics of %s: got no %s, the version that the image's label says", service, want)
		}
	}
}
