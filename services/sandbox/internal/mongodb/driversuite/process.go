package driversuite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"changerelay/services/sandbox"
)

// unitDeadline ends a unit that hangs.
const unitDeadline = 4 * time.Minute

// runProcess runs a test binary against a sandbox of its own and returns what it
// printed. One that runs ahead has priority over what else the machine does, where the
// user may give it that.
func runProcess(ctx context.Context, b binary, arguments []string, ahead bool) (output []byte, err error) {
	s, err := sandbox.New(sandbox.Config{MongoVersion: "4.4", Log: zerolog.Nop()}) //nolint:contextcheck // building has no context: what it runs under one that is over is only closed
	if err != nil {
		return nil, fmt.Errorf("start a sandbox: %w", err)
	}
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(serving) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	ctx, cancel := context.WithTimeout(ctx, unitDeadline)
	defer cancel()
	command := append([]string{b.path}, arguments...)
	if nice, err := exec.LookPath("nice"); err == nil && ahead {
		command = append([]string{nice, "-n", "-15"}, command...)
	}
	cmd := exec.CommandContext(ctx, command[0], append(command[1:],
		"-test.v=test2json", "-test.parallel", "1", "-test.timeout", (unitDeadline-10*time.Second).String())...)
	cmd.Dir = b.dir
	// A test that makes 4 GB of garbage within ten seconds of its own spends most of them collecting it.
	cmd.Env = append(os.Environ(), "MONGODB_URI="+s.MongoURI(), "GOGC=1000", "GOMEMLIMIT=1GiB")
	output, err = cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); failed { // its tests say more
		err = nil
	}
	return output, err
}

// keepOutput writes what a unit has printed to a file.
func keepOutput(dir string, u unit, output []byte) error {
	name := strings.ReplaceAll(u.String(), "/", "_") + ".log"
	return os.WriteFile(filepath.Join(dir, name), output, 0o600)
}
