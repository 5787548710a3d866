package results

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// Machine is what everything ran on.
type Machine struct {
	System string `json:"system"`
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	// Memory is in bytes.
	Memory int64  `json:"memory"`
	Go     string `json:"go"`
	// Commit is the repository's; with + where files were changed since.
	Commit string `json:"commit"`
	// Load is the load average of a minute when the run began: how many others
	// wanted a core.
	Load float64 `json:"load"`
	// Servers are what MongoDB and Service Bus were.
	Servers string `json:"servers"`
}

// ThisMachine describes the machine and the repository at root.
func ThisMachine(ctx context.Context, root, servers string) Machine {
	m := Machine{
		System: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version(), Servers: servers,
		CPU: field("/proc/cpuinfo", "model name"), Memory: memory(), Commit: commit(ctx, root),
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		average, _, _ := strings.Cut(string(text), " ")
		m.Load, _ = strconv.ParseFloat(average, 64)
	}
	return m
}

// field reads a field of a file of /proc; empty where there is none.
func field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(text) {
		key, value, found := strings.Cut(string(line), ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// memory returns the machine's memory in bytes; 0 where it is not told.
func memory() int64 {
	kib, err := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}

// commit returns the repository's commit; empty outside one.
func commit(ctx context.Context, root string) string {
	git := func(args ...string) string {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	hash := git("rev-parse", "--short=12", "HEAD")
	if hash != "" && git("status", "--porcelain") != "" {
		hash += "+"
	}
	return hash
}
