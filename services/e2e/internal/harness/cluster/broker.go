package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// statusTimeout bounds a question to the sandbox.
const statusTimeout = 5 * time.Second

// Entity is a topic or a subscription, as the sandbox sees it. A real broker
// does not tell.
type Entity struct {
	Path       string `json:"path"` // of a subscription "topic/Subscriptions/name"
	Duplicates int64  `json:"duplicates"`
	Counts     struct {
		Active, DeadLetter, Scheduled, Deferred int64
	} `json:"counts"`
	SessionsLocked int `json:"sessions_locked"`
}

// Cursor is an open cursor of the sandbox's database.
type Cursor struct {
	Namespace    string `json:"namespace"`
	ChangeStream bool   `json:"change_stream"`
	Application  string `json:"application"` // of the client, as it calls itself
	AgeSeconds   int64  `json:"age_seconds"`
}

// SandboxStatus is what the sandbox says of itself.
type SandboxStatus struct {
	Entities []Entity
	Cursors  []Cursor
}

// Entity returns the entity with the path. That there is none is an error: an empty one
// would pass for one with nothing in it.
func (s SandboxStatus) Entity(path string) (Entity, error) {
	for _, e := range s.Entities {
		if e.Path == path {
			return e, nil
		}
	}
	return Entity{}, fmt.Errorf("the sandbox has no entity %q", path)
}

// SandboxStatus asks the sandbox. Servers that are no sandbox have no such page.
func (e Endpoints) SandboxStatus(ctx context.Context) (SandboxStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.SandboxStatusURL+"/status", http.NoBody)
	if err != nil {
		return SandboxStatus{}, fmt.Errorf("ask the sandbox for its status: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return SandboxStatus{}, fmt.Errorf("ask the sandbox for its status: %w", err)
	}
	defer response.Body.Close()
	var status struct {
		MongoDB struct {
			OpenCursors []Cursor `json:"open_cursors"`
		} `json:"mongodb"`
		ServiceBus struct {
			Namespace struct {
				Entities []Entity `json:"entities"`
			} `json:"namespace"`
		} `json:"service_bus"`
	}
	if err := json.NewDecoder(response.Body).Decode(&status); err != nil {
		return SandboxStatus{}, fmt.Errorf("ask the sandbox for its status: %w", err)
	}
	return SandboxStatus{Entities: status.ServiceBus.Namespace.Entities, Cursors: status.MongoDB.OpenCursors}, nil
}
