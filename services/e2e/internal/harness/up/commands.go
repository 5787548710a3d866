package up

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"changerelay/services/e2e/internal/harness/cluster"
)

// commands writes a script for each service's command line, with the settings that the
// running ones have: what a page names can be run as it is.
func commands(c *cluster.Cluster, dir string) error {
	for _, service := range []*cluster.Node{c.Publishers[0], c.Projectors[0]} {
		env := map[string]string{"SERVICEBUS_MANAGEMENT_URL": c.Endpoints().ManagementURL}
		maps.Copy(env, service.Settings())
		// Run without a command it is one more replica, and not the one that runs.
		delete(env, "INSTANCE_ID")
		script := []string{"#!/bin/sh"}
		for _, name := range slices.Sorted(maps.Keys(env)) {
			script = append(script, "export "+name+"="+quoted(env[name]))
		}
		script = append(script, "exec "+quoted(service.Binary())+` "$@"`, "")
		path := filepath.Join(dir, service.Program())
		if err := os.WriteFile(path, []byte(strings.Join(script, "\n")), 0o700); err != nil { //nolint:gosec // it is to be run by its owner
			return fmt.Errorf("write the command line of %s: %w", service.Program(), err)
		}
	}
	return nil
}

// quoted is a text as a shell takes it for one word.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// elsewhere are settings that the services' help does not list, as others read them.
var elsewhere = []string{"OTEL_", "AZURE_", "GOMEMLIMIT", "GOGC", "GODEBUG", "GOMAXPROCS", "SSL_CERT_"}

// known refuses settings that a service does not have. The services themselves refuse
// those alone that are near to one of theirs: an environment has much that is not for
// them, and a flag has not.
func known(ctx context.Context, flag, binary string, given settings) error {
	if len(given) == 0 {
		return nil
	}
	help, err := cluster.Help(ctx, binary)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		other := slices.ContainsFunc(elsewhere, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if !other && !strings.Contains(help, "\n"+name+" ") {
			return fmt.Errorf("%s: %s is no setting: %s --help lists all", flag, name, binary)
		}
	}
	return nil
}
