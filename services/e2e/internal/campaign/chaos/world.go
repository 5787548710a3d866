package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
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
	name := before.Names[1+rng.IntN(len(before.Names)-1)]
	if err := c.sandbox(ctx, http.MethodPut, "/world/"+name, "", nil); err != nil {
		release()
		return "", nil, err
	}
	return fmt.Sprintf("world %s", name), func(ctx context.Context) error {
		defer release()
		// Servers that were killed meanwhile have come back in the world before.
		_ = c.sandbox(ctx, http.MethodPut, "/world", string(before.World), nil)
		return nil
	}, nil
}
