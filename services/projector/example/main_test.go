package main

import (
	"os/exec"
	"strings"
	"testing"
)

func TestStock_MovesArticlesFromPlaceToPlace(t *testing.T) {
	t.Parallel()
	got, err := stock.Try(`{"type": "StockMoved", "data": {"article": "tea", "from": "harbour", "to": "shop", "count": 3}}`)
	const want = `tea@harbour: {"$inc":{"count":-3}}
tea@shop: {"$inc":{"count":3}}
`
	if err != nil || got != want {
		t.Errorf("got %s and %v, want %s", got, err, want)
	}
}

func TestStock_HaltsOnAMoveOfNothing(t *testing.T) {
	t.Parallel()
	for name, event := range map[string]string{
		"of none":      `{"type": "StockMoved", "data": {"article": "tea", "from": "harbour", "to": "shop", "count": 0}}`,
		"of nothing":   `{"type": "StockMoved", "data": {"from": "harbour", "to": "shop", "count": 1}}`,
		"without data": `{"type": "StockMoved", "operation": "delete"}`,
	} {
		if got, err := stock.Try(event); err == nil {
			t.Errorf("%s: got %s, want an error", name, got)
		}
	}
	if got, err := stock.Try(`{"type": "StockCounted", "data": {}}`); err != nil || got != "" {
		t.Errorf("of an event that it does not follow: got %s and %v, want nothing", got, err)
	}
}

// What one ships must not hold what only tests need.
func TestExample_TheBinaryHoldsNoSandboxAndNoTestCode(t *testing.T) {
	t.Parallel()
	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("list dependencies: %v", err)
	}
	dependencies := strings.Fields(string(output))
	for _, dependency := range dependencies {
		if strings.HasPrefix(dependency, "changerelay/") && (strings.Contains(dependency, "sandbox") || strings.Contains(dependency, "e2e") ||
			strings.Contains(dependency, "/publisher") || strings.HasSuffix(dependency, "test")) || dependency == "testing" {
			t.Errorf("the binary depends on %s", dependency)
		}
	}
	if len(dependencies) < 100 {
		t.Errorf("got %d dependencies, want those of a projector", len(dependencies))
	}
}
