package mongoserver

import (
	"context"
	"strconv"
	"strings"

	"changerelay/services/sandbox/internal/mongowire"
)

func buildInfo(_ context.Context, _ *call, r *reply) error {
	r.text("version", Version)
	r.text("gitVersion", "0000000000000000000000000000000000000000")
	r.strings("modules", nil)
	r.text("allocator", "go")
	r.text("javascriptEngine", "none")
	r.text("sysInfo", "deprecated")
	r.openArray("versionArray")
	for i, part := range append(strings.Split(Version, "."), "0") {
		n, _ := strconv.Atoi(part)
		r.int32(arrayKey(i), int32(n))
	}
	r.close()
	r.int32("bits", 64)
	r.boolean("debug", false)
	r.int32("maxBsonObjectSize", mongowire.MaxDocumentBytes)
	r.strings("storageEngines", []string{"sandbox"})
	return nil
}
