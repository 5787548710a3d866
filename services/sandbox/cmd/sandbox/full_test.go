//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestFull_AFullDiskRefusesWritesAndLosesNone gives the sandbox room for a small
// journal only: a limit on the size of files ends a write as a full disk does,
// in the middle.
func TestFull_AFullDiskRefusesWritesAndLosesNone(t *testing.T) {
	t.Parallel()
	path, err := os.Executable()
	must(t, err)
	dir := t.TempDir()
	limited := append([]string{"-c", `ulimit -f 200; exec "$0" "$@"`, path}, withFreePorts([]string{"--data", dir})...)
	p := startCommand(t, exec.Command("sh", limited...))
	d := newDocuments()
	client, bus := p.client(t), p.bus(t)
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	m := newMessages()
	l := &load{enough: -1}
	var workers sync.WaitGroup
	var refused error
	workers.Go(func() { m.send(ctx, bus, l, "sender") })
	workers.Go(func() { refused = fill(ctx, func(id string) error { return d.insert(ctx, client, id) }) })
	err = p.cmd.Wait()
	cancel()
	workers.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != failed {
		t.Errorf("got %v at the end, want exit code %d", err, failed)
	}
	if refused == nil || len(d.inserted) == 0 {
		t.Fatalf("got error %v after %d writes, want some writes and then a refusal", refused, len(d.inserted))
	}
	if log := p.log.String(); !strings.Contains(log, "file too large") || !strings.Contains(log, "sandbox failed") {
		t.Errorf("got log %s, want why it ended", log)
	}
	p = startProcess(t, "--data", dir)
	d.expect(t, p.client(t))
	m.expect(t, p)
}

// fill writes until the first refusal, which it returns.
func fill(ctx context.Context, insert func(id string) error) error {
	padding := strings.Repeat("x", 500)
	for n := 0; ctx.Err() == nil; n++ {
		if err := insert(fmt.Sprint(bson.NewObjectID().Hex(), n, padding)); err != nil {
			return err
		}
	}
	return nil
}
