package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"changerelay/services/e2e/internal/harness/poll"
)

// PublisherStatus is what a publisher says of itself on /status.
type PublisherStatus struct {
	Instance    string `json:"instance"`
	Incarnation string `json:"incarnation"`
	Role        string `json:"role"`
	// Term is, where the stream is split, the highest of the partitions it leads.
	Term           int64     `json:"term"`
	Leader         string    `json:"leader"`
	LeaseExpiresAt time.Time `json:"lease_expires_at"`
	Position       string    `json:"position"`
	Read           int64     `json:"read"`
	Sent           int64     `json:"sent"`
	Parked         int64     `json:"parked"`
	InFlight       int64     `json:"in_flight"`
	Retries        int64     `json:"retries"`
	LagSeconds     *float64  `json:"lag_seconds"`
	LastError      string    `json:"last_error"`
	OutageClass    string    `json:"outage_class"`
	State          string    `json:"state"`
	// Copy is the copy under way; nil while there is none.
	Copy *CopyStatus `json:"copy"`
	// Streams are the partitions, where the stream is split.
	Streams []PublisherStatus `json:"streams"`
}

// CopyStatus is how far a publisher's copy of the source has come.
type CopyStatus struct {
	Copied int64 `json:"copied"`
	Total  int64 `json:"total"`
}

// Publishing counts the partitions that the publisher says it publishes.
func (s PublisherStatus) Publishing() int {
	publishing := 0
	for i := range s.Streams {
		if s.Streams[i].State == "publishing" {
			publishing++
		}
	}
	return publishing
}

// Leads says whether the publisher says that it leads.
func (s PublisherStatus) Leads() bool { return s.Role == "leader" }

// ProjectorStatus is what a projector says of itself on /status.
type ProjectorStatus struct {
	Instance     string   `json:"instance"`
	Sessions     int64    `json:"sessions"`
	Received     int64    `json:"received"`
	Applied      int64    `json:"applied"`
	Repeated     int64    `json:"repeated"`
	Parked       int64    `json:"parked"`
	DeadLettered int64    `json:"dead_lettered"`
	Completed    int64    `json:"completed"`
	LagSeconds   *float64 `json:"lag_seconds"`
	LastError    string   `json:"last_error"`
	State        string   `json:"state"`
}

// PublisherStatus asks the node, which must be a publisher.
func (n *Node) PublisherStatus(ctx context.Context) (PublisherStatus, error) {
	var s PublisherStatus
	err := n.status(ctx, &s)
	for i := range s.Streams {
		if s.Streams[i].Leads() {
			s.Term = max(s.Term, s.Streams[i].Term)
		}
	}
	return s, err
}

// ProjectorStatus asks the node, which must be a projector.
func (n *Node) ProjectorStatus(ctx context.Context) (ProjectorStatus, error) {
	var s ProjectorStatus
	err := n.status(ctx, &s)
	return s, err
}

// AwaitUp waits until the node, a publisher or a projector, answers.
func (n *Node) AwaitUp(ctx context.Context) error {
	return poll.Until(ctx, n.Name+" to be up", func(ctx context.Context) (bool, string) {
		err := n.status(ctx, &struct{}{})
		return err == nil, fmt.Sprint(err)
	})
}

func (n *Node) status(ctx context.Context, into any) error {
	code, body, err := n.Get(ctx, "/status")
	if err != nil {
		return err
	}
	if code != http.StatusOK {
		return fmt.Errorf("ask %s for its status: it answered %d", n.Name, code)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("ask %s for its status: %w", n.Name, err)
	}
	return nil
}

// Get reads a path of the node's admin port.
func (n *Node) Get(ctx context.Context, path string) (code int, body []byte, err error) {
	url, err := n.adminURL(path)
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, nil, fmt.Errorf("ask %s: %w", n.Name, err)
	}
	resp, err := n.client.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("ask %s: %w", n.Name, err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, fmt.Errorf("ask %s: %w", n.Name, err)
	}
	return resp.StatusCode, body, nil
}
