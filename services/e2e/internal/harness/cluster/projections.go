package cluster

import (
	"path/filepath"
	"strings"
)

// Projections names declarations of the repository at root, such as orders and
// shadow, for Config.Projections.
func Projections(root string, names ...string) string {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = filepath.Join(root, "services", "e2e", name+".yaml")
	}
	return strings.Join(paths, ",")
}
