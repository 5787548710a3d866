// Package guard is what a guard is: a place in the source, how to cut it, and the
// tests that are to notice.
package guard

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Guard is one guard, and how to cut it.
type Guard struct {
	Name string
	// File is its source file; Cut is the text in it that With stands for when
	// the guard is cut. Cut occurs once.
	File, Cut, With string
	// Package and Tests say which tests are to notice.
	Package string
	Tests   []string
}

// Without returns the source without the guard. It is an error where the place is
// gone, or is not the only one.
func (g Guard) Without(source string) (string, error) {
	switch strings.Count(source, g.Cut) {
	case 0:
		return "", fmt.Errorf("%s no longer contains %q", g.File, g.Cut)
	case 1:
		return strings.Replace(source, g.Cut, g.With, 1), nil
	}
	return "", fmt.Errorf("%s contains %q more than once", g.File, g.Cut)
}

// Overlay writes the cut source into dir, and the file that tells the compiler
// of it, which it returns.
func (g Guard) Overlay(root, dir string) (string, error) {
	path := filepath.Join(root, g.File)
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	without, err := g.Without(string(source))
	if err != nil {
		return "", err
	}
	instead := filepath.Join(dir, "cut.go")
	if err := os.WriteFile(instead, []byte(without), 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: instead}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}
