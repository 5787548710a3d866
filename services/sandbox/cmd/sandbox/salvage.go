package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"changerelay/services/sandbox"
)

// salvage makes a good directory of a damaged one, and says what is lost.
func salvage(dir string, stdout, stderr io.Writer) int {
	if dir == "" {
		fmt.Fprintln(stderr, "sandbox: salvage needs --data DIR")
		return badConfiguration
	}
	err := sandbox.Salvage(dir, stdout)
	if err == nil {
		return stopped
	}
	fmt.Fprintln(stderr, "sandbox:", err)
	if errors.Is(err, os.ErrNotExist) {
		return badConfiguration
	}
	return failed
}
