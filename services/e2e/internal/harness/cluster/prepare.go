package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Place is where a run takes its programs from, and keeps its logs.
type Place struct {
	Root     string // of the repository
	Dir      string
	Binaries Binaries
}

// Wish is what a run asks for. Its zero value builds the binaries and makes a
// directory below .run.
type Wish struct {
	// Dir takes logs and data in place of one under .run of the repository.
	Dir string
	// Bin is a directory of built binaries.
	Bin string
	// Version is stamped into the binaries; empty leaves theirs.
	Version string
}

// Prepare makes the directory of a run, named for its kind and time unless the
// wish says where, and builds the binaries unless they are there.
func Prepare(ctx context.Context, kind string, w Wish) (Place, error) {
	root, err := Root()
	if err != nil {
		return Place{}, err
	}
	p := Place{Root: root, Dir: w.Dir}
	if p.Dir == "" {
		if p.Dir, err = RunDir(root, kind); err != nil {
			return Place{}, err
		}
	}
	// What is printed, and written into scripts, holds in other directories, too.
	for _, path := range []*string{&p.Dir, &w.Bin} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return Place{}, fmt.Errorf("find directory: %w", err)
		}
	}
	if err := os.MkdirAll(p.Dir, 0o755); err != nil {
		return Place{}, fmt.Errorf("make directory of the run: %w", err)
	}
	if w.Bin != "" {
		p.Binaries, err = BinariesIn(w.Bin)
	} else {
		p.Binaries, err = Build(ctx, root, filepath.Join(root, ".run", "bin"), w.Version)
	}
	return p, err
}

// RunDir makes a directory for one run alone under .run of the repository at root, named
// for its kind and time.
func RunDir(root, kind string) (string, error) {
	dir, err := newDir(filepath.Join(root, ".run"), kind+"-"+time.Now().Format("20060102-150405"))
	if err != nil {
		return "", fmt.Errorf("make directory of the run: %w", err)
	}
	return dir, nil
}

// RunName names what a run that began at that time has on servers that others use, too. One
// that began in the same second has another name.
func RunName(began time.Time) string {
	return began.Format("20060102_150405_") + strings.ToLower(rand.Text()[:6])
}

// newDir makes a directory that was not there before: of that name, or with a number
// behind it where another run has begun in the same second.
func newDir(parent, name string) (string, error) {
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	dir := filepath.Join(parent, name)
	for n := 2; ; n++ {
		if err := os.Mkdir(dir, 0o755); !errors.Is(err, fs.ErrExist) {
			return dir, err
		}
		dir = filepath.Join(parent, fmt.Sprintf("%s-%d", name, n))
	}
}
