package cluster

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes puts a child into a process group of its own, and has the
// kernel kill it when we die without having been able to.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// residentUnit is the unit of Rusage.Maxrss in bytes.
const residentUnit = 1 << 10

// limitFileSize lowers the limit that a process obeys, and leaves the one that it
// could raise it to.
func limitFileSize(pid int, bytes uint64) error {
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &limit); err != nil {
		return err
	}
	limit.Cur = min(bytes, limit.Max)
	return unix.Prlimit(pid, unix.RLIMIT_FSIZE, &limit, nil)
}
