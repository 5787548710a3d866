package mutation

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"changerelay/services/e2e/internal/campaign/mutation/guard"
)

// Whole cuts those of guards of which the file does not say yet that a test goes red with
// the sources as they are, and adds each result to it.
func Whole(ctx context.Context, root, file string, guards []guard.Guard, atOnce int, out io.Writer) error {
	of, err := hashes(ctx, root, guards)
	if err != nil {
		return err
	}
	state, latest, err := open(file, os.O_CREATE)
	if err != nil {
		return err
	}
	defer state.Close()
	left := slices.DeleteFunc(slices.Clone(guards), func(g guard.Guard) bool {
		return latest[g.Name].Of == of[g.Name] && latest[g.Name].Problem == ""
	})
	fmt.Fprintf(out, "%d of these are known from %s to go red\n", len(guards)-len(left), file)
	return Run(ctx, root, left, atOnce, out, func(r Result) error {
		r.Of = of[r.Guard]
		line, err := json.Marshal(r)
		if err == nil {
			_, err = state.Write(append(line, '\n'))
		}
		return err
	})
}

// Known returns what the file of Whole says of guards with the sources as they are.
func Known(ctx context.Context, root, file string, guards []guard.Guard) ([]Result, error) {
	of, err := hashes(ctx, root, guards)
	if err != nil {
		return nil, err
	}
	state, latest, err := open(file, 0)
	if err != nil {
		return nil, err
	}
	defer state.Close()
	var known []Result
	for _, g := range guards {
		if r := latest[g.Name]; r.Of == of[g.Name] {
			known = append(known, r)
		}
	}
	return known, nil
}

// open opens the file of a whole run, and returns the latest result of each guard in it.
func open(file string, flags int) (*os.File, map[string]Result, error) {
	state, err := os.OpenFile(file, flags|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, nil, err
	}
	latest, err := results(state)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("read %s: %w", file, err), state.Close())
	}
	return state, latest, nil
}

// results are the latest of each guard. A line that a run did not come to write to its end
// is none; it ends the file that is read, so that the next begins a line of its own.
func results(state io.ReadWriter) (map[string]Result, error) {
	latest := make(map[string]Result)
	lines := bufio.NewReader(state)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if len(line) > 0 {
				_, err = state.Write([]byte("\n"))
				return latest, err
			}
			return latest, nil
		}
		if err != nil {
			return nil, err
		}
		var r Result
		if json.Unmarshal(line, &r) == nil {
			latest[r.Guard] = r
		}
	}
}

// hashes are of each guard by its name: of the cut, its tests, and all sources that these
// are built from. The sandbox, which some tests start, is not in them.
func hashes(ctx context.Context, root string, guards []guard.Guard) (map[string]string, error) {
	var packages []string
	for _, g := range guards {
		packages = append(packages, "./"+g.Package)
	}
	slices.Sort(packages)
	sources, err := sources(ctx, root, slices.Compact(packages))
	if err != nil {
		return nil, err
	}
	of := make(map[string]string)
	for _, g := range guards {
		text, err := json.Marshal(g)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(append(text, sources[filepath.Join(root, g.Package)]...))
		of[g.Name] = hex.EncodeToString(sum[:12])
	}
	return of, nil
}

// listed is a package as the go command lists it.
type listed struct {
	ImportPath, Dir, ForTest, Name string
	Standard                       bool
	Module                         *struct {
		Main          bool
		Path, Version string
	}
	GoFiles, EmbedFiles, TestEmbedFiles, XTestEmbedFiles, Deps []string
}

// sources hashes what the test binary of each package, by its directory, is built from.
func sources(ctx context.Context, root string, packages []string) (map[string][]byte, error) {
	const fields = "ImportPath,Dir,ForTest,Name,Standard,Module,GoFiles,EmbedFiles,TestEmbedFiles,XTestEmbedFiles,Deps"
	cmd := goCommand(ctx, os.TempDir(), append([]string{"list", "-test", "-deps", "-json=" + fields}, packages...)...)
	cmd.Dir = root
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list what the tests of guards are built from: %w", err)
	}
	byPath := make(map[string]listed)
	for lines := json.NewDecoder(strings.NewReader(string(text))); ; {
		var p listed
		if err := lines.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read what the tests of guards are built from: %w", err)
		}
		byPath[p.ImportPath] = p
	}
	sums := make(map[string][]byte)
	known := make(map[string]string)
	for _, p := range byPath {
		if p.Name != "main" || !strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		sum := sha256.New()
		for _, path := range slices.Sorted(slices.Values(p.Deps)) {
			if _, is := known[path]; !is {
				if known[path], err = byPath[path].source(); err != nil {
					return nil, err
				}
			}
			fmt.Fprintln(sum, path, known[path])
		}
		if err := data(sum, filepath.Join(p.Dir, "testdata")); err != nil {
			return nil, err
		}
		sums[p.Dir] = sum.Sum(nil)
	}
	return sums, nil
}

// source is a hash of a package's own files, or its module's version.
func (p listed) source() (string, error) {
	if p.Standard || p.Module == nil {
		return "", nil
	}
	if !p.Module.Main {
		return p.Module.Path + "@" + p.Module.Version, nil
	}
	sum := sha256.New()
	for _, file := range slices.Concat(p.GoFiles, p.EmbedFiles, p.TestEmbedFiles, p.XTestEmbedFiles) {
		text, err := os.ReadFile(filepath.Join(p.Dir, file))
		if err != nil {
			return "", err
		}
		fmt.Fprintln(sum, file, len(text))
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// data adds all files below a directory, which need not be there.
func data(sum io.Writer, dir string) error {
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		fmt.Fprintln(sum, path, len(text))
		_, _ = sum.Write(text)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
