package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// changeWorld puts the servers into another of the sandbox's worlds, and back.
func changeWorld(ctx context.Context, c *campaign, rng *rand.Rand) (string, func(context.Context) error, error) {
	release, free := c.take("world")
	if !free {
		return "", nil, errNobody
	}
	var before struct {
		World json.RawMessage
		Names []string // the first is no world at all
	}
	if err := c.sandbox(ctx, http.MethodGet, "/world", "", &before); err != nil {
		release()
		return "", nil, err
	}
	what, body := drawWorld(before.Names[1:], rng)
	if err := c.sandbox(ctx, http.MethodPut, "/world", body, nil); err != nil {
		release()
		return "", nil, err
	}
	return what, func(ctx context.Context) error {
		defer release()
		// Servers that were killed meanwhile have come back in the world before.
		_ = c.sandbox(ctx, http.MethodPut, "/world", string(before.World), nil)
		return nil
	}, nil
}

// longestLag is the longest lag of a member that is drawn. From about half of it on no
// lease of a campaign can be kept.
const longestLag = 3 * time.Second

// drawWorld draws one of the named worlds; in some a majority lags behind.
func drawWorld(names []string, rng *rand.Rand) (what, body string) {
	name := names[rng.IntN(len(names))]
	if rng.IntN(3) > 0 {
		return fmt.Sprintf("world %s", name), fmt.Sprintf(`{"base":%q}`, name)
	}
	lag := 200*time.Millisecond + time.Duration(rng.Int64N(int64(longestLag-200*time.Millisecond))).Round(100*time.Millisecond)
	return fmt.Sprintf("world %s, a member lags by %s", name, lag), fmt.Sprintf(`{"base":%q,"mongodb":{"lag":%q}}`, name, lag)
}
