package driversuite

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// module is the driver whose tests were recorded.
const module = "go.mongodb.org/mongo-driver@v1.17.10"

// packages are the driver's test packages, by the names in the recording.
var packages = map[string]string{
	"integration": "mongo/integration",
	"unified":     "mongo/integration/unified",
}

// binary is a compiled test package and the directory it has to run in.
type binary struct{ path, dir string }

// build downloads the driver and compiles its test packages into a directory.
// The module cache is only read: its own go.mod and go.sum name what the tests
// need.
func build(ctx context.Context, into string) (map[string]binary, error) {
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	download.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	download.Dir = into
	out, err := download.Output()
	var found struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &found); jsonErr != nil || found.Error != "" || err != nil {
		return nil, fmt.Errorf("download %s: %s%w", module, found.Error, err)
	}
	binaries := map[string]binary{}
	for name, path := range packages {
		b := binary{path: filepath.Join(into, name+".test"), dir: filepath.Join(found.Dir, path)}
		compile := exec.CommandContext(ctx, "go", "test", "-c", "-o", b.path, ".")
		compile.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly -buildvcs=false")
		compile.Dir = b.dir
		if out, err := compile.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("compile %s of the driver: %w\n%s", path, err, out)
		}
		binaries[name] = b
	}
	return binaries, nil
}
