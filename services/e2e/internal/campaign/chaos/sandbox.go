package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"

	"changerelay/services/e2e/internal/harness/cluster"
)

func topic(n cluster.Names) string        { return n.Topic }
func subscription(n cluster.Names) string { return n.Topic + "/Subscriptions/" + n.Subscription }

// sandboxFault asks the sandbox for one of its faults. format has a place for
// the path of the entity, unless that is nil.
func sandboxFault(format string, entity func(cluster.Names) string) func(context.Context, *campaign, *rand.Rand) (string, func(context.Context) error, error) {
	return func(ctx context.Context, c *campaign, _ *rand.Rand) (string, func(context.Context) error, error) {
		body := format
		if entity != nil {
			body = fmt.Sprintf(format, entity(c.cluster.Names()))
		}
		var started struct {
			ID       int `json:"id"`
			Affected int `json:"affected"`
		}
		if err := c.sandbox(ctx, http.MethodPost, "/faults", body, &started); err != nil {
			return "", nil, err
		}
		var kind struct{ Kind, Path string }
		if err := json.Unmarshal([]byte(body), &kind); err != nil {
			return "", nil, err
		}
		what := strings.TrimSpace(fmt.Sprintf("%s %s (%d affected)", kind.Kind, kind.Path, started.Affected))
		if started.ID == 0 {
			if started.Affected == 0 {
				return "", nil, errNobody
			}
			return what, nil, nil
		}
		return what, func(ctx context.Context) error {
			// Where the servers were killed meanwhile, the fault went with them.
			_ = c.sandbox(ctx, http.MethodDelete, fmt.Sprintf("/faults/%d", started.ID), "", nil)
			return nil
		}, nil
	}
}

// sandbox calls the sandbox's own HTTP API.
func (c *campaign) sandbox(ctx context.Context, method, path, body string, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, c.cluster.Endpoints().SandboxStatusURL+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %w", errNobody, err) // the servers are suffering another fault
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%w: %w", errNobody, err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}
