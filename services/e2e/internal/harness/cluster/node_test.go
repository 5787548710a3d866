package cluster

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"changerelay/services/e2e/internal/harness/poll"
)

// node returns a node that runs the test binary as a stand-in.
func node(t *testing.T, as string) *Node {
	t.Helper()
	n := newNode(program{
		name: as, binary: os.Args[0], env: environment(map[string]string{standIn: as, "INSTANCE_ID": as + "-1"}),
		log: filepath.Join(t.TempDir(), as+".log"),
	}, &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}})
	t.Cleanup(n.Kill)
	return n
}

func started(t *testing.T, as string) *Node {
	t.Helper()
	n := node(t, as)
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, n)
	return n
}

func awaitStatus(t *testing.T, n *Node) PublisherStatus {
	t.Helper()
	var status PublisherStatus
	err := poll.Until(t.Context(), "a status", func(ctx context.Context) (bool, string) {
		var err error
		status, err = n.PublisherStatus(ctx)
		return err == nil, "none"
	})
	if err != nil {
		t.Fatal(err)
	}
	return status
}

func TestNode_ANodeTellsItsStatus(t *testing.T) {
	t.Parallel()
	n := started(t, "service")
	if got, want := awaitStatus(t, n).Instance, "service-1"; got != want {
		t.Errorf("instance: got %q, want %q", got, want)
	}
	if !strings.Contains(n.Log(), "admin listening") {
		t.Errorf("log: got %q, want the line of the admin port", n.Log())
	}
}

func TestNode_ATerminatedNodeTellsItsExitStatus(t *testing.T) {
	t.Parallel()
	n := started(t, "service")
	if err := n.Terminate(); err != nil {
		t.Fatal(err)
	}
	if got, err := n.Wait(t.Context()); got != 7 || err != nil {
		t.Errorf("exit: got %d, %v, want 7", got, err)
	}
	if n.Ended().IsZero() || n.Running() {
		t.Error("the node ended, but says that it runs")
	}
}

func TestNode_AKilledNodeIsGoneAndCanRunAgain(t *testing.T) {
	t.Parallel()
	n := started(t, "service")
	n.Kill()
	if got, err := n.Wait(t.Context()); got != -1 || err != nil {
		t.Errorf("exit: got %d, %v, want -1", got, err)
	}
	if _, err := n.PublisherStatus(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("status of a dead node: got %v, want %v", err, ErrNotRunning)
	}
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, n)
	if got, want := strings.Count(n.Log(), "admin listening"), 2; got != want {
		t.Errorf("runs in the log: got %d, want %d", got, want)
	}
	if err := n.Start(); err == nil {
		t.Error("a second start of a running node: got no error")
	}
}

func TestNode_APausedNodeAnswersAgainOnceResumed(t *testing.T) {
	t.Parallel()
	n := started(t, "service")
	if err := n.Pause(); err != nil {
		t.Fatal(err)
	}
	if _, err := n.PublisherStatus(t.Context()); err == nil || !strings.Contains(err.Error(), "paused") {
		t.Errorf("status of a paused node: got %v, want one that says so", err)
	}
	if !n.Running() {
		t.Error("a paused node says that it does not run")
	}
	if err := n.Resume(); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, n)
}

func TestNode_APausedNodeCanBeKilled(t *testing.T) {
	t.Parallel()
	n := started(t, "service")
	if err := n.Pause(); err != nil {
		t.Fatal(err)
	}
	n.Kill()
	if n.Running() {
		t.Error("the node was killed, but says that it runs")
	}
}

func TestNode_UsageSumsUpRunsAndKeepsThePeak(t *testing.T) {
	t.Parallel()
	n := started(t, "service")
	if running := n.Usage(); runtime.GOOS == "linux" && running.ResidentBytes < 64<<20 {
		t.Errorf("memory of the running program: got %d bytes, want the ballast of 64 MiB", running.ResidentBytes)
	}
	n.Kill()
	first := n.Usage()
	if first.ResidentBytes < 64<<20 || first.ResidentBytes > 512<<20 {
		t.Errorf("memory: got %d bytes, want the ballast of 64 MiB and little more", first.ResidentBytes)
	}
	if first.CPU <= 0 {
		t.Errorf("processor time: got %v, want some", first.CPU)
	}
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, n)
	n.Kill()
	if second := n.Usage(); second.CPU <= first.CPU || second.ResidentBytes < first.ResidentBytes {
		t.Errorf("after two runs: got %+v, want more than %+v", second, first)
	}
}

func TestNode_EveryProcessLeadsAGroupOfItsOwn(t *testing.T) {
	t.Parallel()
	n := started(t, "service")
	pid := n.current().cmd.Process.Pid
	if group, err := syscall.Getpgid(pid); group != pid || err != nil {
		t.Errorf("process group of %d: got %d, %v, want its own", pid, group, err)
	}
}

func TestNode_ANodeThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	n := node(t, "service")
	n.program.binary = filepath.Join(t.TempDir(), "missing")
	if err := n.Start(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("start: got %v, want %v", err, os.ErrNotExist)
	}
	if err := n.Terminate(); !errors.Is(err, ErrNotRunning) {
		t.Errorf("terminate: got %v, want %v", err, ErrNotRunning)
	}
	n.Kill()
}
