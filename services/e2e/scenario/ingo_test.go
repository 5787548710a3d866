package scenario

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/poll"
)

// inGoBlock is the first block of a language under "In Go" in docs/projections.md.
func inGoBlock(t *testing.T, root, language string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "projections.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## In Go\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, block, found := strings.Cut(section, "\n```"+language+"\n")
	block, _, ended := strings.Cut(block, "```\n")
	if !found || !ended {
		t.Fatalf("docs/projections.md has no block of %s under In Go", language)
	}
	return block
}

// What docs/projections.md says leads from nothing to a running projector of one's own,
// whose code is that of the example.
func TestInGo_TheDocumentationLeadsToARunningProjector(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	code := inGoBlock(t, root, "go")
	example, err := os.ReadFile(filepath.Join(root, "services", "projector", "example", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if _, body, _ := strings.Cut(string(example), "\npackage main\n"); strings.TrimPrefix(code, "package main\n") != body {
		t.Error("the code in docs/projections.md is not that of services/projector/example/main.go")
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "stock"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "stock", "main.go"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	commands, setupAndRun, found := strings.Cut(inGoBlock(t, root, "sh"), "./projector setup\n")
	if !found || setupAndRun != "./projector\n" {
		t.Fatalf("the commands end with %q, want the setup, and the start of the projector", setupAndRun)
	}
	shell := exec.CommandContext(t.Context(), "bash", "-eu", "-c", commands)
	shell.Dir, shell.Env = dir, append(os.Environ(), "RELAY="+root, "GOWORK=off")
	output, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, output)
	}
	if n := strings.Count(string(output), `"collection":"stock_v1"`); n != 2 {
		t.Errorf("try: got %s, want two updates", output)
	}
	runStock(t, filepath.Join(dir, "stock", "projector"))
}

// runStock runs a relay whose projectors are a program, and has it apply a move of stock.
func runStock(t *testing.T, program string) {
	t.Helper()
	c := cluster.New(configure(t, func(cfg *cluster.Config) {
		cfg.Publishers, cfg.Projectors, cfg.Projections = 1, 1, ""
		cfg.Binaries.Projector = program
	}))
	closeAtEnd(t, c)
	ctx := within(t)
	if err := c.StartServers(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.StartServices(); err != nil {
		t.Fatal(err)
	}
	if output, err := c.Projectors[0].Command(ctx, "setup"); err != nil || !strings.Contains(output, `"ready":true`) {
		t.Fatalf("setup: got %s and %v", output, err)
	}
	if _, _, err := c.AwaitLeader(ctx, 0); err != nil {
		t.Fatal(err)
	}
	client, err := mongo.Connect(options.Client().ApplyURI(c.Endpoints().MongoURI))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(ctx)) })
	_, err = client.Database(c.Names().SourceDatabase).Collection(c.Names().SourceCollection).InsertOne(ctx, bson.D{
		{Key: "aggregateId", Value: "tea"},
		{Key: "version", Value: int64(1)},
		{Key: "type", Value: "StockMoved"},
		{Key: "time", Value: time.Now()},
		{Key: "data", Value: bson.D{{Key: "article", Value: "tea"}, {Key: "from", Value: "harbour"}, {Key: "to", Value: "shop"}, {Key: "count", Value: int64(3)}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	view := client.Database(c.Names().ReadModelDatabase).Collection("stock")
	if err := poll.Until(ctx, "the stock", func(context.Context) (bool, string) {
		var shop struct{ Count int64 }
		err := view.FindOne(ctx, bson.D{{Key: "_id", Value: "tea@shop"}}).Decode(&shop)
		return err == nil && shop.Count == 3, c.Projectors[0].Log()
	}); err != nil {
		t.Error(err)
	}
}
