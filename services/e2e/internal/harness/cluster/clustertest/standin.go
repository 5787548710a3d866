package clustertest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/poll"
)

// StandIns is a cluster of a publisher and a projector without servers, whose programs
// say that they are up and, when they are asked to stop, end with the status. None is
// started.
func StandIns(t *testing.T, status int) *cluster.Cluster {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "service")
	text := fmt.Sprintf("#!/bin/sh\ntrap 'exit %d' TERM\n"+`echo '{"message":"admin listening","addr":"127.0.0.1:1"}' >&2`+"\nwhile :; do sleep 0.1; done\n", status)
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	c := cluster.New(cluster.Config{
		Binaries: cluster.Binaries{Publisher: program, Projector: program}, Dir: dir, Publishers: 1, Projectors: 1,
		Names: cluster.DefaultNames(), Backend: &cluster.Endpoints{},
	})
	if err := c.LayOut(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Up starts the node's program and waits until it says that it is up.
func Up(t *testing.T, n *cluster.Node) {
	t.Helper()
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	AwaitUp(t, n)
}

// AwaitUp waits until the node's program says that it is up.
func AwaitUp(t *testing.T, n *cluster.Node) {
	t.Helper()
	err := poll.Until(t.Context(), n.Name+" to be up", func(context.Context) (bool, string) {
		_, err := n.Page()
		return err == nil, fmt.Sprint(err)
	})
	if err != nil {
		t.Fatal(err)
	}
}
