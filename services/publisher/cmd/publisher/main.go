// Command publisher sends the changes of a MongoDB events collection to an
// Azure Service Bus topic. Run it with --help for its commands and settings.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
)

// version is set by the linker.
var version = "devel"

func main() {
	ctx, restore := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// After the first signal the default is back, so that a second one kills.
	context.AfterFunc(ctx, restore)
	os.Exit(command.Program(version, config.Load).Run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
