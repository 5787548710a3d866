package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

func killServers(_ context.Context, c *campaign, _ *rand.Rand) (string, func(context.Context) error, error) {
	release, free := c.take(c.cluster.Sandbox.Name)
	if !free {
		return "", nil, errNobody
	}
	c.cluster.Sandbox.Kill()
	return "SIGKILL of the servers", func(ctx context.Context) error { defer release(); return c.restart(ctx, c.binaries.Sandbox) }, nil
}

func freezeServers(_ context.Context, c *campaign, _ *rand.Rand) (string, func(context.Context) error, error) {
	release, free := c.take(c.cluster.Sandbox.Name)
	if !free {
		return "", nil, errNobody
	}
	if err := c.cluster.Sandbox.Pause(); err != nil {
		release()
		return "", nil, err
	}
	return "SIGSTOP of the servers", func(context.Context) error { defer release(); return c.cluster.Sandbox.Resume() }, nil
}

// restart starts the servers, which have ended, and notes how long they took.
func (c *campaign) restart(ctx context.Context, binary string, env ...string) error {
	began := time.Now()
	if err := c.cluster.StartSandboxAs(ctx, binary, env...); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restarting = max(c.restarting, time.Since(began))
	return nil
}

// spaceLeft bounds how much a disk takes before it is full.
const spaceLeft = 64 << 10

// failed is the exit status of a sandbox that cannot write its journal.
const failed = 1

// fillDisk leaves the servers little space for what they keep. They write until
// they must give up, and are started again when there is space.
func fillDisk(_ context.Context, c *campaign, rng *rand.Rand) (string, func(context.Context) error, error) {
	servers := c.cluster.Sandbox
	release, free := c.take(servers.Name)
	if !free {
		return "", nil, errNobody
	}
	largest, err := largestJournal(c.data)
	if err == nil {
		err = servers.LimitFileSize(uint64(largest + rng.Int64N(spaceLeft)))
	}
	if err != nil {
		release()
		if errors.Is(err, errors.ErrUnsupported) {
			return "", nil, errNobody
		}
		return "", nil, err
	}
	return "full disk of the servers", func(ctx context.Context) error {
		defer release()
		if servers.Running() {
			servers.Kill() // it compacts its journal just now, or nothing is written
			return c.restart(ctx, c.binaries.Sandbox)
		}
		if status, err := servers.Wait(ctx); err != nil || status != failed {
			return fmt.Errorf("with a full disk the servers ended with status %d, want %d: see %s", status, failed, servers.LogPath())
		}
		c.say("the servers gave up, and have space again")
		return c.restart(ctx, c.binaries.Sandbox)
	}, nil
}

// largestJournal is the size of the largest file that is still written to.
func largestJournal(data string) (int64, error) {
	paths, err := filepath.Glob(filepath.Join(data, "*", "segment-*"))
	if err != nil || len(paths) == 0 {
		return 0, fmt.Errorf("find the journals in %s: got %d, %w", data, len(paths), err)
	}
	var largest int64
	for _, path := range paths {
		if file, err := os.Stat(path); err == nil { // else compacted away just now
			largest = max(largest, file.Size())
		}
	}
	return largest, nil
}
