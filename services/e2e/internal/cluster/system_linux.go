package cluster

import "syscall"

// processAttributes puts a child into a process group of its own, and has the
// kernel kill it when we die without having been able to.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// residentUnit is the unit of Rusage.Maxrss in bytes.
const residentUnit = 1 << 10
