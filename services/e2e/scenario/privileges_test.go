package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/source"
)

// accounts are users and roles as docs/security.md lists them, in the form that
// the sandbox reads.
type accounts struct {
	Roles []*roleDeclared `json:"roles"`
	Users []userDeclared  `json:"users"`
}

type roleDeclared struct {
	Role       string      `json:"role"`
	Privileges []privilege `json:"privileges"`
}

type privilege struct {
	Resource map[string]string `json:"resource"`
	Actions  []string          `json:"actions"`
}

type userDeclared struct {
	User  string              `json:"user"`
	Pwd   string              `json:"pwd"`
	Roles []map[string]string `json:"roles"`
}

// documented reads the accounts out of docs/security.md.
func documented(t *testing.T) accounts {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```json\n")
	block, _, _ := strings.Cut(rest, "```")
	var a accounts
	if err := json.Unmarshal([]byte(block), &a); err != nil || len(a.Roles) != 3 || len(a.Users) != 2 {
		t.Fatalf("roles in docs/security.md: got %+v, %v, want three roles and two users", a, err)
	}
	return a
}

// without takes an action away from a role.
func (a accounts) without(t *testing.T, role, action string) accounts {
	t.Helper()
	taken := 0
	for _, r := range a.Roles {
		for i, p := range r.Privileges {
			if at := slices.Index(p.Actions, action); r.Role == role && at >= 0 {
				r.Privileges[i].Actions = slices.Delete(p.Actions, at, at+1)
				taken++
			}
		}
	}
	if taken != 1 {
		t.Fatalf("docs/security.md lists %s of %s %d times, want once", action, role, taken)
	}
	return a
}

// as is an address with a user's name and password in it.
func as(uri, user, password string) string {
	return strings.Replace(uri, "mongodb://", "mongodb://"+user+":"+password+"@", 1)
}

// guardedCluster starts a sandbox that asks for authentication on both sides, and
// lays out services that run as the users given, but for what edit changes; the
// test itself is root.
func guardedCluster(t *testing.T, a accounts, publishers, projectors int, edit ...func(*cluster.Config)) *cluster.Cluster {
	t.Helper()
	a.Users = append(a.Users, userDeclared{User: "root", Pwd: "root", Roles: []map[string]string{{"role": "root"}}})
	file, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	cfg := configure(t, nil)
	path := filepath.Join(cfg.Dir, "accounts.json")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.SandboxArgs = cluster.SandboxAnywhere("--auth", path, "--check-sas")
	servers := cluster.New(cfg)
	closeAtEnd(t, servers)
	if err := servers.StartSandbox(within(t)); err != nil {
		t.Fatal(err)
	}
	backend := servers.Endpoints()
	uri := backend.MongoURI
	backend.MongoURI = as(uri, "root", "root")
	cfg.SandboxArgs, cfg.Backend = nil, &backend
	cfg.Publishers, cfg.Projectors = publishers, projectors
	cfg.PublisherEnv = map[string]string{"MONGODB_URI": as(uri, "publisher", "secret")}
	cfg.ProjectorEnv = map[string]string{"READMODEL_MONGODB_URI": as(uri, "projector", "secret")}
	for _, f := range edit {
		f(&cfg)
	}
	services := cluster.New(cfg)
	if err := services.LayOut(); err != nil {
		t.Fatal(err)
	}
	services.Sandbox = servers.Sandbox
	closeAtEnd(t, services)
	return services
}

