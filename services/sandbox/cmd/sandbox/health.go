package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// healthTimeout is how long a sandbox that is up may take to say so.
const healthTimeout = 3 * time.Second

// checkHealth asks the sandbox whose status page is at addr, beside us in a
// container, whether it is up, and returns the exit code.
func checkHealth(ctx context.Context, addr string, stderr io.Writer) int {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	if err := askHealth(ctx, addr); err != nil {
		fmt.Fprintln(stderr, "sandbox:", err)
		return failed
	}
	return stopped
}

func askHealth(ctx context.Context, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("read the address of the status page: %w", err)
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "localhost"
	}
	url := "http://" + net.JoinHostPort(host, port) + "/healthz"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("ask %s: it answered %s", url, resp.Status)
	}
	return nil
}
