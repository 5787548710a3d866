package cluster

import (
	"context"
	"os/exec"
	"syscall"
)

// Group is exec.CommandContext of a program that starts others, as the go tool does, in a
// process group of its own: with ctx they are all killed. Where their output is gathered,
// Wait comes back once none of them holds it open any more, unless WaitDelay is set.
func Group(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.SysProcAttr = processAttributes()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}
