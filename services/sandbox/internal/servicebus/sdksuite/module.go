package sdksuite

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// The module whose tests are run, in the version that this repository uses.
const (
	module  = "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	version = "v1.11.0"
)

// packages of the module, as its import paths end.
var packages = []string{".", "./admin"}

// checkout copies the module's source into dir: the module cache is read-only
// for overlays too.
func checkout(ctx context.Context, dir string) error {
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", module+"@"+version)
	download.Dir, download.Env = dir, append(os.Environ(), "GOWORK=off")
	out, err := download.Output()
	if err != nil {
		return fmt.Errorf("download %s: %w: %s", module, err, out)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(out, &found); err != nil {
		return fmt.Errorf("download %s: %w", module, err)
	}
	return os.CopyFS(filepath.Join(dir, "module"), os.DirFS(found.Dir))
}

// The line of the SDK's test helper that asks for credentials, and ours.
const (
	helper        = "internal/test/test_helpers.go"
	theirs        = "tokenCred, err := credential.New(nil)"
	ours          = "tokenCred, err := azcore.TokenCredential(&credential.Fake{}), error(nil)"
	overlayFile   = "overlay.json"
	overlayHelper = "test_helpers.go"
)

// overlay writes the file for "go test -overlay" and returns its path.
func overlay(dir string) (string, error) {
	original := filepath.Join(dir, "module", helper)
	text, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	if n := bytes.Count(text, []byte(theirs)); n != 1 {
		return "", fmt.Errorf("the SDK's %s asks for credentials in %d places, want 1", helper, n)
	}
	replacement := filepath.Join(dir, overlayHelper)
	if err := os.WriteFile(replacement, bytes.Replace(text, []byte(theirs), []byte(ours), 1), 0o600); err != nil {
		return "", err
	}
	mapping, err := json.Marshal(map[string]map[string]string{"Replace": {original: replacement}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, overlayFile)
	return path, os.WriteFile(path, mapping, 0o600)
}
