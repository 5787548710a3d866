// Command sandbox runs stand-ins for MongoDB and Azure Service Bus.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/rs/zerolog"

	"changerelay/services/sandbox"
)

// Exit codes.
const (
	stopped = iota
	failed
	badConfiguration
)

// version is set by the linker.
var version = "devel"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	command := ""
	if len(args) > 0 && (args[0] == "health" || args[0] == "salvage") {
		command, args = args[0], args[1:]
	}
	settings, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return stopped
	case err != nil:
		fmt.Fprintln(stderr, "sandbox:", err)
		return badConfiguration
	case settings.version:
		fmt.Fprintln(stdout, "sandbox", version)
		return stopped
	case command == "health":
		return checkHealth(ctx, settings.config.HTTPAddress, stderr)
	case command == "salvage":
		return salvage(settings.config.DataDir, stdout, stderr)
	}
	return serve(ctx, settings, stdout, stderr)
}

// isConfiguration tells what its user can put right from what went wrong.
func isConfiguration(err error) bool {
	for _, target := range []error{sandbox.ErrEntities, sandbox.ErrAccounts, sandbox.ErrVersion, sandbox.ErrKey, sandbox.ErrWorld, os.ErrNotExist} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

func serve(ctx context.Context, settings settings, stdout, stderr io.Writer) int {
	defer runtime.KeepAlive(paceCollector())
	log := zerolog.New(stderr).With().Timestamp().Str("service", "sandbox").Logger().Level(settings.level)
	s, err := settings.build(log) //nolint:contextcheck // building has no context: what it runs under one that is over is only closed
	if err != nil {
		log.Error().Err(err).Msg("sandbox not started")
		if isConfiguration(err) {
			return badConfiguration
		}
		return failed
	}
	if err := announce(stdout, s); err != nil {
		log.Error().Err(err).Msg("sandbox not started, nobody reads its addresses")
		return failed
	}
	if err := s.Run(ctx); err != nil {
		log.Error().Err(err).Msg("sandbox failed")
		return failed
	}
	log.Info().Msg("sandbox stopped")
	return stopped
}

// announce prints the addresses in use as shell assignments.
func announce(out io.Writer, s *sandbox.Sandbox) error {
	for _, line := range []struct{ name, value string }{
		{"MONGODB_URI", s.MongoURI()},
		{"SERVICEBUS_CONNECTION_STRING", s.ServiceBusConnectionString()},
		{"SERVICEBUS_MANAGEMENT_URL", s.ManagementURL()},
		{"SANDBOX_URL", s.URL()},
	} {
		if _, err := fmt.Fprintf(out, "%s='%s'\n", line.name, line.value); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(out, "ready")
	return err
}
