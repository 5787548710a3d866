package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Place is where a run takes its programs from, and keeps its logs.
type Place struct {
	Root     string // of the repository
	Dir      string
	Binaries Binaries
}

// Prepare makes the directory of a run, named for its kind and time below .run
// unless dir says where, and builds the binaries unless they are in bin.
func Prepare(ctx context.Context, kind, dir, bin string) (Place, error) {
	root, err := Root()
	if err != nil {
		return Place{}, err
	}
	p := Place{Root: root, Dir: dir}
	if p.Dir == "" {
		p.Dir = filepath.Join(root, ".run", kind+"-"+time.Now().Format("20060102-150405"))
	}
	if err := os.MkdirAll(p.Dir, 0o755); err != nil {
		return Place{}, fmt.Errorf("make directory of the run: %w", err)
	}
	if bin != "" {
		p.Binaries, err = BinariesIn(bin)
	} else {
		p.Binaries, err = Build(ctx, root, filepath.Join(root, ".run", "bin"), "")
	}
	return p, err
}
