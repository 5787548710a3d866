package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Node is a place in the cluster. Its program may be run, ended and run again;
// all its runs write to one log. Methods are safe for concurrent use.
type Node struct {
	// Name says which node it is: sandbox, publisher-1, projector-2.
	Name string

	program program
	client  *http.Client

	mu     sync.Mutex // guards what follows
	run    *process
	admin  string
	paused bool
	peak   int64 // resident bytes seen while running
	past   Usage // of runs that have been replaced
}

// ErrNotRunning is returned where a node's program would have to be running.
var ErrNotRunning = errors.New("not running")

func newNode(p program, client *http.Client) *Node {
	n := &Node{Name: p.name, program: p, client: client}
	n.program.stderr = n.readLog
	return n
}

// Start runs the node's program. It is an error when it is still running.
func (n *Node) Start() error { return n.StartAs(n.program.binary) }

// StartAs is Start with another binary and more environment, for this run only.
func (n *Node) StartAs(binary string, env ...string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.run != nil {
		if n.run.running() {
			return fmt.Errorf("start %s: it is running", n.Name)
		}
		n.past = n.usage()
	}
	n.admin, n.paused, n.peak = "", false, 0
	p := n.program
	p.binary, p.env = binary, slices.Concat(p.env, env)
	run, err := start(p)
	if err != nil {
		return err
	}
	n.run = run
	return nil
}

// readLog takes the address of the admin port from the program's log.
func (n *Node) readLog(line []byte) {
	var entry struct{ Message, Addr string }
	if json.Unmarshal(line, &entry) != nil || entry.Message != "admin listening" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.admin = entry.Addr
}

// Running says whether the node's program is running, stopped by Pause or not.
func (n *Node) Running() bool {
	run := n.current()
	return run != nil && run.running()
}

// Kill ends the program with SIGKILL and returns when it is gone.
func (n *Node) Kill() {
	if run := n.current(); run != nil {
		n.measure()
		run.kill()
	}
}

// Terminate sends SIGTERM, on which a program stops in its own good order. Wait
// for the end with Wait.
func (n *Node) Terminate() error { return n.signal(syscall.SIGTERM) }

// Pause freezes the program where it stands (SIGSTOP).
func (n *Node) Pause() error {
	n.setPaused(true)
	return n.signal(syscall.SIGSTOP)
}

// Resume lets a frozen program go on (SIGCONT).
func (n *Node) Resume() error {
	n.setPaused(false)
	return n.signal(syscall.SIGCONT)
}

// LimitFileSize has every write that would make a file larger fail, as on a full
// disk. It holds for the run of the program that there is. Where the system cannot
// do so to a running program, the error is errors.ErrUnsupported.
func (n *Node) LimitFileSize(bytes uint64) error {
	run := n.current()
	if run == nil {
		return fmt.Errorf("limit files of %s: %w", n.Name, ErrNotRunning)
	}
	if err := limitFileSize(run.cmd.Process.Pid, bytes); err != nil {
		return fmt.Errorf("limit files of %s: %w", n.Name, err)
	}
	return nil
}

func (n *Node) setPaused(paused bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.paused = paused
}

func (n *Node) signal(s syscall.Signal) error {
	run := n.current()
	if run == nil {
		return fmt.Errorf("signal %s: %w", n.Name, ErrNotRunning)
	}
	n.measure()
	return run.signal(s)
}

// Command runs the node's binary as an operator would, with its environment and
// these arguments, and returns what it prints. The node may run or not.
func (n *Node) Command(ctx context.Context, args ...string) (string, error) {
	return n.CommandIn(ctx, nil, args...)
}

// CommandIn is Command with more environment, which is stronger than the node's own.
func (n *Node) CommandIn(ctx context.Context, env []string, args ...string) (string, error) {
	return n.CommandAs(ctx, n.program.binary, env, args...)
}

// CommandAs is CommandIn of another binary.
func (n *Node) CommandAs(ctx context.Context, binary string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = slices.Concat(n.program.env, env)
	cmd.WaitDelay = orphanTime
	output, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %q: %w: %s", n.Name, args, err, output)
	}
	return string(output), err
}

