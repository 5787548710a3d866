package admin

import (
	"context"
	"strconv"
	"strings"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/serverversion"
)

func buildInfo(_ context.Context, c *command.Call, r *command.Reply) error {
	version := c.Server.Version.String()
	r.Text("version", version)
	r.Text("gitVersion", serverversion.GitCommit)
	r.Strings("modules", nil)
	r.Text("allocator", "go")
	r.Text("javascriptEngine", "mozjs")
	r.Text("sysInfo", "deprecated")
	r.OpenArray("versionArray")
	for i, part := range append(strings.Split(version, "."), "0") {
		n, _ := strconv.Atoi(part)
		r.Int32(bsonkit.ArrayKey(i), int32(n))
	}
	r.Close()
	r.Int32("bits", 64)
	r.Boolean("debug", false)
	r.Int32("maxBsonObjectSize", bsonkit.MaxDocument)
	r.Strings("storageEngines", []string{"sandbox"})
	return nil
}
