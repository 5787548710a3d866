// Package clock builds programs whose wall clock can be set wrong.
//
// Go programs ask the kernel for the time without any library between, so nothing
// can be slipped in when they start. They are built instead with another package
// time: its Now adds what the environment says. Monotonic time, and with it every
// timer, is left alone, as when an administrator or a time server sets a clock.
package clock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Environment variables that a program built with an Overlay reads once, in
// whole seconds.
const (
	shift = "CLOCK_SHIFT" // how far ahead its clock is
	jump  = "CLOCK_JUMP"  // how far ahead it is later on
	after = "CLOCK_AFTER" // when that begins, counted from its start
)

// Wrong is a clock that is set wrong, and set again while the program runs. Times
// are whole seconds.
type Wrong struct {
	Ahead time.Duration // negative: behind
	Then  time.Duration // how far ahead it is from After on
	After time.Duration // since the start of the program
}

// Environment are the settings for a program.
func (w Wrong) Environment() []string {
	seconds := func(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }
	return []string{shift + "=" + seconds(w.Ahead), jump + "=" + seconds(w.Then), after + "=" + seconds(w.After)}
}

// asked is the line of time.Now that asks for the time.
const asked = "sec, nsec, mono := runtimeNow()"

const shifted = `package time

import "syscall"

var wallShift, wallJump, wallAfter = wallSetting("` + shift + `"), wallSetting("` + jump + `"), wallSetting("` + after + `")

func wallSetting(name string) int64 {
	text, _ := syscall.Getenv(name)
	n, _ := atoi(text)
	return int64(n)
}

func shiftedNow() (sec int64, nsec int32, mono int64) {
	sec, nsec, mono = runtimeNow()
	if mono-startNano < wallAfter*int64(Second) {
		return sec + wallShift, nsec, mono
	}
	return sec + wallJump, nsec, mono
}
`

// Overlay writes into dir what a build needs, and returns the file for the
// -overlay flag of go build.
func Overlay(ctx context.Context, dir string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find Go's own sources: %w", err)
	}
	at := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	original := filepath.Join(at, "time.go")
	text, err := os.ReadFile(original)
	if err != nil {
		return "", fmt.Errorf("find Go's own sources: %w", err)
	}
	if n := strings.Count(string(text), asked); n != 1 {
		return "", fmt.Errorf("set clocks wrong: %s has %d lines %q, want 1: this version of Go asks for the time in another way", original, n, asked)
	}
	changed, added, list := filepath.Join(dir, "time.go"), filepath.Join(dir, "shift.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed, filepath.Join(at, "shift.go"): added}})
	return list, errors.Join(err,
		os.MkdirAll(dir, 0o755),
		os.WriteFile(changed, []byte(strings.Replace(string(text), asked, strings.Replace(asked, "runtimeNow", "shiftedNow", 1), 1)), 0o644),
		os.WriteFile(added, []byte(shifted), 0o644),
		os.WriteFile(list, replace, 0o644),
	)
}
