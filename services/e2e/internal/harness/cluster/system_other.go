//go:build !linux

package cluster

import (
	"errors"
	"syscall"
)

// processAttributes puts a child into a process group of its own.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// residentUnit is the unit of Rusage.Maxrss in bytes.
const residentUnit = 1

func limitFileSize(int, uint64) error { return errors.ErrUnsupported }