// refusals are the commands that the sandbox has refused, as "user command
// database.collection".
func refusals(sandbox *cluster.Node) []string {
	var found []string
	for line := range strings.Lines(sandbox.Log()) {
		var entry struct{ Message, User, Command, Database, Collection string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Message == "command refused" {
			found = append(found, fmt.Sprintf("%s %s %s.%s", entry.User, entry.Command, entry.Database, entry.Collection))
		}
	}
	return found
}

// TestPrivileges_TheDocumentedRolesAreEnough runs the services with the roles of
// docs/security.md through a handover, a change that is parked and an aggregate
// that is halted.
func TestPrivileges_TheDocumentedRolesAreEnough(t *testing.T) {
	t.Parallel()
	c := guardedCluster(t, documented(t), 2, 2)
	r := watched(t, c)
	if err := c.StartServices(); err != nil {
		t.Fatal(err)
	}
	r.awaitWork(t)
	r.write(t, 300)
	old, term := r.leader(t, 0)
	if errs := cluster.Stop(within(t), old); errs != nil {
		t.Fatal(errs)
	}
	r.leader(t, term)
	r.write(t, 300)
	insertOdd(t, r.witness.Client, c.Names())
	await(t, "a parked change and a halted aggregate", func(ctx context.Context) (bool, string) {
		parked := r.witness.State().Collection("parked_changes").FindOne(ctx, bson.D{}).Err()
		halted := r.witness.ReadModel().Collection("halted_aggregates").FindOne(ctx, bson.D{}).Err()
		err := errors.Join(parked, halted)
		return err == nil, fmt.Sprint(err)
	})
	if err := r.witness.AwaitDrain(within(t)); err != nil {
		t.Error(err)
	}
	got := slices.DeleteFunc(refusals(c.Sandbox), func(r string) bool { return slices.Contains(optional, r) })
	if len(got) > 0 {
		t.Errorf("the documented roles were not enough for: %s", strings.Join(slices.Compact(slices.Sorted(slices.Values(got))), ", "))
	}
}

// optional are the refusals that docs/security.md lets be: what they give is
// extra, or is made by projector setup.
var optional = []string{
	"publisher find local.oplog.rs", "publisher listCollections shop.", "publisher replSetGetConfig admin.",
	"projector find config.collections", "projector create shop_read.orders_current",
}

// insertOdd inserts an event without an aggregate, which is parked, and one that
// no projection can apply.
func insertOdd(t *testing.T, client *mongo.Client, names cluster.Names) {
	t.Helper()
	events := client.Database(names.SourceDatabase).Collection(names.SourceCollection)
	_, err := events.InsertMany(within(t), []any{
		bson.D{{Key: "_id", Value: "nameless"}, {Key: "version", Value: 1}, {Key: "type", Value: orders.Placed}, {Key: "data", Value: bson.D{}}},
		bson.D{
			{Key: "_id", Value: "odd"},
			{Key: "aggregateId", Value: "odd"},
			{Key: "version", Value: 1},
			{Key: "type", Value: orders.Added},
			{Key: "data", Value: bson.D{{Key: "price", Value: "no number"}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// asking is the commands that ask for an action.
var asking = map[string][]string{
	"find":         {"find", "aggregate", "findAndModify"},
	"insert":       {"insert", "update", "findAndModify"},
	"update":       {"update", "findAndModify"},
	"changeStream": {"aggregate"},
	"createIndex":  {"createIndexes"},
}

// TestPrivileges_EachDocumentedPrivilegeIsNeeded takes one action away at a time and waits
// for a command that the server then refuses.
func TestPrivileges_EachDocumentedPrivilegeIsNeeded(t *testing.T) {
	t.Parallel()
	documents := documented(t)
	for _, role := range documents.Roles {
		for _, p := range role.Privileges {
			for _, action := range p.Actions {
				t.Run(action+" on "+p.Resource["db"], func(t *testing.T) {
					t.Parallel()
					cl := guardedCluster(t, documented(t).without(t, role.Role, action), 2, 1)
					if err := cl.StartServices(); err != nil {
						t.Fatal(err)
					}
					write := writingAsRoot(t, cl)
					await(t, "a refusal for want of "+action, func(ctx context.Context) (bool, string) {
						write(ctx) // a stream begins with what comes after its start
						got := refusals(cl.Sandbox)
						refused := slices.ContainsFunc(got, func(r string) bool {
							fields := strings.Fields(r)
							return slices.Contains(asking[action], fields[1]) && strings.HasPrefix(fields[2], p.Resource["db"]+".")
						})
						return refused, fmt.Sprint("refused so far: ", slices.Compact(got))
					})
				})
			}
		}
	}
}

// writingAsRoot returns what writes a few events at each call.
func writingAsRoot(t *testing.T, c *cluster.Cluster) func(context.Context) {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(c.Endpoints().MongoURI))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	names, next := c.Names(), load.Generated(orders.NewGenerator(1, 5))
	l := load.Load{To: source.NewWriter(client, names.SourceDatabase, names.SourceCollection), Wrote: func([]orders.Event) {}}
	return func(ctx context.Context) {
		l.Next = load.Limited(3, next)
		if err := l.Run(ctx, nil); err != nil {
			t.Errorf("write events: %v", err)
		}
	}
}
