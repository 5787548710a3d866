package projector

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"changerelay/services/projector/internal/cli"
	"changerelay/services/projector/internal/command"
	"changerelay/services/projector/internal/config"
)

// Main is the main function of a projector with projections, those of the program: it
// does what the arguments of the process say, until SIGTERM or SIGINT, and exits. A second
// signal kills it.
func Main(projections ...Projection) {
	ctx, restore := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// After the first signal the default is back, so that a second one kills.
	context.AfterFunc(ctx, restore)
	os.Exit(Run(ctx, os.Args[1:], os.Stdout, os.Stderr, projections...))
}

// Run does what the arguments say, until ctx ends, and returns the exit status: 0 done or
// stopped as asked, 1 failed, refused or not found, 2 wrong arguments, settings or
// projections. It is Main for those who have a process of their own.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer, projections ...Projection) int {
	made, err := coded(projections)
	if err != nil {
		fmt.Fprintf(stderr, "projector: %s\n", err)
		return cli.Misused
	}
	program := command.Program(version()) //nolint:contextcheck // it gets the context when it is run
	return program.Run(config.BuiltWith(ctx, made), args, stdout, stderr)
}

// version is that of the program, as the go command has stamped it.
func version() string {
	if info, known := debug.ReadBuildInfo(); known && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}
