package cluster

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Usage is what the runs of a node took of the machine.
type Usage struct {
	// CPU is the processor time of all its runs, user and system. Of a run that has
	// not ended it is known on Linux alone.
	CPU time.Duration
	// ResidentBytes is the highest resident memory that any of its runs had. Of a
	// run that has not ended it is known on Linux alone.
	ResidentBytes int64
}

// cpu returns the processor time of a process.
func (p *process) cpu() time.Duration {
	if p.running() {
		return cpuSoFar(p.cmd.Process.Pid)
	}
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// cpuSoFar returns the processor time of a running process from /proc, 0 where
// it is not there.
// See proc_pid_stat(5): fields 14 and 15, counted from the 3rd behind the last
// parenthesis, in ticks of which Linux shows 100 a second.
func cpuSoFar(pid int) time.Duration {
	const tick = time.Second / 100
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if err != nil || len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(string(fields[11]), 10, 64)
	system, _ := strconv.ParseInt(string(fields[12]), 10, 64)
	return time.Duration(user+system) * tick
}

// maxResident returns the highest resident memory of an ended process as the
// system accounts for it. It is an upper bound: on Linux a child starts with the
// mark of the process that started it, so highWater is read first where it can be.
func (p *process) maxResident() int64 {
	usage, ok := p.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return int64(usage.Maxrss) * residentUnit
}

// Self is what this process took so far.
func Self() Usage {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return Usage{}
	}
	return Usage{
		CPU:           time.Duration(usage.Utime.Nano() + usage.Stime.Nano()),
		ResidentBytes: int64(usage.Maxrss) * residentUnit,
	}
}

// highWater returns the highest resident memory of a running process so far,
// from /proc.
func highWater(pid int) (int64, error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, fmt.Errorf("read memory of process %d: %w", pid, err)
	}
	for line := range bytes.Lines(status) {
		value, found := bytes.CutPrefix(line, []byte("VmHWM:"))
		if !found {
			continue
		}
		kib, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(value), []byte("kB")))), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read memory of process %d: %w", pid, err)
		}
		return kib << 10, nil
	}
	return 0, fmt.Errorf("read memory of process %d: no VmHWM line", pid)
}
