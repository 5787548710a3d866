package mutation

import (
	"errors"
	"fmt"
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

// cut returns the source without the guard.
func (g Guard) cut(source string) (string, error) {
	switch strings.Count(source, g.Cut) {
	case 0:
		return "", fmt.Errorf("%s no longer contains %q", g.File, g.Cut)
	case 1:
		return strings.Replace(source, g.Cut, g.With, 1), nil
	}
	return "", fmt.Errorf("%s contains %q more than once", g.File, g.Cut)
}

// errGreen is a guard that nothing stands for.
var errGreen = errors.New("no test fails without it")