// orphanTime is how long what a command has started may hold its output open once the
// command itself is gone.
const orphanTime = 2 * time.Second

// Script writes a program into dir that runs the node's binary as an operator would, with
// its environment and the arguments that the program is given. It shows the node's secrets.
func (n *Node) Script(dir string) (string, error) {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	words := []string{"#!/bin/sh\nexec env -i"}
	for _, setting := range n.program.env {
		words = append(words, quote(setting))
	}
	path := filepath.Join(dir, n.Program())
	text := strings.Join(append(words, quote(n.program.binary), `"$@"`), " ") + "\n"
	return path, os.WriteFile(path, []byte(text), 0o700) //nolint:gosec // it is run
}

// Wait blocks until the program has ended and returns its exit status, -1 where
// a signal ended it.
func (n *Node) Wait(ctx context.Context) (int, error) {
	run := n.current()
	if run == nil {
		return 0, fmt.Errorf("wait for %s: %w", n.Name, ErrNotRunning)
	}
	return run.wait(ctx)
}

// Ended returns when the node's latest run ended, zero while it runs.
func (n *Node) Ended() time.Time {
	run := n.current()
	if run == nil || run.running() {
		return time.Time{}
	}
	return run.ended
}

// LogPath is the file with everything that the node's runs logged.
func (n *Node) LogPath() string { return n.program.log }

// Page is the address of the page on the node's admin port.
func (n *Node) Page() (string, error) { return n.adminURL("/") }

// Settings are the settings that the node's runs have.
func (n *Node) Settings() map[string]string {
	settings := make(map[string]string)
	for _, one := range n.program.env {
		if name, value, _ := strings.Cut(one, "="); name != "PATH" && name != "HOME" {
			settings[name] = value
		}
	}
	return settings
}

// Help is what the binary of a service prints for --help.
func Help(ctx context.Context, binary string) (string, error) {
	help, err := exec.CommandContext(ctx, binary, "--help").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its settings: %w", binary, err)
	}
	return string(help), nil
}

// Program is the name of the node's program.
func (n *Node) Program() string { return filepath.Base(n.program.binary) }

// Binary is the program that Start runs.
func (n *Node) Binary() string { return n.program.binary }

// Log returns what the node's runs have logged so far.
func (n *Node) Log() string {
	text, err := os.ReadFile(n.program.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// lastWords is the last line that the node has logged: its error alone, where it has one.
func (n *Node) lastWords() string {
	lines := strings.Split(strings.TrimSpace(n.Log()), "\n")
	last := lines[len(lines)-1]
	var line struct {
		Error string `json:"error"`
	}
	if json.Unmarshal([]byte(last), &line) == nil && line.Error != "" {
		return line.Error
	}
	return last
}

// Usage is what the node's runs took so far.
func (n *Node) Usage() Usage {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.usage()
}

// usage sums up all runs. The caller holds mu.
func (n *Node) usage() Usage {
	total := n.past
	if n.run == nil {
		return total
	}
	total.CPU += n.run.cpu()
	n.notePeak()
	peak := n.peak
	if peak == 0 && !n.run.running() {
		peak = n.run.maxResident()
	}
	total.ResidentBytes = max(total.ResidentBytes, peak)
	return total
}

// measure notes the program's memory while it can still be asked for.
func (n *Node) measure() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notePeak()
}

// notePeak is measure; the caller holds mu.
func (n *Node) notePeak() {
	if n.run == nil || !n.run.running() {
		return
	}
	if bytes, err := highWater(n.run.cmd.Process.Pid); err == nil {
		n.peak = max(n.peak, bytes)
	}
}

func (n *Node) current() *process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.run
}

// adminURL returns the address of a path on the admin port.
func (n *Node) adminURL(path string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.run == nil || !n.run.running():
		return "", fmt.Errorf("ask %s: %w", n.Name, ErrNotRunning)
	case n.paused:
		return "", fmt.Errorf("ask %s: it is paused", n.Name)
	case n.admin == "":
		return "", fmt.Errorf("ask %s: its admin port is not open yet", n.Name)
	}
	return "http://" + n.admin + path, nil
}
