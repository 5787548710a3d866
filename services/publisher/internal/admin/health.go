package admin

import (
	"context"
	"fmt"
	"net"
	"net/http"
)

// CheckHealth asks the process whose admin port is at addr, as in ADMIN_ADDR,
// whether it is live. A container's health check runs it beside the process, in
// an image that holds no other program to ask with.
func CheckHealth(ctx context.Context, addr string) error {
	url := "http://" + nearby(addr) + "/live"
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

// nearby is where a process on the same host reaches a listener: one on all
// addresses at the loopback one.
func nearby(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr // the request says what is wrong with it
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}
