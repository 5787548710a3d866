// Command projector applies the changes of a Service Bus subscription to read
// models in MongoDB. Run it with --help for its commands and settings.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"changerelay/services/projector/internal/command"
)

// version is set by the linker.
var version = "devel"

func main() {
	ctx, restore := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// After the first signal the default is back, so that a second one kills.
	context.AfterFunc(ctx, restore)
	os.Exit(command.Program(version).Run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
