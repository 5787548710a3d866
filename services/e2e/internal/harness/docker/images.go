package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ory/dockertest/v3"
	"github.com/ory/dockertest/v3/docker"
)

// Images are the names of what is run, each with its tag.
type Images struct {
	Publisher, Projector, Sandbox string
	Mongo, ServiceBus, SQL        string
	// Real says that the servers are MongoDB and the Service Bus emulator, and
	// not the sandbox.
	Real bool
	// Why says why they are that.
	Why string
}

// pullTimeout bounds the pull of one image.
const pullTimeout = 5 * time.Minute

// Choose reads the images from the environment and decides on the servers:
// BACKENDS=real or sandbox, or, where it is not set, the real ones if they are
// here or can be pulled. The project's own images must be here.
func Choose(ctx context.Context, pool *dockertest.Pool, getenv func(string) string) (Images, error) {
	version := cmp.Or(getenv("IMAGE_VERSION"), "devel")
	i := Images{
		Publisher:  cmp.Or(getenv("PUBLISHER_IMAGE"), "change-relay-publisher:"+version),
		Projector:  cmp.Or(getenv("PROJECTOR_IMAGE"), "change-relay-projector:"+version),
		Sandbox:    cmp.Or(getenv("SANDBOX_IMAGE"), "change-relay-sandbox:"+version),
		Mongo:      cmp.Or(getenv("MONGO_IMAGE"), "mongo:8.0.4"),
		ServiceBus: cmp.Or(getenv("SERVICEBUS_IMAGE"), "mcr.microsoft.com/azure-messaging/servicebus-emulator:1.1.2"),
		SQL:        cmp.Or(getenv("SQL_IMAGE"), "mcr.microsoft.com/mssql/server:2022-CU16-ubuntu-22.04"),
	}
	for _, image := range []string{i.Publisher, i.Projector, i.Sandbox} {
		if _, err := pool.Client.InspectImage(image); err != nil {
			return i, fmt.Errorf("find image %s, which make images builds: %w", image, err)
		}
	}
	err := i.decide(ctx, pool, getenv("BACKENDS"))
	return i, err
}

func (i *Images) decide(ctx context.Context, pool *dockertest.Pool, backends string) error {
	switch backends {
	case "sandbox":
		i.Why = "BACKENDS says so"
		return nil
	case "real", "":
	default:
		return fmt.Errorf("BACKENDS is %q, neither real nor sandbox", backends)
	}
	var errs []error
	for _, image := range []string{i.Mongo, i.ServiceBus, i.SQL} {
		errs = append(errs, obtain(ctx, pool, image))
	}
	err := errors.Join(errs...)
	if backends == "real" {
		i.Real, i.Why = true, "BACKENDS says so"
		return err
	}
	if i.Real = err == nil; i.Real {
		i.Why = "their images are here"
		return nil
	}
	i.Why = "the real ones cannot be had: " + strings.ReplaceAll(err.Error(), "\n", "; ")
	return nil
}

// obtain pulls an image that is not here.
func obtain(ctx context.Context, pool *dockertest.Pool, image string) error {
	if _, err := pool.Client.InspectImage(image); err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	repository, tag := image, "latest"
	if at := strings.LastIndex(image, ":"); at > strings.LastIndex(image, "/") {
		repository, tag = image[:at], image[at+1:]
	}
	if err := pool.Client.PullImage(docker.PullImageOptions{Repository: repository, Tag: tag, Context: ctx}, docker.AuthConfiguration{}); err != nil {
		return fmt.Errorf("pull %s: %w", image, err)
	}
	return nil
}

// String says which servers run and why.
func (i Images) String() string {
	if i.Real {
		return fmt.Sprintf("servers: %s and %s, for %s", i.Mongo, i.ServiceBus, i.Why)
	}
	return fmt.Sprintf("servers: the sandbox, %s, for %s", i.Sandbox, i.Why)
}
