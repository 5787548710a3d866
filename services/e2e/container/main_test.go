//go:build docker

package container

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"changerelay/services/e2e/internal/harness/docker"
)

// systems bounds how many tests, repeats included, can have a system of their own; the
// emulator takes 50 topics.
const systems = 40

// startTimeout bounds the start of the servers, pulls and all.
const startTimeout = 15 * time.Minute

// host is where all tests run their containers; used is how many systems of it
// are given away.
var (
	host *docker.Host
	used atomic.Int32
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	dir, err := os.MkdirTemp("", "change-relay-docker-")
	if err == nil {
		// The users in the containers are not ours.
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	host, err = docker.Open(ctx, dir, systems, os.Getenv)
	if host != nil {
		fmt.Fprintln(os.Stderr, host.Images)
		defer func() {
			if err := host.Close(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
