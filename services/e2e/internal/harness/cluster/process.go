package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// program says how a process is started.
type program struct {
	name   string
	binary string
	args   []string
	// env is the whole environment: nothing is taken over from ours.
	env []string
	// log is appended to with what the process writes.
	log string
	// stdout and stderr are shown every line; they may be nil.
	stdout, stderr func(line []byte)
}

// process is one run of a program.
type process struct {
	name    string
	cmd     *exec.Cmd
	started time.Time
	done    chan struct{}

	// Written before done is closed.
	ended time.Time
	err   error
}

// outputDelay bounds how long a dead process's output is waited for.
const outputDelay = 2 * time.Second

// start runs the program in a process group of its own, so that an interrupt at
// the terminal reaches only us and we decide in which order the parts end.
func start(p program) (*process, error) {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", p.name, err)
	}
	cmd := exec.Command(p.binary, p.args...)
	cmd.Env = p.env
	cmd.Stdout = io.MultiWriter(log, &lines{each: p.stdout})
	cmd.Stderr = io.MultiWriter(log, &lines{each: p.stderr})
	cmd.SysProcAttr = processAttributes()
	cmd.WaitDelay = outputDelay
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", p.name, err), log.Close())
	}
	run := &process{name: p.name, cmd: cmd, started: time.Now(), done: make(chan struct{})}
	// The goroutine ends with the process, and wait and kill see its end.
	go func() {
		defer close(run.done)
		err := cmd.Wait()
		run.ended = time.Now()
		run.err = errors.Join(exitError(err), log.Close())
	}()
	return run, nil
}

// exitError drops the error that only says how the process ended: exit tells that.
func exitError(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil
	}
	return err
}

// signal sends a signal; a process that has ended is no error.
func (p *process) signal(s syscall.Signal) error {
	err := p.cmd.Process.Signal(s)
	if err == nil || errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return fmt.Errorf("signal %s with %v: %w", p.name, s, err)
}

// wait blocks until the process has ended and returns its exit status, -1 where
// a signal ended it.
func (p *process) wait(ctx context.Context) (int, error) {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode(), p.err
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for %s to end: %w", p.name, context.Cause(ctx))
	}
}

// kill ends the process at once, stopped or not, and returns when it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// lines hands on what is written to it line by line.
type lines struct {
	each func(line []byte)

	mu   sync.Mutex
	rest []byte
}

// lineKept bounds a line without an end.
const lineKept = 1 << 20

func (l *lines) Write(p []byte) (int, error) {
	if l.each == nil {
		return len(p), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			break
		}
		l.each(line)
		l.rest = rest
	}
	if len(l.rest) > lineKept {
		l.rest = nil
	}
	return len(p), nil
}
